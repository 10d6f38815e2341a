//! Messages of clients.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use surus_channels::Member;

use crate::names::OF_CLIENT;

/// A message of a client.
#[derive(Debug)]
pub(crate) enum Incoming<'a> {
    Ping,
    /// Nothing has to be done: an answer, or what later versions of clients say in addition.
    Nothing,
    Subscribe(Subscribe),
    Unsubscribe(String),
    /// Says who the user is.
    SignIn(SignIn),
    /// An event for the others of a channel.
    Event {
        name: String,
        channel: String,
        data: Option<&'a RawValue>,
    },
}

#[derive(Debug, Deserialize)]
pub(crate) struct Subscribe {
    pub(crate) channel: String,
    #[serde(default)]
    pub(crate) auth: Option<String>,
    #[serde(default)]
    pub(crate) channel_data: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct SignIn {
    pub(crate) auth: String,
    pub(crate) user_data: String,
}

#[derive(Deserialize)]
struct Message<'a> {
    event: String,
    #[serde(default)]
    channel: Option<String>,
    #[serde(default, borrow)]
    data: Option<&'a RawValue>,
}

/// What a text says; `None`: it is no message.
pub(crate) fn parse(text: &str) -> Option<Incoming<'_>> {
    let message: Message<'_> = serde_json::from_str(text).ok()?;
    Some(match message.event.as_str() {
        "pusher:ping" => Incoming::Ping,
        "pusher:subscribe" => Incoming::Subscribe(object(message.data?)?),
        "pusher:unsubscribe" => {
            #[derive(Deserialize)]
            struct Unsubscribe {
                channel: String,
            }
            let Unsubscribe { channel } = object(message.data?)?;
            Incoming::Unsubscribe(channel)
        }
        "pusher:signin" => Incoming::SignIn(object(message.data?)?),
        name if name.starts_with(OF_CLIENT) => Incoming::Event {
            channel: message.channel?,
            data: message.data,
            name: message.event,
        },
        // A pong, or something that this server does not know.
        name if name.starts_with("pusher:") => Incoming::Nothing,
        _ => return None,
    })
}

/// Some clients write an object as a text with JSON.
fn object<T: for<'de> Deserialize<'de>>(data: &RawValue) -> Option<T> {
    if data.get().starts_with('"') {
        let text: String = serde_json::from_str(data.get()).ok()?;
        return serde_json::from_str(&text).ok();
    }
    serde_json::from_str(data.get()).ok()
}

/// A text, or a number, that names a user.
#[derive(Deserialize)]
#[serde(untagged)]
enum Id {
    Text(String),
    Number(serde_json::Number),
}

/// Bytes of the longest id of a user.
const LONGEST_ID: usize = 128;

impl Id {
    fn text(self) -> Option<Box<str>> {
        let text = match self {
            Id::Text(text) => text,
            Id::Number(number) => number.to_string(),
        };
        (1..=LONGEST_ID)
            .contains(&text.len())
            .then(|| text.into_boxed_str())
    }
}

/// Who subscribes to a presence channel, by its `channel_data`.
pub(crate) fn member(channel_data: &str) -> Option<Member> {
    #[derive(Deserialize)]
    struct Data<'a> {
        user_id: Id,
        #[serde(default, borrow)]
        user_info: Option<&'a RawValue>,
    }
    let data: Data<'_> = serde_json::from_str(channel_data).ok()?;
    Some(Member {
        id: data.user_id.text()?,
        info: data.user_info.map_or_else(Bytes::new, |info| {
            Bytes::copy_from_slice(info.get().as_bytes())
        }),
    })
}

/// Who signs in, by the `user_data`.
pub(crate) fn user(user_data: &str) -> Option<Box<str>> {
    #[derive(Deserialize)]
    struct Data {
        id: Id,
    }
    let data: Data = serde_json::from_str(user_data).ok()?;
    data.id.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_understood_or_refused() {
        assert!(matches!(
            parse(r#"{"event":"pusher:ping","data":{}}"#),
            Some(Incoming::Ping)
        ));
        assert!(matches!(
            parse(r#"{"event":"pusher:pong"}"#),
            Some(Incoming::Nothing)
        ));
        let texts = [
            r#"{"event":"pusher:subscribe","data":{"channel":"a","auth":""}}"#,
            r#"{"data":"{\"channel\":\"a\",\"auth\":\"\"}","event":"pusher:subscribe"}"#,
        ];
        for text in texts {
            let Some(Incoming::Subscribe(subscribe)) = parse(text) else {
                panic!("{text}");
            };
            assert_eq!(subscribe.channel, "a");
        }
        let text =
            r#"{"event":"client-a","channel":"private-b","data":{"c": 12345678901234567890123}}"#;
        let Some(Incoming::Event { data, .. }) = parse(text) else {
            panic!("{text}");
        };
        assert_eq!(data.unwrap().get(), r#"{"c": 12345678901234567890123}"#);
        for wrong in [
            "",
            "{}",
            "[]",
            "{\"event\":1}",
            "{\"event\":\"a\"}",
            "{\"event\":\"pusher:subscribe\"}",
        ] {
            assert!(parse(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn users_have_numbers_or_names() {
        let of = |text| member(text).map(|member| String::from(member.id));
        assert_eq!(
            of(r#"{"user_id":7,"user_info":{"a":1}}"#).as_deref(),
            Some("7")
        );
        assert_eq!(of(r#"{"user_id":"ann"}"#).as_deref(), Some("ann"));
        for wrong in [
            "",
            "{}",
            r#"{"user_id":""}"#,
            r#"{"user_id":null}"#,
            r#"{"user_id":[]}"#,
        ] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        assert_eq!(user(r#"{"id":"7","user_info":{}}"#).as_deref(), Some("7"));
    }
}
