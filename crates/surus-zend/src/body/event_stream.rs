//! An event stream (`text/event-stream`) of what is published on channels. No PHP belongs to it: the request that has opened it is over.
//!
//! The id of each event says where its client is in all channels of the stream: positions in their order, with commas. A client that
//! comes again says the last one that it has got (`Last-Event-ID`), and goes on from there.

mod format;

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, VecDeque},
    fmt::{self, Write},
    io,
    rc::{Rc, Weak},
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use bytes::{Bytes, BytesMut};
use surus_channels::{next_id, Position, Publication, Subscriber};
use tokio::{task::spawn_local, time::sleep};

use crate::shared::channels::channels;
use format::{data_lines, event, together, whole, Event, Whole};

/// Bytes that wait for a client which reads slowly. Then it gets what follows from the history, once it has read them; without a history
/// it is cut off.
const HIGHEST: usize = 256 * 1024;

/// How often it is looked who was silent too long.
const LOOK: Duration = Duration::from_secs(1);

/// A comment: it tells whether the client is still there.
const BEAT: Bytes = Bytes::from_static(b":\n\n");

/// Channels of one stream.
pub(crate) const MOST_CHANNELS: usize = 100;

thread_local! {
    static OPEN: RefCell<BTreeMap<u64, Weak<EventStream>>> = RefCell::default();
    /// Somebody looks who was silent.
    static LOOKING: Cell<bool> = const { Cell::new(false) };
    static HEARTBEAT: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    /// The server ends.
    static ENDING: Cell<bool> = const { Cell::new(false) };
}

/// What a client wants of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The name.
    pub channel: Box<str>,
    /// From where.
    pub since: Since,
}

/// Where in a channel a client has been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// It is new.
    Now,
    /// It has all up to here.
    At(Position),
    /// It has been there, but says nothing that can be read.
    Unknown,
}

impl Since {
    pub(crate) fn position(self) -> Option<Position> {
        match self {
            Since::At(position) => Some(position),
            Since::Now | Since::Unknown => None,
        }
    }
}

/// An event stream that is to be opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// The channels, in the order of the positions of an id.
    pub channels: Vec<Wanted>,
    /// Milliseconds until a client that was cut off comes again.
    pub retry: Option<u32>,
}

/// An event stream that is open.
pub struct EventStream {
    id: u64,
    channels: Box<[Box<str>]>,
    /// Where the client is when it has got all that waits.
    positions: RefCell<Box<[Option<Position>]>>,
    waiting: RefCell<VecDeque<Bytes>>,
    bytes: Cell<usize>,
    state: Cell<State>,
    /// When something was sent last.
    sent: Cell<Instant>,
    connection: RefCell<Option<Waker>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// What follows is kept for it until it has read what waits.
    Behind,
    /// No more follows what waits.
    Ending,
    /// The client reads too slowly, and nothing is kept for it.
    CutOff,
    Over,
}

/// From now on silent streams of this thread are sent a comment so often; zero is never.
pub fn beat_event_streams(time: Duration) {
    HEARTBEAT.set(time);
}

/// The event streams of this thread that are open.
#[must_use]
pub fn event_streams() -> usize {
    OPEN.with_borrow(BTreeMap::len)
}

/// The server ends: their clients come again.
pub fn end_event_streams() {
    ENDING.set(true);
    let all: Vec<_> = OPEN.with_borrow(|open| open.values().filter_map(Weak::upgrade).collect());
    all.iter().for_each(|stream| stream.end_by_server());
}

impl EventStream {
    pub(crate) fn open(opening: Opening) -> Rc<EventStream> {
        let stream = Rc::new(EventStream::new(&opening));
        stream.begin(&opening);
        OPEN.with_borrow_mut(|open| open.insert(stream.id, Rc::downgrade(&stream)));
        if ENDING.get() {
            // Its request was there before the end.
            stream.end_by_server();
        }
        if !LOOKING.replace(true) {
            spawn_local(look());
        }
        stream
    }

    fn new(opening: &Opening) -> EventStream {
        let names = opening.channels.iter().map(|one| one.channel.clone());
        // As long as it is not known whether it has missed something there, it is where its client was.
        let positions = opening.channels.iter().map(|one| one.since.position());
        EventStream {
            id: next_id(),
            positions: RefCell::new(positions.collect()),
            channels: names.collect(),
            waiting: RefCell::default(),
            bytes: Cell::new(0),
            state: Cell::new(State::Open),
            sent: Cell::new(Instant::now()),
            connection: RefCell::default(),
        }
    }

    fn begin(self: &Rc<Self>, opening: &Opening) {
        if let Some(retry) = opening.retry {
            self.push(Bytes::from(format!("retry: {retry}\n\n")));
        }
        // First those of which no position is known, so that no id is without one.
        for known in [false, true] {
            for (place, wanted) in opening.channels.iter().enumerate() {
                if wanted.since.position().is_some() == known {
                    self.subscribe(place, wanted.since);
                }
            }
        }
        // A client notes an id even if no event comes with it.
        let id = self.id();
        if id.contains(':') && self.state.get() == State::Open {
            self.push(Bytes::from(format!("id: {id}\n\n")));
        }
    }

    fn subscribe(self: &Rc<Self>, place: usize, since: Since) {
        let channel = &self.channels[place];
        let hub = channels();
        let recovery =
            hub.map(|hub| hub.subscribe(channel, self.id, self.clone(), since.position()));
        let Some(Ok(recovery)) = recovery else {
            return self.change(State::CutOff);
        };
        self.positions.borrow_mut()[place] = recovery.position;
        if recovery.behind {
            self.change(State::Behind);
        } else if since != Since::Now && !recovery.recovered {
            let mut text = format!("event: missed\nid: {}\n", self.id());
            data_lines(&mut text, channel);
            text.push('\n');
            self.push(Bytes::from(text));
        }
    }

    /// Its client has read what has waited: it goes on from where it is.
    fn resume(self: &Rc<Self>) {
        self.state.set(State::Open);
        let positions = self.positions.borrow().clone();
        for (place, position) in positions.iter().enumerate() {
            if let Some(position) = position {
                self.subscribe(place, Since::At(*position));
            }
        }
    }

    /// It has not read, and what follows is kept for it: it is told no more until it has.
    fn fall_behind(&self) {
        self.change(State::Behind);
        let positions = self.positions.borrow().clone();
        if let Some(hub) = channels() {
            for (channel, position) in self.channels.iter().zip(&positions) {
                if position.is_some() {
                    hub.unsubscribe(channel, self.id);
                }
            }
        }
    }

    /// Empty if there is nothing that it could tell.
    fn id(&self) -> String {
        let positions = self.positions.borrow();
        let mut id = String::new();
        for position in positions.iter() {
            if !id.is_empty() {
                id.push(',');
            }
            match position {
                Some(position) => _ = write!(id, "{position}"),
                None => id.push('-'),
            }
        }
        id
    }

    pub(crate) fn poll_next(
        self: &Rc<Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Bytes>>> {
        if self.state.get() == State::Behind && self.waiting.borrow().is_empty() {
            self.resume();
        }
        if self.state.get() == State::CutOff {
            let why = "the client of an event stream has not read what was published";
            return Poll::Ready(Some(Err(io::Error::other(why))));
        }
        let mut waiting = self.waiting.borrow_mut();
        if let Some(first) = waiting.pop_front() {
            let bytes = together(first, &mut waiting);
            if waiting.is_empty() {
                *waiting = VecDeque::new();
            }
            self.bytes.set(self.bytes.get() - bytes.len());
            return Poll::Ready(Some(Ok(bytes)));
        }
        if !matches!(self.state.get(), State::Open | State::Behind) {
            return Poll::Ready(None);
        }
        let mut connection = self.connection.borrow_mut();
        if !connection
            .as_ref()
            .is_some_and(|old| old.will_wake(cx.waker()))
        {
            *connection = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    fn push(&self, bytes: Bytes) {
        let is_open = matches!(self.state.get(), State::Open | State::Behind);
        if !is_open || bytes.is_empty() {
            return;
        }
        self.sent.set(Instant::now());
        self.bytes.set(self.bytes.get() + bytes.len());
        self.waiting.borrow_mut().push_back(bytes);
        self.wake();
    }

    fn is_high(&self) -> bool {
        self.bytes.get() >= HIGHEST
    }

    fn cut_off(&self) {
        self.waiting.take();
        self.bytes.set(0);
        self.change(State::CutOff);
        self.unsubscribe();
    }

    fn change(&self, state: State) {
        if matches!(self.state.get(), State::Open | State::Behind) {
            self.state.set(state);
            self.wake();
        }
    }

    fn wake(&self) {
        let connection = self.connection.take();
        if let Some(connection) = connection {
            connection.wake();
        }
    }

    fn unsubscribe(&self) {
        if let Some(hub) = channels() {
            for channel in &self.channels {
                hub.unsubscribe(channel, self.id);
            }
        }
    }

    fn end_by_server(&self) {
        self.change(State::Ending);
        self.unsubscribe();
    }

    /// Its client is gone.
    pub(crate) fn end(&self) {
        self.state.set(State::Over);
        self.unsubscribe();
        // The thread may end: then its list is gone.
        let _ = OPEN.try_with(|open| open.borrow_mut().remove(&self.id));
    }
}

impl Subscriber for EventStream {
    fn deliver(&self, publication: &Rc<Publication>) {
        let mut names = self.channels.iter();
        let Some(place) = names.position(|name| **name == *publication.channel) else {
            return;
        };
        // Of a channel with a history, what is not kept may be left out.
        let is_kept = publication.position.is_some() || self.positions.borrow()[place].is_some();
        if self.is_high() {
            return match is_kept {
                true => self.fall_behind(),
                false => self.cut_off(),
            };
        }
        if publication.position.is_some() {
            self.positions.borrow_mut()[place] = publication.position;
        }
        if publication.message.binary {
            return;
        }
        if self.channels.len() == 1 {
            // The same for all.
            let whole = publication.made(|publication| Whole(whole(publication)));
            return self.push(whole.0.clone());
        }
        let event = publication.made(|publication| Event(event(publication)));
        let mut text = BytesMut::new();
        let id = self.id();
        if id.contains(':') {
            let _ = writeln!(text, "id: {id}");
        }
        text.extend_from_slice(&event.0);
        self.push(text.freeze());
    }

    fn is_full(&self) -> bool {
        self.is_high()
    }

    /// It goes on from where it is, and is told that something is missing.
    fn missed(&self, _: &str) {
        self.fall_behind();
    }
}

/// Sends a comment to those who were silent, as long as there are streams.
async fn look() {
    loop {
        sleep(LOOK).await;
        let heartbeat = HEARTBEAT.get();
        let silent: Vec<_> = OPEN.with_borrow(|open| {
            let all = open.values().filter_map(Weak::upgrade);
            all.filter(|stream| {
                !heartbeat.is_zero()
                    && stream.bytes.get() == 0
                    && stream.sent.get().elapsed() >= heartbeat
            })
            .collect()
        });
        for stream in silent {
            stream.push(BEAT);
        }
        if event_streams() == 0 {
            LOOKING.set(false);
            return;
        }
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream")
            .field("channels", &self.channels)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_read_is_cut_off_where_nothing_is_kept() {
        let opening = Opening::default();
        let stream = Rc::new(EventStream::new(&opening));
        let cx = &mut Context::from_waker(Waker::noop());
        assert!(stream.poll_next(cx).is_pending());
        for _ in 0..4 {
            assert!(!stream.is_high());
            stream.push(Bytes::from(vec![0; HIGHEST / 4]));
        }
        assert!(stream.is_high());
        assert!(matches!(stream.poll_next(cx), Poll::Ready(Some(Ok(_)))));
        assert!(!stream.is_high());
        stream.cut_off();
        assert!(matches!(stream.poll_next(cx), Poll::Ready(Some(Err(_)))));
    }
}
