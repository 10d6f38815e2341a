//! One connection: the task that owns it, and what others see of it.
//!
//! Answers come in the order of what was sent, each ended by `ReadyForQuery`; `sent` is that order. A caller that leaves
//! changes nothing in it: what comes for it is read and dropped.
//!
//! When all that is under way was given up, its time is not worth waiting for: the server is asked to cancel, and the
//! connection is dropped. Never otherwise, as the server cancels what it runs when it hears of it, which may be the next
//! statement, and another caller's.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    future::{poll_fn, Future},
    io,
    pin::{pin, Pin},
    rc::Rc,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use bytes::{Buf, BytesMut};
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::{
    backend::{Header, Message, DATA_ROW_TAG},
    frontend,
};
use tokio::{
    io::{AsyncReadExt, AsyncWrite},
    task::spawn_local,
    time::{sleep, Sleep},
};

use crate::{
    client::Client,
    failure::{Failure, Kind},
    handshake::{self, Connection, Key},
    known::Known,
    slot::{Rows, Slot},
    statement::{Column, Statement, Statements},
    stream::Stream,
    value::{is_binary, Parameter},
};

/// So many statements are under way at a time.
pub(crate) const DEPTH: usize = 64;
/// A connection whose oldest statement takes longer gets no more.
const SLOW: Duration = Duration::from_millis(20);
/// So long may what nobody waits for run on.
const GRACE: Duration = Duration::from_millis(100);
/// A connection that nobody has used for so long is closed.
const IDLE: Duration = Duration::from_secs(60);
/// Longer messages that are no rows are not PostgreSQL's.
const LONGEST_MESSAGE: usize = 1 << 24;
/// What is read at a time, at least.
const CHUNK: usize = 16 * 1024;
/// A larger buffer is not kept.
const LARGEST_BUFFER: usize = 1 << 20;

/// A statement with its parameters.
pub(crate) struct Job {
    known: Rc<Known>,
    parameters: Vec<Parameter>,
    limit: usize,
    pub(crate) slot: Rc<Slot>,
    /// It is a transaction's: a second try would not be the same.
    is_bound: bool,
    is_second: bool,
    /// Nothing may be sent behind it.
    is_last: bool,
}

impl Job {
    pub(crate) fn new(
        known: Rc<Known>,
        parameters: Vec<Parameter>,
        limit: usize,
        slot: Rc<Slot>,
        is_bound: bool,
    ) -> Self {
        Job {
            known,
            parameters,
            limit,
            slot,
            is_bound,
            is_second: false,
            is_last: false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Opening,
    Shared,
    /// A transaction gets it when it has finished what it has to do.
    Reserved,
    /// A transaction's.
    Bound,
    Closed,
}

/// What others see of a connection.
pub(crate) struct Lane {
    inbox: RefCell<VecDeque<Job>>,
    /// Statements that it was given and has not answered.
    pub(crate) load: Cell<usize>,
    /// Those of them behind which nothing may be sent.
    lasts: Cell<usize>,
    pub(crate) state: Cell<State>,
    /// The server has said so, after the last statement.
    pub(crate) in_transaction: Cell<bool>,
    /// Since when the oldest statement is under way.
    since: Cell<Instant>,
    cut: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Lane {
    pub(crate) fn new() -> Rc<Self> {
        Rc::new(Lane {
            inbox: RefCell::default(),
            load: Cell::new(0),
            lasts: Cell::new(0),
            state: Cell::new(State::Opening),
            in_transaction: Cell::new(false),
            since: Cell::new(Instant::now()),
            cut: Cell::new(false),
            waker: RefCell::default(),
        })
    }

    pub(crate) fn place(self: &Rc<Self>, mut job: Job) {
        job.is_last = !job.known.is_quick();
        self.lasts.set(self.lasts.get() + usize::from(job.is_last));
        job.slot.place(self);
        let load = self.load.get();
        if load == 0 {
            self.since.set(Instant::now());
        }
        self.load.set(load + 1);
        self.inbox.borrow_mut().push_back(job);
        self.wake();
    }

    pub(crate) fn takes_more(&self) -> bool {
        let load = self.load.get();
        self.state.get() == State::Shared
            && load < DEPTH
            && (load == 0 || self.lasts.get() == 0 && self.since.get().elapsed() < SLOW)
    }

    pub(crate) fn wake(&self) {
        if let Some(waker) = self.waker.borrow().as_ref() {
            waker.wake_by_ref();
        }
    }

    /// It is for everybody again.
    pub(crate) fn release(&self) {
        if self.state.get() == State::Bound {
            self.state.set(State::Shared);
            self.wake();
        }
    }

    /// Ends it, whatever it does.
    pub(crate) fn cut(&self) {
        self.cut.set(true);
        self.wake();
    }
}

/// What was sent, and what has come for it so far.
struct Sent {
    what: What,
    failure: Option<Failure>,
}

enum What {
    Query {
        job: Job,
        statement: Rc<Statement>,
        data: Vec<u8>,
        count: usize,
        affected: u64,
        rolled_back: bool,
    },
    Prepare {
        name: String,
        sql: Rc<str>,
        parameters: Vec<u32>,
        columns: Vec<Column>,
        /// Who wants to run it.
        jobs: Vec<Job>,
    },
    Close,
}

impl Sent {
    fn is_wanted(&self) -> bool {
        match &self.what {
            What::Query { job, .. } => !job.slot.has_left(),
            What::Prepare { jobs, .. } => jobs.iter().any(|job| !job.slot.has_left()),
            What::Close => false,
        }
    }
}

/// How a connection ends.
enum End {
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

struct Driver {
    client: Rc<Client>,
    lane: Rc<Lane>,
    stream: Stream,
    key: Key,
    input: BytesMut,
    output: BytesMut,
    /// Bytes of a row that is not wanted, which are still to come.
    skip: usize,
    sent: VecDeque<Sent>,
    statements: Statements,
    /// How many were prepared, for their names.
    prepared: u64,
    /// Why the server closes the connection.
    last_words: Option<Failure>,
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
        while self.read(cx)? {
            has_read = true;
            self.parse()?;
        }
        if has_read {
            self.client.clone().pump();
        }
        self.take_jobs();
        while !self.output.is_empty() {
            match Pin::new(&mut self.stream).poll_write(cx, &self.output)? {
                Poll::Ready(0) => return Err(io::Error::from(io::ErrorKind::WriteZero).into()),
                Poll::Ready(written) => self.output.advance(written),
                Poll::Pending => break,
            }
        }
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
        while self.sent.len() < DEPTH {
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

    /// A statement that this connection was given is answered.
    fn done(&self, job: &Job) {
        let lane = &self.lane;
        lane.load.set(lane.load.get() - 1);
        lane.lasts.set(lane.lasts.get() - usize::from(job.is_last));
    }

    fn answer(&self, job: &Job, answer: Result<Rows, Failure>) {
        self.done(job);
        job.slot.answer(answer);
    }

    fn send(&mut self, job: Job) {
        if let Some(statement) = self.statements.find(&job.known.sql) {
            return self.run(job, statement);
        }
        for sent in &mut self.sent {
            if let What::Prepare { sql, jobs, .. } = &mut sent.what {
                if *sql == job.known.sql {
                    return jobs.push(job);
                }
            }
        }
        self.prepared += 1;
        let name = format!("s{}", self.prepared);
        let before = self.output.len();
        if let Err(error) = self.write_prepare(&name, &job.known.sql) {
            self.output.truncate(before);
            return self.answer(&job, Err(Failure::usage(error.to_string())));
        }
        self.sent.push_back(Sent {
            what: What::Prepare {
                name,
                sql: job.known.sql.clone(),
                parameters: Vec::new(),
                columns: Vec::new(),
                jobs: vec![job],
            },
            failure: None,
        });
    }

    fn write_prepare(&mut self, name: &str, sql: &str) -> io::Result<()> {
        frontend::parse(name, sql, [], &mut self.output)?;
        frontend::describe(b'S', name, &mut self.output)?;
        frontend::sync(&mut self.output);
        Ok(())
    }

    fn run(&mut self, job: Job, statement: Rc<Statement>) {
        let before = self.output.len();
        match self.write_run(&job, &statement) {
            Ok(()) => self.sent.push_back(Sent {
                what: What::Query {
                    job,
                    statement,
                    data: Vec::new(),
                    count: 0,
                    affected: 0,
                    rolled_back: false,
                },
                failure: None,
            }),
            Err(failure) => {
                self.output.truncate(before);
                self.answer(&job, Err(failure));
            }
        }
    }

    fn write_run(&mut self, job: &Job, statement: &Statement) -> Result<(), Failure> {
        let (wanted, given) = (&statement.parameters, &job.parameters);
        if wanted.len() != given.len() {
            return Err(Failure::usage(format!(
                "The statement has {} parameters, and {} were given",
                wanted.len(),
                given.len()
            )));
        }
        let pairs = || given.iter().zip(wanted);
        for (number, (value, &kind)) in pairs().enumerate() {
            if let Some(why) = value.refusal(kind) {
                return Err(Failure::usage(format!("${} {why}", number + 1)));
            }
        }
        let formats = pairs().map(|(value, &kind)| value.format(kind));
        let results = statement.columns.iter().map(|it| i16::from(it.binary));
        let written = frontend::bind(
            "",
            &statement.name,
            formats,
            pairs(),
            |(value, &kind), to| Ok(value.write(kind, to)),
            results,
            &mut self.output,
        );
        if written.is_err() {
            return Err(Failure::usage(
                "The parameters are larger than a message may be",
            ));
        }
        frontend::execute("", 0, &mut self.output)?;
        frontend::sync(&mut self.output);
        Ok(())
    }

    fn parse(&mut self) -> Result<(), End> {
        loop {
            if self.skip > 0 {
                let now = self.skip.min(self.input.len());
                self.input.advance(now);
                self.skip -= now;
                if self.skip > 0 {
                    return Ok(());
                }
            }
            let Some(header) = Header::parse(&self.input)? else {
                break;
            };
            let length = usize::try_from(header.len()).unwrap_or(0) + 1;
            if header.tag() == DATA_ROW_TAG {
                if !self.wants_row(length)? {
                    self.skip = length;
                } else if self.input.len() < length {
                    self.input.reserve(length - self.input.len());
                    break;
                } else {
                    self.add_row(length);
                }
                continue;
            }
            if length > LONGEST_MESSAGE {
                return Err(unexpected());
            }
            match Message::parse(&mut self.input)? {
                Some(message) => self.receive(message)?,
                None => break,
            }
        }
        if self.input.is_empty() && self.input.capacity() > LARGEST_BUFFER {
            self.input = BytesMut::new();
        }
        Ok(())
    }

    /// Whether the row that comes belongs to an answer that somebody waits for, and that has room for it.
    fn wants_row(&mut self, length: usize) -> Result<bool, End> {
        let Some(Sent {
            what: What::Query { job, data, .. },
            failure,
        }) = self.sent.front_mut()
        else {
            return Err(unexpected());
        };
        if job.slot.has_left() || failure.is_some() {
            *data = Vec::new();
            return Ok(false);
        }
        if data.len() + length > job.limit {
            *data = Vec::new();
            // Its caller does not wait for the rest.
            job.slot.refuse(Failure::new(
                Kind::TooLarge,
                format!(
                    "The result has more than the {} bytes that are left of memory_limit",
                    job.limit
                ),
            ));
            return Ok(false);
        }
        Ok(true)
    }

    /// The row at the front of the input.
    fn add_row(&mut self, length: usize) {
        if let Some(Sent {
            what: What::Query { data, count, .. },
            ..
        }) = self.sent.front_mut()
        {
            data.extend_from_slice(&self.input[5..length]);
            *count += 1;
        }
        self.input.advance(length);
    }

    fn receive(&mut self, message: Message) -> Result<(), End> {
        match message {
            Message::ErrorResponse(body) => {
                let failure = Failure::from_server(&body);
                match self.sent.front_mut() {
                    // The end of the connection says more than what it does to a statement.
                    Some(sent) if sent.failure.is_none() && !is_of_connection(&failure) => {
                        sent.failure = Some(failure);
                    }
                    Some(_) if !is_of_connection(&failure) => {}
                    _ => self.last_words = Some(failure.as_lost()),
                }
            }
            Message::ReadyForQuery(body) => return self.finish(body.status()),
            Message::NoticeResponse(_)
            | Message::ParameterStatus(_)
            | Message::NotificationResponse(_) => {}
            Message::CopyInResponse(_) | Message::CopyOutResponse(_) => {
                return Err(End::Lost(Failure::connection(
                    "COPY is not possible with this client",
                )))
            }
            message => {
                let sent = self.sent.front_mut().ok_or_else(unexpected)?;
                note(sent, &message)?;
            }
        }
        Ok(())
    }

    /// The statement at the front is answered.
    fn finish(&mut self, status: u8) -> Result<(), End> {
        let Sent { what, failure } = self.sent.pop_front().ok_or_else(unexpected)?;
        let now = Instant::now();
        let time = now - self.lane.since.replace(now);
        self.lane.in_transaction.set(status != b'I');
        if status != b'I' && self.lane.state.get() != State::Bound {
            if let What::Query { job, .. } = what {
                let why = "The statement has left a transaction open on a connection that others use: use transaction()";
                self.answer(&job, Err(Failure::usage(why)));
            }
            return Err(End::Lost(Failure::connection(
                "another statement has begun a transaction on it",
            )));
        }
        match what {
            What::Close => {}
            What::Prepare {
                name,
                sql,
                parameters,
                columns,
                jobs,
            } => {
                if let Some(failure) = failure {
                    for job in &jobs {
                        self.answer(job, Err(failure.clone()));
                    }
                    return Ok(());
                }
                let statement = Rc::new(Statement {
                    name,
                    sql,
                    parameters,
                    columns,
                });
                if let Some(old) = self.statements.keep(statement.clone()) {
                    self.close(&old)?;
                }
                for job in jobs {
                    if job.slot.has_left() {
                        self.done(&job);
                    } else {
                        self.run(job, statement.clone());
                    }
                }
            }
            What::Query {
                mut job,
                statement,
                data,
                count,
                affected,
                rolled_back,
            } => {
                job.known.note(time);
                let Some(failure) = failure else {
                    let rows = Rows {
                        statement,
                        data,
                        count,
                        affected,
                        rolled_back,
                    };
                    self.answer(&job, Ok(rows));
                    return Ok(());
                };
                if !is_stale(&failure) {
                    self.answer(&job, Err(failure));
                    return Ok(());
                }
                if let Some(old) = self.statements.forget(&job.known.sql) {
                    self.close(&old)?;
                }
                if job.is_second || job.is_bound {
                    self.answer(&job, Err(failure));
                } else {
                    job.is_second = true;
                    self.send(job);
                }
            }
        }
        Ok(())
    }

    fn close(&mut self, statement: &Statement) -> Result<(), End> {
        frontend::close(b'S', &statement.name, &mut self.output)?;
        frontend::sync(&mut self.output);
        self.sent.push_back(Sent {
            what: What::Close,
            failure: None,
        });
        Ok(())
    }

    fn end(mut self, end: End) {
        let is_bound = self.lane.state.replace(State::Closed) == State::Bound;
        let mut unsent = self.lane.inbox.take();
        let failure = match &end {
            End::Lost(failure) => failure.as_lost().tell(|why| {
                format!("The connection to PostgreSQL was lost: {why}. Statements under way may have been executed")
            }),
            _ => Failure::connection("The connection to PostgreSQL was closed"),
        };
        let is_busy = !self.sent.is_empty();
        for sent in std::mem::take(&mut self.sent) {
            match sent.what {
                What::Query { job, .. } => job.slot.answer(Err(failure.clone())),
                // They have not been sent.
                What::Prepare { jobs, .. } => unsent.extend(jobs),
                What::Close => {}
            }
        }
        if is_bound {
            for job in unsent.drain(..) {
                job.slot.answer(Err(failure.clone()));
            }
        }
        unsent.retain(|job| !job.slot.has_left());
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

/// A message that belongs to the statement at the front.
fn note(sent: &mut Sent, message: &Message) -> Result<(), End> {
    match (message, &mut sent.what) {
        (Message::ParseComplete | Message::BindComplete | Message::CloseComplete, _)
        | (Message::NoData | Message::EmptyQueryResponse, _) => {}
        (Message::ParameterDescription(body), What::Prepare { parameters, .. }) => {
            *parameters = body.parameters().collect()?;
        }
        (Message::RowDescription(body), What::Prepare { columns, .. }) => {
            let column = |field: postgres_protocol::message::backend::Field<'_>| {
                Ok(Column {
                    name: field.name().into(),
                    kind: field.type_oid(),
                    binary: is_binary(field.type_oid()),
                })
            };
            *columns = body.fields().map(column).collect()?;
        }
        (
            Message::CommandComplete(body),
            What::Query {
                affected,
                rolled_back,
                ..
            },
        ) => {
            let tag = body.tag()?;
            *affected = tag
                .rsplit(' ')
                .next()
                .and_then(|it| it.parse().ok())
                .unwrap_or(0);
            *rolled_back = tag == "ROLLBACK";
        }
        _ => return Err(unexpected()),
    }
    Ok(())
}

fn unexpected() -> End {
    End::Lost(Failure::connection(
        "the server has sent what was not asked for",
    ))
}

/// Class 57P: the server ends the connection.
fn is_of_connection(failure: &Failure) -> bool {
    matches!(
        failure.state.as_str(),
        "57P01" | "57P02" | "57P03" | "57P05"
    )
}

/// The statement was prepared for tables that have changed since, or is gone.
fn is_stale(failure: &Failure) -> bool {
    matches!(failure.state.as_str(), "0A000" | "26000")
}
