//! Channels that several servers share, through Redis: each worker of each server is one client of it.
//!
//! What is published on a channel with a history gets its position there, in a script that also lets all workers have it. Other letters
//! between workers are passed on as they are. Each worker has a lease; those whose lease is over are gone.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::future::{pending, Future};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, FromRedisValue, RedisError};
use surus_channels::{Fetched, HistoryError, Hub, Keep, Nodes, Position, Reply};
use tokio::sync::mpsc;
use tokio::task::{spawn_local, JoinHandle, JoinSet};
use tokio::time::{interval, sleep, timeout, MissedTickBehavior};

/// Where all letters and publications go.
const ALL: &str = "surus:channels";

/// How long Redis may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Between two attempts to connect.
const RETRY: Duration = Duration::from_millis(500);

/// How often a lease is renewed, and those of others are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// So many looks in a row of which nothing is heard: nothing comes over the connection that listens, and nobody says so.
const UNHEARD: u32 = 10;

/// How long it holds, in milliseconds.
const LEASE: u64 = 4000;

/// Letters that wait for the connection. Then they are lost, as without a connection.
const WAITING: usize = 4096;

/// So many of them are sent before there is an answer.
const TOGETHER: usize = 64;

/// So many histories are fetched at a time when the connection is there again.
const FETCHED_TOGETHER: usize = 16;

/// How much longer than the last publication its position is known, in milliseconds.
const LONGER: u64 = 24 * 60 * 60 * 1000;

/// What Redis has kept when it starts again, or when another server takes its place, may be older than what it has published. So it goes
/// on far beyond any position that it may have forgotten, without what it has kept: nothing new is taken for something old, and
/// whoever has missed something notices. The last argument: which run of Redis this is.
const GO_ON: &str = "
local run = ARGV[#ARGV]
if redis.call('HGET', KEYS[1], 'run') ~= run then
    if redis.call('HEXISTS', KEYS[1], 'epoch') == 1 then
        redis.call('HINCRBY', KEYS[1], 'offset', 4294967296)
        redis.call('DEL', KEYS[2])
    end
    redis.call('HSET', KEYS[1], 'run', run)
end";

/// A letter, and a publication with its position, as they come.
const LETTER: u8 = b'L';
const PUBLICATION: u8 = b'P';

const APPEND: &str = "
local epoch = redis.call('HGET', KEYS[1], 'epoch')
if not epoch then
    epoch = ARGV[1]
    redis.call('HSET', KEYS[1], 'epoch', epoch)
end
local offset = redis.call('HINCRBY', KEYS[1], 'offset', 1)
redis.call('RPUSH', KEYS[2], ARGV[2])
redis.call('LTRIM', KEYS[2], -tonumber(ARGV[3]), -1)
redis.call('PEXPIRE', KEYS[2], ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[5])
local head = 'P' .. epoch .. ':' .. string.format('%.0f', offset) .. ' ' .. #ARGV[6] .. ' '
redis.call('PUBLISH', ARGV[7], head .. ARGV[6] .. ARGV[2])
return epoch .. ':' .. string.format('%.0f', offset)";

/// The oldest of what is kept after a position, and how many follow: at most 500, and of 1 MiB and one more.
const FETCH: &str = "
local epoch = redis.call('HGET', KEYS[1], 'epoch')
if not epoch then
    epoch = ARGV[1]
    redis.call('HSET', KEYS[1], 'epoch', epoch, 'offset', 0)
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
local offset = tonumber(redis.call('HGET', KEYS[1], 'offset') or 0)
local kept = {}
local count = math.min(tonumber(ARGV[4]), redis.call('LLEN', KEYS[2]))
if ARGV[3] == epoch then
    count = math.max(0, math.min(count, offset - tonumber(ARGV[5])))
end
local size = 0
for left = count, 1, -10 do
    if #kept >= 500 or size >= 1048576 then
        break
    end
    for _, one in ipairs(redis.call('LRANGE', KEYS[2], -left, -math.max(1, left - 9))) do
        if size < 1048576 then
            kept[#kept + 1] = one
            size = size + #one
        end
    end
end
return {epoch .. ':' .. string.format('%.0f', offset), kept, count - #kept}";

/// The connection of this worker.
struct Redis {
    connection: RefCell<Option<MultiplexedConnection>>,
    /// Which run of Redis that is.
    run: RefCell<String>,
    letters: mpsc::Sender<Bytes>,
    has_lost: Cell<bool>,
}

/// Shares the channels of this process, as long as it runs. `listens`: it has subscribers.
pub(crate) fn share(url: &str, hub: &Rc<Hub>, listens: bool) -> Result<JoinHandle<()>, RedisError> {
    let client = Client::open(url)?;
    let (letters, waiting) = mpsc::channel(WAITING);
    let redis = Rc::new(Redis {
        connection: RefCell::default(),
        run: RefCell::default(),
        letters,
        has_lost: Cell::new(false),
    });
    hub.share(Rc::clone(&redis) as Rc<dyn Nodes>);
    let hub = Rc::clone(hub);
    Ok(spawn_local(async move {
        redis.keep(&client, &hub, waiting, listens).await;
    }))
}

fn unavailable(error: RedisError) -> HistoryError {
    tracing::error!(%error, "the history of a channel in Redis");
    HistoryError::Unavailable
}

fn keys(channel: &str) -> [String; 2] {
    // One slot of a cluster.
    [
        format!("surus:channel:{{{channel}}}:newest"),
        format!("surus:channel:{{{channel}}}:kept"),
    ]
}

/// One that compares the run of Redis first. [`Redis::run_script`] adds that.
fn script(text: &str, channel: &str) -> Cmd {
    let mut script = redis::cmd("EVAL");
    let text = format!("{GO_ON}{text}");
    script.arg(text).arg(2).arg(&keys(channel));
    script
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis())
        .unwrap_or(u64::MAX)
        .clamp(1, 1 << 50)
}

fn epoch() -> String {
    let random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
    format!("{random:x}")
}

impl Nodes for Redis {
    fn append(&self, channel: &str, keep: Keep, content: Bytes) -> Reply<Position> {
        let ttl = milliseconds(keep.ttl);
        let mut script = script(APPEND, channel);
        script.arg(epoch()).arg(&content[..]).arg(keep.messages);
        script.arg(ttl).arg(ttl + LONGER).arg(channel).arg(ALL);
        let position = self.run_script::<String>(script);
        Box::pin(async {
            let position = position.await?.parse();
            position.map_err(|_| HistoryError::Unavailable)
        })
    }

    fn fetch(&self, channel: &str, keep: Keep, after: Option<Position>) -> Reply<Fetched> {
        let known = after.map(|after| (format!("{:x}", after.epoch), after.offset));
        let (known, offset) = known.unwrap_or_default();
        let mut script = script(FETCH, channel);
        script.arg(epoch()).arg(milliseconds(keep.ttl) + LONGER);
        script.arg(known).arg(keep.messages).arg(offset);
        let fetched = self.run_script::<(String, Vec<Vec<u8>>, u64)>(script);
        Box::pin(async {
            let (newest, kept, left) = fetched.await?;
            Ok(Fetched {
                newest: newest.parse().map_err(|_| HistoryError::Unavailable)?,
                kept: kept.into_iter().map(Bytes::from).collect(),
                left,
            })
        })
    }

    fn send(&self, letter: Bytes) {
        // Others get to know all of this worker when the connection is there.
        if self.connection.borrow().is_none() || self.letters.try_send(letter).is_ok() {
            return;
        }
        if !self.has_lost.replace(true) {
            tracing::error!("letters to other servers are lost: Redis does not take them in time");
        }
    }
}

impl Redis {
    fn run_script<T: FromRedisValue>(
        &self,
        mut script: Cmd,
    ) -> impl Future<Output = Result<T, HistoryError>> {
        script.arg(&*self.run.borrow());
        let connection = self.connection.borrow().clone();
        async move {
            let mut connection = connection.ok_or(HistoryError::Unavailable)?;
            let result = script.query_async(&mut connection).await;
            result.map_err(unavailable)
        }
    }

    async fn keep(
        &self,
        client: &Client,
        hub: &Rc<Hub>,
        mut waiting: mpsc::Receiver<Bytes>,
        listens: bool,
    ) {
        let mut is_told = false;
        loop {
            let ended = self.serve(client, hub, &mut waiting, listens).await;
            let was_there = self.connection.take().is_some();
            if let Err(error) = ended {
                if was_there || !is_told {
                    tracing::error!(%error, "Redis is not there: channels are not shared with other servers");
                }
            }
            is_told = true;
            while waiting.try_recv().is_ok() {}
            sleep(RETRY).await;
        }
    }

    /// As long as the connection is there.
    async fn serve(
        &self,
        client: &Client,
        hub: &Rc<Hub>,
        waiting: &mut mpsc::Receiver<Bytes>,
        listens: bool,
    ) -> Result<(), RedisError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(Some(PATIENCE));
        let late = |_| RedisError::from(std::io::Error::from(std::io::ErrorKind::TimedOut));
        let mut come = None;
        // This worker hears on a channel of its own what it says there.
        let own = lease_of(hub.me());
        let mut unheard = 0;
        if listens {
            let subscribed = timeout(PATIENCE, async {
                let mut listening = client.get_async_pubsub().await?;
                listening.subscribe(ALL).await?;
                listening.subscribe(own.as_str()).await?;
                Ok::<_, RedisError>(listening)
            });
            come = Some(subscribed.await.map_err(late)??.into_on_message());
        }
        let mut connection = client
            .get_multiplexed_async_connection_with_config(&config)
            .await?;
        *self.run.borrow_mut() = run(&mut connection).await?;
        *self.connection.borrow_mut() = Some(connection.clone());
        if listens {
            self.lease(hub, &mut connection).await?;
            hub.begin_anew();
            self.fetch_all(hub, &mut connection).await?;
        }
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut silent = HashSet::new();
        let mut letters = Vec::new();
        loop {
            let next = async {
                match &mut come {
                    Some(come) => come.next().await,
                    None => pending().await,
                }
            };
            tokio::select! {
                message = next => {
                    let Some(message) = message else {
                        return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
                    };
                    if message.get_channel_name() == own {
                        unheard = 0;
                        continue;
                    }
                    came(hub, message.get_payload_bytes());
                }
                _ = waiting.recv_many(&mut letters, TOGETHER) => {
                    let mut pipe = redis::pipe();
                    for letter in letters.drain(..) {
                        let mut text = vec![LETTER];
                        text.extend_from_slice(&letter);
                        pipe.cmd("PUBLISH").arg(ALL).arg(text).ignore();
                    }
                    let () = pipe.query_async(&mut connection).await?;
                }
                _ = look.tick() => {
                    if self.has_lost.take() {
                        hub.begin_anew();
                    }
                    if listens {
                        if unheard >= UNHEARD {
                            return Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into());
                        }
                        self.lease(hub, &mut connection).await?;
                        let mut command = redis::cmd("PUBLISH");
                        let () = command.arg(&own).arg("").query_async(&mut connection).await?;
                        unheard += 1;
                        silent = others(hub, &mut connection, silent).await?;
                    }
                }
            }
        }
    }

    /// What those who have subscribed here have missed. With many channels this takes longer than a lease holds.
    async fn fetch_all(
        &self,
        hub: &Rc<Hub>,
        connection: &mut MultiplexedConnection,
    ) -> Result<(), RedisError> {
        let mut channels = hub.followed().into_iter();
        let mut fetching = JoinSet::new();
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let room = FETCHED_TOGETHER - fetching.len();
            for channel in channels.by_ref().take(room) {
                let hub = Rc::clone(hub);
                fetching.spawn_local(async move { hub.fetch(&channel).await });
            }
            tokio::select! {
                fetched = fetching.join_next() => match fetched {
                    Some(Ok(Ok(()))) => {}
                    Some(_) => {
                        return Err(std::io::Error::other("a history cannot be fetched").into());
                    }
                    None => return Ok(()),
                },
                _ = look.tick() => self.lease(hub, connection).await?,
            }
        }
    }

    async fn lease(
        &self,
        hub: &Hub,
        connection: &mut MultiplexedConnection,
    ) -> Result<(), RedisError> {
        let mut command = redis::cmd("SET");
        command.arg(lease_of(hub.me())).arg("").arg("PX").arg(LEASE);
        command.query_async(connection).await
    }
}

/// Empty if it does not tell.
async fn run(connection: &mut MultiplexedConnection) -> Result<String, RedisError> {
    let mut command = redis::cmd("INFO");
    let told: Result<String, _> = command.arg("server").query_async(connection).await;
    match told {
        Ok(told) => {
            let run = told.lines().find_map(|line| line.strip_prefix("run_id:"));
            Ok(run.unwrap_or_default().trim().to_owned())
        }
        // It may not be asked.
        Err(error) if error.code().is_some() => Ok(String::new()),
        Err(error) => Err(error),
    }
}

fn lease_of(worker: u64) -> String {
    format!("surus:worker:{worker:x}")
}

/// Lets those go whose lease was over twice. Those for which it was over now.
async fn others(
    hub: &Hub,
    connection: &mut MultiplexedConnection,
    before: HashSet<u64>,
) -> Result<HashSet<u64>, RedisError> {
    let mut silent = HashSet::new();
    for other in hub.others() {
        if hub.is_of_this_server(other) {
            continue;
        }
        let mut command = redis::cmd("EXISTS");
        let is_there: bool = command.arg(lease_of(other)).query_async(connection).await?;
        if is_there {
            continue;
        }
        if before.contains(&other) {
            hub.gone(other);
        } else {
            silent.insert(other);
        }
    }
    Ok(silent)
}

fn came(hub: &Hub, message: &[u8]) {
    match message.split_first() {
        Some((&LETTER, letter)) => hub.receive_of_nodes(letter),
        Some((&PUBLICATION, rest)) => match publication(rest) {
            Some((channel, position, content)) => hub.came(channel, position, content),
            None => tracing::error!("a publication in Redis is malformed"),
        },
        _ => tracing::error!("a message in Redis is of nobody here"),
    }
}

/// `POSITION LENGTH CHANNELCONTENT`
fn publication(text: &[u8]) -> Option<(&str, Position, &[u8])> {
    let mut words = text.splitn(3, |byte| *byte == b' ');
    let position = std::str::from_utf8(words.next()?).ok()?.parse().ok()?;
    let length: usize = std::str::from_utf8(words.next()?).ok()?.parse().ok()?;
    let (channel, content) = words.next()?.split_at_checked(length)?;
    Some((std::str::from_utf8(channel).ok()?, position, content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn publications_are_read() {
        let position = Position {
            epoch: 0x1f,
            offset: 12,
        };
        let expected = Some(("a b", position, &b"content"[..]));
        assert_eq!(publication(b"1f:12 3 a bcontent"), expected);
        for malformed in ["", "1f:12", "1f:12 3", "1f:12 9 a", "x:1 1 a", "1:1 x a"] {
            assert_eq!(publication(malformed.as_bytes()), None, "{malformed}");
        }
    }
}
