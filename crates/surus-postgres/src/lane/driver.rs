//! The task that owns a connection: it reads, writes and keeps time.

use std::{
    collections::VecDeque,
    future::{poll_fn, Future},
    io,
    pin::{pin, Pin},
    rc::Rc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::BytesMut;
use tokio::{
    io::{AsyncReadExt, AsyncWrite},
    task::spawn_local,
    time::{sleep, Sleep},
};

use super::{
    answers::{Sent, What},
    Job, Lane, State, DEPTH,
};
use crate::{
    client::Client,
    failure::Failure,
    handshake::{self, Connection, Key},
    slot::Rows,
    statement::Statements,
    stream::Stream,
};

/// So long may what nobody waits for run on.
const GRACE: Duration = Duration::from_millis(100);
/// A connection that nobody has used for so long is closed.
const IDLE: Duration = Duration::from_secs(60);
/// So many connections a statement may lose before it is sent.
const MOST_MOVES: u32 = 100;
/// What is read at a time, at least.
const CHUNK: usize = 16 * 1024;

/// How a connection ends.
pub(super) enum End {
    /// It is lost.
    Lost(Failure),
    /// Nobody wants what it does.
    Cut,
    /// Nobody has used it for long.
    Unused,
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        End::Lost(Failure::connection(error.to_string()))
    }
}

/// The task of a connection, from its beginning to its end.
pub(crate) async fn run(client: Rc<Client>, lane: Rc<Lane>) {
    let Connection { stream, key, input } =
        match handshake::connect(&client.config, &*client.resolve).await {
            Ok(connection) => connection,
            Err(failure) => {
                lane.state.set(State::Closed);
                return client.not_opened(&lane, failure);
            }
        };
    lane.state.set(State::Shared);
    client.opened();
    let mut driver = Driver {
        client,
        lane,
        stream,
        key,
        input,
        output: BytesMut::new(),
        skip: 0,
        sent: VecDeque::new(),
        statements: Statements::default(),
        prepared: 0,
        last_words: None,
        grace: None,
        idle: Box::pin(sleep(IDLE)),
        is_used: false,
    };
    let end = poll_fn(|cx| driver.poll(cx)).await;
    driver.end(end);
}

pub(super) struct Driver {
    pub(super) client: Rc<Client>,
    pub(super) lane: Rc<Lane>,
    stream: Stream,
    key: Key,
    pub(super) input: BytesMut,
    pub(super) output: BytesMut,
    /// Bytes of a row that is not wanted, which are still to come.
    pub(super) skip: usize,
    pub(super) sent: VecDeque<Sent>,
    pub(super) statements: Statements,
    /// How many were prepared, for their names.
    pub(super) prepared: u64,
    /// Why the server closes the connection.
    pub(super) last_words: Option<Failure>,
    grace: Option<Pin<Box<Sleep>>>,
    idle: Pin<Box<Sleep>>,
    /// Since `idle` began.
    is_used: bool,
}

impl Driver {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        {
            let mut waker = self.lane.waker.borrow_mut();
            if !waker
                .as_ref()
                .is_some_and(|known| known.will_wake(cx.waker()))
            {
                *waker = Some(cx.waker().clone());
            }
        }
        match self.turn(cx) {
            Ok(()) => Poll::Pending,
            Err(end) => Poll::Ready(end),
        }
    }

    /// Reads and writes what can be. Before it writes, it reads: the server may have said goodbye.
    fn turn(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        if self.lane.cut.get() {
            return Err(End::Cut);
        }
        let mut has_read = false;
        while !self.copying().is_some_and(|pipe| pipe.is_full()) && self.read(cx)? {
            has_read = true;
            self.parse()?;
        }
        if has_read {
            self.client.clone().pump();
        }
        self.take_jobs();
        loop {
            // Each time: nobody would wake this task for what is left once all before it is written.
            if let Some(pipe) = self.copying().cloned() {
                let failed = self.sent.front().is_some_and(|sent| sent.failure.is_some());
                pipe.send(failed, &mut self.output);
            }
            if self.output.is_empty() || !self.stream.send(cx, &mut self.output)? {
                break;
            }
        }
        // TLS has a buffer of its own.
        let _ = Pin::new(&mut self.stream).poll_flush(cx)?;
        if self.lane.state.get() == State::Reserved && self.lane.load.get() == 0 {
            self.lane.state.set(State::Shared);
            self.client.clone().pump();
        }
        self.look_at_clocks(cx)
    }

    fn read(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        self.input.reserve(CHUNK);
        let reading = pin!(self.stream.read_buf(&mut self.input));
        match reading.poll(cx)? {
            Poll::Pending => Ok(false),
            Poll::Ready(0) => {
                let closed = || Failure::connection("the server has closed it");
                let failure = self.last_words.take();
                Err(End::Lost(failure.unwrap_or_else(closed)))
            }
            Poll::Ready(_) => Ok(true),
        }
    }

    fn look_at_clocks(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        if self.sent.is_empty() || self.sent.iter().any(Sent::is_wanted) {
            self.grace = None;
        } else {
            let grace = self.grace.get_or_insert_with(|| Box::pin(sleep(GRACE)));
            if grace.as_mut().poll(cx).is_ready() {
                return Err(End::Cut);
            }
        }
        if self.idle.as_mut().poll(cx).is_ready() {
            let is_free = self.lane.load.get() == 0 && self.lane.state.get() == State::Shared;
            if is_free && !std::mem::take(&mut self.is_used) {
                return Err(End::Unused);
            }
            self.idle = Box::pin(sleep(IDLE));
            let _ = self.idle.as_mut().poll(cx);
        }
        Ok(())
    }

    fn take_jobs(&mut self) {
        while self.sent.len() < DEPTH && !self.has_copy() {
            if self.is_next_too_early() {
                return;
            }
            // A server that has ended an idle connection would take nothing more, and nobody would know that. The event loop tells
            // what has come, and then others send these.
            let is_idle = self.sent.is_empty() && self.output.is_empty();
            if is_idle && !self.lane.inbox.borrow().is_empty() && !self.stream.is_quiet() {
                return;
            }
            let given = self.lane.inbox.borrow_mut().pop_front();
            let Some(job) = given else { return };
            self.is_used = true;
            if job.slot.has_left() {
                self.done(&job);
            } else {
                self.send(job);
            }
        }
    }

    /// The server takes nothing else in the middle of one.
    fn has_copy(&self) -> bool {
        let is_copy = |sent: &Sent| match &sent.what {
            What::Query { job, .. } => job.pipe.is_some(),
            What::Prepare { jobs, .. } => jobs.iter().any(|job| job.pipe.is_some()),
            What::Close => false,
        };
        self.lane.state.get() == State::Bound && self.sent.iter().any(is_copy)
    }

    /// Statements of a transaction run in their order: its end must not overtake one that is still being prepared, which
    /// would then run outside of it.
    fn is_next_too_early(&self) -> bool {
        let inbox = self.lane.inbox.borrow();
        let is_of_another = |sent: &Sent, job: &Job| matches!(&sent.what, What::Prepare { sql, .. } if *sql != job.known.sql);
        inbox.front().is_some_and(|job| {
            job.is_bound && self.sent.iter().any(|sent| is_of_another(sent, job))
        })
    }

    /// A statement that this connection was given is answered.
    pub(super) fn done(&self, job: &Job) {
        let lane = &self.lane;
        lane.load.set(lane.load.get() - 1);
        lane.lasts.set(lane.lasts.get() - usize::from(job.is_last));
    }

    pub(super) fn answer(&self, job: &Job, answer: Result<Rows, Failure>) {
        self.done(job);
        job.slot.answer(answer);
    }

    fn end(mut self, end: End) {
        self.lane.state.set(State::Closed);
        let count = match &end {
            End::Unused => &self.client.unused,
            End::Lost(_) | End::Cut => &self.client.lost,
        };
        count.set(count.get() + 1);
        let waiting = self.lane.inbox.take();
        let failure = match &end {
            End::Lost(failure) => failure.as_lost().tell(|why| {
                format!("The connection to PostgreSQL was lost: {why}. Statements under way may have been executed")
            }),
            _ => Failure::connection("The connection to PostgreSQL was closed"),
        };
        let is_busy = !self.sent.is_empty();
        let mut unsent = VecDeque::new();
        for sent in std::mem::take(&mut self.sent) {
            match sent.what {
                What::Query { job, .. } => job.slot.answer(Err(failure.clone())),
                // They have not been executed.
                What::Prepare { jobs, .. } => unsent.extend(jobs),
                What::Close => {}
            }
        }
        // Others may send them. What the server was asked to prepare only once: it may be that which ends connections.
        let passes = |mut job: Job, was_sent: bool| {
            let is_given_up = job.is_bound || was_sent && job.is_second || job.moves == MOST_MOVES;
            job.is_second |= was_sent;
            job.moves += 1;
            match job.slot.has_left() {
                true => None,
                false if is_given_up => {
                    job.slot.answer(Err(failure.clone()));
                    None
                }
                false => Some(job),
            }
        };
        let unsent = unsent.into_iter().filter_map(|job| passes(job, true));
        let mut unsent: VecDeque<_> = unsent.collect();
        unsent.extend(waiting.into_iter().filter_map(|job| passes(job, false)));
        self.lane.load.set(0);
        if matches!(end, End::Cut) && is_busy {
            let (client, stream, key) = (self.client.clone(), self.stream, self.key);
            spawn_local(async move {
                handshake::cancel(&client.config, &*client.resolve, key).await;
                // Only now: until it is closed, no other connection of the server has this key.
                drop(stream);
            });
        }
        self.client.closed(&self.lane, unsent);
    }
}
