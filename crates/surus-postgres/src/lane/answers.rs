//! What was sent, in its order, and what has come for it.

use std::{rc::Rc, time::Instant};

use bytes::{Buf, BytesMut};
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::{
    Header, Message, COPY_DATA_TAG, DATA_ROW_TAG, NOTICE_RESPONSE_TAG,
};

use super::{
    driver::{Driver, End},
    Job, State,
};
use crate::{
    copy::{Direction, Pipe},
    failure::{Failure, Kind},
    slot::{Buffer, Rows},
    statement::{Column, Statement},
    value::is_binary,
};

/// Longer messages are not read, unless they are rows: `memory_limit` bounds these. PostgreSQL's may have a gigabyte.
const LONGEST_MESSAGE: usize = 1 << 26;
/// A result of so few bytes is not refused for what others receive at the same time.
const SMALL: usize = 64 * 1024;
/// A larger buffer is not kept.
const LARGEST_BUFFER: usize = 1 << 20;

/// What was sent, and what has come for it so far.
pub(super) struct Sent {
    pub(super) what: What,
    pub(super) failure: Option<Failure>,
}

pub(super) enum What {
    Query {
        job: Job,
        statement: Rc<Statement>,
        data: Buffer,
        count: usize,
        affected: u64,
        rolled_back: bool,
        /// The server has taken it: what fails from here on may have done something.
        has_begun: bool,
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
    pub(super) fn is_wanted(&self) -> bool {
        match &self.what {
            What::Query { job, .. } => !job.slot.has_left(),
            What::Prepare { jobs, .. } => jobs.iter().any(|job| !job.slot.has_left()),
            What::Close => false,
        }
    }
}

impl Driver {
    pub(super) fn parse(&mut self) -> Result<(), End> {
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
                self.refuse(header.tag(), length)?;
                self.skip = length;
                continue;
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
            data.clear();
            return Ok(false);
        }
        let is_too_large = data.len() + length > job.limit
            || data.len() > SMALL && self.client.held.get() + length > job.limit;
        if is_too_large {
            data.clear();
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

    /// A message that is too long to be read. What nobody needs is left out.
    fn refuse(&self, tag: u8, length: usize) -> Result<(), End> {
        if tag == NOTICE_RESPONSE_TAG {
            return Ok(());
        }
        let front = self.sent.front().map(|sent| &sent.what);
        if let (COPY_DATA_TAG, Some(What::Query { job, .. })) = (tag, front) {
            // Its caller does not wait for the rest.
            job.slot.refuse(Failure::new(
                Kind::TooLarge,
                format!(
                    "A row of the COPY has {length} bytes, more than the {LONGEST_MESSAGE} that one may have"
                ),
            ));
            return Ok(());
        }
        Err(End::Lost(Failure::connection(format!(
            "the server has sent a message of {length} bytes, more than the {LONGEST_MESSAGE} that are read"
        ))))
    }

    /// The row at the front of the input.
    fn add_row(&mut self, length: usize) {
        if let Some(Sent {
            what: What::Query { data, count, .. },
            ..
        }) = self.sent.front_mut()
        {
            data.add(&self.input[5..length]);
            *count += 1;
        }
        self.input.advance(length);
    }

    fn receive(&mut self, message: Message) -> Result<(), End> {
        match message {
            Message::ErrorResponse(body) => {
                let failure = Failure::from_server(&body);
                // The end of the connection says more than what it does to a statement. But it need not follow: errors of
                // foreign servers and of parallel workers have these states, too, and are the statement's.
                if self.sent.is_empty() {
                    // It closes the connection, but not at this moment: what was sent until then would be lost.
                    return Err(End::Lost(failure.as_lost()));
                }
                if is_of_connection(&failure) {
                    self.last_words = Some(failure.as_lost());
                }
                if let Some(sent) = self.sent.front_mut() {
                    sent.failure.get_or_insert(failure);
                }
            }
            Message::ReadyForQuery(body) => return self.finish(body.status()),
            Message::NoticeResponse(_)
            | Message::ParameterStatus(_)
            | Message::NotificationResponse(_) => {}
            Message::CopyInResponse(_) => self.pipe()?.begin(Direction::ToServer),
            Message::CopyOutResponse(_) => self.pipe()?.begin(Direction::FromServer),
            Message::CopyData(body) => self.pipe()?.receive(body.into_bytes()),
            Message::CopyDone => {}
            message => {
                let sent = self.sent.front_mut().ok_or_else(unexpected)?;
                note(sent, &message)?;
                if let (Message::CommandComplete(_), Some(pipe)) = (&message, self.copying()) {
                    pipe.complete();
                }
            }
        }
        Ok(())
    }

    /// Of the COPY at the front.
    fn pipe(&self) -> Result<&Rc<Pipe>, End> {
        let pipe = self.copying();
        pipe.ok_or_else(|| {
            End::Lost(Failure::connection(
                "a statement that is no COPY has begun one",
            ))
        })
    }

    pub(super) fn copying(&self) -> Option<&Rc<Pipe>> {
        match &self.sent.front()?.what {
            What::Query { job, .. } => job.pipe.as_ref(),
            What::Prepare { .. } | What::Close => None,
        }
    }

    /// The statement at the front is answered.
    fn finish(&mut self, status: u8) -> Result<(), End> {
        let Sent { what, failure } = self.sent.pop_front().ok_or_else(unexpected)?;
        self.last_words = None;
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
                for old in self.statements.keep(statement.clone()) {
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
                has_begun,
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
                if has_begun || !is_stale(&failure) {
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
}

/// A message that belongs to the statement at the front.
fn note(sent: &mut Sent, message: &Message) -> Result<(), End> {
    match (message, &mut sent.what) {
        (Message::BindComplete, What::Query { has_begun, .. }) => *has_begun = true,
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

/// The statement was prepared for tables that have changed since, or is gone: if the server says so before it has begun.
fn is_stale(failure: &Failure) -> bool {
    matches!(failure.state.as_str(), "0A000" | "26000")
}
