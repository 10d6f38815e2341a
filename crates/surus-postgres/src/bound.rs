//! A connection for a transaction.

use std::{cell::Cell, rc::Rc};

use crate::{
    client::{Client, LONGEST_QUEUE},
    copy::{Copy, Pipe},
    failure::{Failure, Kind},
    lane::{Job, Lane, State},
    slot::{Slot, Ticket},
    sql,
    value::Parameter,
};

/// A connection that nobody else uses. Dropping it closes it, whatever it runs.
pub struct Bound {
    lane: Rc<Lane>,
    client: Rc<Client>,
    is_over: Cell<bool>,
}

impl std::fmt::Debug for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Bound")
    }
}

impl Bound {
    pub(crate) fn new(lane: Rc<Lane>, client: Rc<Client>) -> Self {
        Bound {
            lane,
            client,
            is_over: Cell::new(false),
        }
    }

    /// As [`Client::submit`].
    ///
    /// # Errors
    /// It must not be sent, or the connection is lost.
    pub fn submit(
        &self,
        text: &str,
        parameters: Vec<Parameter>,
        limit: usize,
    ) -> Result<Ticket, Failure> {
        match sql::refused(text, true) {
            Some(word) => Err(Failure::usage(format!(
                "{word} is not for the code of a transaction: transaction() begins and ends it"
            ))),
            None => self.control(text, parameters, limit),
        }
    }

    /// The same for `BEGIN`, `COMMIT` and `ROLLBACK`.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn control(
        &self,
        text: &str,
        parameters: Vec<Parameter>,
        limit: usize,
    ) -> Result<Ticket, Failure> {
        let slot = self.check()?;
        let known = self.client.known(text);
        let job = Job::new(known, parameters, limit, slot.clone(), true);
        self.lane.place(job);
        Ok(Ticket::new(slot, self.client.clone()))
    }

    pub(crate) fn submit_copy(&self, text: &str) -> Result<Copy, Failure> {
        if !sql::is_copy(text) {
            return Err(Failure::usage("The statement is no COPY"));
        }
        let slot = self.check()?;
        let pipe = Rc::<Pipe>::default();
        let known = self.client.known(text);
        let job = Job::new(known, Vec::new(), 0, slot.clone(), true);
        self.lane.place(job.with_pipe(pipe.clone()));
        let ticket = Ticket::new(slot, self.client.clone());
        Ok(Copy::new(pipe, self.lane.clone(), ticket))
    }

    fn check(&self) -> Result<Rc<Slot>, Failure> {
        if self.lane.state.get() != State::Bound {
            return Err(Failure::connection(
                "The connection of the transaction was lost: it is rolled back",
            ));
        }
        if self.lane.load.get() >= LONGEST_QUEUE {
            return Err(Failure::new(
                Kind::Busy,
                "Too many statements of this transaction wait for each other",
            ));
        }
        Ok(Rc::default())
    }

    /// The transaction has ended: others may use the connection, unless it has not.
    pub fn release(&self) {
        self.is_over.set(true);
        if self.lane.load.get() == 0 && !self.lane.in_transaction.get() {
            self.lane.release();
        } else {
            self.lane.cut();
        }
        self.client.pump();
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        if !self.is_over.get() {
            self.lane.cut();
        }
    }
}
