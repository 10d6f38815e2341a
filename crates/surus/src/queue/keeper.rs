//! What PHP asks of queues: `php/core/src/Internal/Queues.php` has the other side.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde::{de::DeserializeOwned, Deserialize};
use serde_json::json;
use surus_master::{Channel, Report};
use surus_queue::{Change, Client, Delivery, Ending, Id, NewBatch, Push, Question, Reading};
use surus_zend::{queue_with, QueueAnswer};

use super::place::{folder, NAME};
use crate::cli::ServeArgs;
use crate::config::{App, Config};

thread_local! {
    static CLIENT: RefCell<Option<Client>> = const { RefCell::new(None) };
}

/// The longest wait for the process with the jobs to note how they have ended, before this process ends.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// In a process of a server.
pub(crate) fn in_server(app: &App, master: Channel) {
    let client = folder(app).map(|folder| {
        Client::new(folder, move || {
            let name = NAME.to_owned();
            master.send(&Report::Summon { name });
        })
    });
    serve(client);
}

/// In `surus php`: with the server of the application in this folder, or the one whose process this is.
pub(crate) fn in_command() {
    let client = RefCell::new(None);
    queue_with(Rc::new(move |verb, head, payload| {
        let mut client = client.borrow_mut();
        let client = client.get_or_insert_with(|| {
            let config = Config::resolve(&ServeArgs {
                path: ".".into(),
                ..ServeArgs::default()
            });
            let found = std::env::var_os("SURUS_QUEUE_FOLDER").map(Into::into);
            let found = found.map_or_else(
                || folder(&config.map_err(|error| error.to_string())?.app),
                Ok,
            );
            found
                .map(|folder| Client::new(folder, || ()))
                .map_err(|why| {
                    format!("which server has the queues? Set SURUS_QUEUE_FOLDER, or run this where `surus serve` finds the application: {why}")
                })
        });
        match client {
            Ok(client) => ask(client, verb, head, payload),
            Err(why) => Ok(Err(why.clone())),
        }
    }));
}

fn serve(client: Result<Client, String>) {
    match client {
        Ok(client) => {
            CLIENT.set(Some(client.clone()));
            queue_with(Rc::new(move |verb, head, payload| {
                ask(&client, verb, head, payload)
            }));
        }
        Err(why) => queue_with(Rc::new(move |_, _, _| Ok(Err(why.clone())))),
    }
}

/// The connection of this process.
pub(crate) fn client() -> Option<Client> {
    CLIENT.with_borrow(Clone::clone)
}

/// Before this process ends: what has ended is noted.
pub(crate) async fn settle() {
    let Some(client) = client() else {
        return;
    };
    let deadline = Instant::now() + LAST_WORDS;
    while !client.is_settled() && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[derive(Deserialize)]
struct Pushing {
    queue: String,
    delay: f64,
    priority: i32,
    unique: Option<String>,
}

/// Payloads come one after another, in the order of these.
#[derive(Deserialize)]
struct Batching {
    jobs: Vec<Member>,
    then: Option<Member>,
    catch: Option<Member>,
    finally: Option<Member>,
}

#[derive(Deserialize)]
struct Member {
    queue: String,
    #[serde(default)]
    delay: f64,
    #[serde(default)]
    priority: i32,
    length: usize,
}

impl Member {
    fn push(self, payloads: &mut Bytes) -> (Id, Push) {
        let length = self.length.min(payloads.len());
        let push = Push {
            queue: self.queue,
            payload: payloads.split_to(length),
            priority: self.priority,
            delay: seconds(self.delay),
            unique: None,
        };
        (Id::new(), push)
    }
}

impl Batching {
    fn batch(self, mut payloads: Bytes) -> NewBatch {
        let mut one = |member: Member| member.push(&mut payloads);
        NewBatch {
            jobs: self.jobs.into_iter().map(&mut one).collect(),
            then: self.then.map(&mut one),
            catch: self.catch.map(&mut one),
            finally: self.finally.map(&mut one),
        }
    }
}

#[derive(Deserialize)]
struct Progressed {
    id: String,
    done: f32,
}

#[derive(Deserialize)]
struct Named {
    id: String,
}

/// Of a stream: an entry, or entries that a group has done with.
#[derive(Deserialize)]
struct Changing {
    stream: String,
    group: Option<String>,
    #[serde(default)]
    positions: Vec<u64>,
}

impl Changing {
    fn change(self, payload: Bytes) -> Change {
        let stream = self.stream;
        match self.group {
            Some(group) => Change::Acknowledge {
                stream,
                group,
                positions: self.positions,
            },
            None => Change::Append { stream, payload },
        }
    }
}

#[derive(Deserialize)]
struct Wanted {
    stream: String,
    group: String,
    count: u32,
    wait: f64,
    idle: f64,
}

impl Wanted {
    fn reading(self) -> Reading {
        Reading {
            stream: self.stream,
            group: self.group,
            count: self.count,
            idle: u64::try_from(seconds(self.idle).as_millis()).unwrap_or(u64::MAX),
        }
    }
}

#[derive(Deserialize)]
struct Taking {
    queue: String,
    wait: f64,
}

#[derive(Deserialize)]
struct Ended {
    id: String,
    #[serde(flatten)]
    how: super::policy::Said,
}

type Later = Pin<Box<dyn Future<Output = QueueAnswer>>>;

fn ask(client: &Client, verb: &str, head: &str, payload: Bytes) -> Result<QueueAnswer, Later> {
    match begin(client.clone(), verb, head, payload) {
        Ok(Some(later)) => Err(later),
        Ok(None) => Ok(Ok(Default::default())),
        Err(why) => Ok(Err(why)),
    }
}

fn parsed<T: DeserializeOwned>(head: &str) -> Result<T, String> {
    serde_json::from_str(head).map_err(|error| error.to_string())
}

/// `None`: nothing has to be waited for.
fn begin(client: Client, verb: &str, head: &str, payload: Bytes) -> Result<Option<Later>, String> {
    let later: Later = match verb {
        "push" => {
            let wanted: Pushing = parsed(head)?;
            Box::pin(async move {
                let push = Push {
                    queue: wanted.queue,
                    payload,
                    priority: wanted.priority,
                    delay: seconds(wanted.delay),
                    unique: wanted.unique,
                };
                let pushed = client.push(push).await?;
                let text = json!({"id": pushed.id.to_string(), "new": pushed.is_new});
                Ok((text.to_string(), Bytes::new()))
            })
        }
        "batch" => {
            let wanted: Batching = parsed(head)?;
            Box::pin(async move {
                let pushed = client.push_batch(wanted.batch(payload)).await?;
                let text = json!({"id": pushed.id.to_string()});
                Ok((text.to_string(), Bytes::new()))
            })
        }
        "batches" => {
            let id = Some(parsed::<Named>(head)?.id.parse()?);
            asked(client, Question::Batches { id })
        }
        "append" | "acknowledge" => {
            let wanted: Changing = parsed(head)?;
            Box::pin(async move {
                let pushed = client.change(wanted.change(payload)).await?;
                Ok((pushed.position.to_string(), Bytes::new()))
            })
        }
        "read" => {
            let wanted: Wanted = parsed(head)?;
            Box::pin(async move {
                // In an upgrade, an owner of the version before may say that there are none before it has looked.
                let wait = seconds(wanted.wait).max(Duration::from_millis(20));
                let entries = client.read(wanted.reading(), wait).await?;
                let heads = entries.iter().map(|entry| {
                    json!([entry.position, entry.attempt, entry.at, entry.payload.len()])
                });
                let heads: Vec<serde_json::Value> = heads.collect();
                let payloads: Vec<&[u8]> = entries.iter().map(|entry| &*entry.payload).collect();
                Ok((json!(heads).to_string(), payloads.concat().into()))
            })
        }
        // Entries that were read for a request that was cut off: `payload` is the answer that it has not got.
        "unread" => {
            let of: Wanted = parsed(head)?;
            let entries: Vec<(u64, u32, u64, usize)> =
                serde_json::from_slice(&payload).unwrap_or_default();
            let positions = entries.into_iter().map(|(position, ..)| position);
            client.unread(of.stream, of.group, positions.collect());
            return Ok(None);
        }
        "stream" | "ungroup" => {
            let Changing { stream, group, .. } = parsed(head)?;
            let question = match group {
                Some(group) => Question::Ungroup { stream, group },
                None => Question::Streams {
                    stream: Some(stream),
                },
            };
            asked(client, question)
        }
        "progress" => {
            let said: Progressed = parsed(head)?;
            if let Ok(id) = said.id.parse() {
                client.progress(id, said.done);
            }
            return Ok(None);
        }
        "take" => {
            let wanted: Taking = parsed(head)?;
            Box::pin(async move {
                let job = client.take(&wanted.queue, seconds(wanted.wait)).await?;
                Ok(job.map_or_else(Default::default, |job| (described(&job), job.payload)))
            })
        }
        "end" => {
            let ended: Ended = parsed(head)?;
            let id = ended.id.parse()?;
            client.end(id, ended.how.of_taken());
            Box::pin(async move {
                client.settled(id).await;
                Ok(Default::default())
            })
        }
        // Its request has ended without a word.
        "back" => {
            let ending = Ending::Again {
                delay: Duration::from_secs(1),
                error: Some("who has taken it has ended without saying how".to_owned()),
                counts: true,
            };
            client.end(head.parse()?, ending);
            return Ok(None);
        }
        "counts" => asked(client, Question::Counts),
        _ => return Err(format!("queues do not know {verb:?}")),
    };
    Ok(Some(later))
}

fn asked(client: Client, question: Question) -> Later {
    Box::pin(async move { Ok((client.ask(question).await?, Bytes::new())) })
}

/// For PHP.
pub(super) fn described(job: &Delivery) -> String {
    let text = json!({
        "id": job.id.to_string(),
        "queue": job.queue,
        "attempt": job.attempt,
        "pushed": job.pushed,
    });
    text.to_string()
}

/// PHP has checked that it is a time.
pub(super) fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

/// A job that nobody runs goes back.
pub(super) fn back(delay: Duration) -> Ending {
    Ending::Again {
        delay,
        error: None,
        counts: false,
    }
}
