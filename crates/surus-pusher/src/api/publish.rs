//! Events of servers.

use serde::Deserialize;
use serde_json::{json, Map, Value};
use surus_channels::Message;

use super::channels::{self, Info};
use super::{Answer, Refusal, BATCH};
use crate::event::SocketId;
use crate::front::Front;
use crate::names;

/// Channels of one event.
const MOST_CHANNELS: usize = 100;

#[derive(Deserialize)]
struct Posted {
    name: String,
    data: Value,
    #[serde(default)]
    channel: Option<String>,
    #[serde(default)]
    channels: Option<Vec<String>>,
    #[serde(default)]
    socket_id: Option<String>,
    #[serde(default)]
    info: Option<String>,
}

#[derive(Deserialize)]
struct Batch {
    batch: Vec<Posted>,
}

/// What was checked and is not published yet.
struct Checked {
    message: Message,
    channels: Vec<String>,
    info: Info,
}

fn parsed<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Refusal> {
    serde_json::from_slice(body)
        .map_err(|error| Refusal::new(400, format!("The body is not as expected: {error}")))
}

/// `POST /apps/ID/events`
pub(super) async fn one(front: &Front, app: usize, body: &[u8]) -> Answer {
    let posted: Posted = parsed(body)?;
    let checked = check(front, app, posted, true)?;
    publish(front, app, &checked).await?;
    Ok(match checked.info.is_empty() {
        true => json!({}),
        false => {
            let about = checked.channels.iter().map(|channel| {
                let about = channels::about(front, app, channel, checked.info);
                (channel.clone(), about)
            });
            json!({"channels": about.collect::<Map<String, Value>>()})
        }
    })
}

/// `POST /apps/ID/batch_events`: all of them, or none.
pub(super) async fn batch(front: &Front, app: usize, body: &[u8]) -> Answer {
    let Batch { batch } = parsed(body)?;
    if batch.len() > BATCH {
        let why = format!("A batch has at most {BATCH} events");
        return Err(Refusal::new(400, why));
    }
    let checked: Result<Vec<Checked>, Refusal> = batch
        .into_iter()
        .map(|posted| check(front, app, posted, false))
        .collect();
    let checked = checked?;
    let mut answers = Vec::new();
    for each in &checked {
        publish(front, app, each).await?;
        let about = each
            .channels
            .iter()
            .map(|channel| channels::about(front, app, channel, each.info));
        answers.extend(about);
    }
    Ok(match checked.iter().all(|each| each.info.is_empty()) {
        true => json!({}),
        false => json!({"batch": answers}),
    })
}

fn check(front: &Front, app: usize, posted: Posted, several: bool) -> Result<Checked, Refusal> {
    let no = |why: String| Err(Refusal::new(400, why));
    let channels = match (posted.channel, posted.channels) {
        (Some(channel), None) => vec![channel],
        (None, Some(channels)) if several => channels,
        _ if several => return no("Either channel or channels is needed".to_owned()),
        _ => return no("Each event of a batch has one channel".to_owned()),
    };
    if channels.is_empty() || channels.len() > MOST_CHANNELS {
        return no(format!("An event is for 1 to {MOST_CHANNELS} channels"));
    }
    if let Some(wrong) = channels.iter().find(|name| names::kind(name).is_none()) {
        return no(format!("{wrong:?} is no name of a channel"));
    }
    if !names::is_event(&posted.name) {
        return no(
            "The name of an event has 1 to 200 bytes, and does not begin with pusher:".to_owned(),
        );
    }
    let Value::String(data) = &posted.data else {
        return no("data is a text: encode other values as JSON".to_owned());
    };
    let most = front.app(app).max_event;
    if data.len() > most {
        let why = format!("data is longer than {most} bytes");
        return Err(Refusal::new(413, why));
    }
    let except = match &posted.socket_id {
        None => None,
        Some(text) => match SocketId::parse(text) {
            None => return no(format!("{text:?} is no socket_id")),
            except => except,
        },
    };
    let info = Info::parse(posted.info.as_deref().unwrap_or_default())?;
    if let Some(channel) = channels.iter().find(|name| !info.is_for(name)) {
        return no(format!(
            "user_count is for presence channels only, not for {channel}"
        ));
    }
    Ok(Checked {
        message: Message {
            event: posted.name.into(),
            data: data.clone().into(),
            binary: false,
            except: except.map_or_else(Box::default, |except| except.to_string().into()),
        },
        channels,
        info,
    })
}

async fn publish(front: &Front, app: usize, checked: &Checked) -> Result<(), Refusal> {
    for channel in &checked.channels {
        let published = front.publish(app, channel, checked.message.clone()).await;
        // Its history has no room, say.
        published.map_err(|refused| Refusal::new(503, refused))?;
    }
    Ok(())
}
