//! The output of a connection, and its state.

use std::cell::{Cell, RefCell};

use crate::connection::output::Output;
use crate::connection::slow_reader::SlowReader;
use crate::connection::transport::Transport;
use crate::Limits;

/// What happens to the buffered output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sending {
    /// Nothing yet.
    #[default]
    Open,
    /// The flusher sends it in its next round.
    Queued,
    /// The socket has not taken all of it: the connection's task writes the rest.
    Stuck,
}

#[derive(Debug, Default)]
pub(super) struct Writing {
    pub(super) output: RefCell<Output>,
    pub(super) sending: Cell<Sending>,
    stall: SlowReader,
}

impl Writing {
    pub(super) fn is_empty(&self) -> bool {
        self.output.borrow().is_empty()
    }

    /// Counts a tick of the clock. True if the client has blocked its response for longer than is allowed.
    pub(super) fn stalls(&self, limits: &Limits) -> bool {
        self.stall.tick(&self.output.borrow(), limits)
    }

    /// Writes what the socket takes now. False: the task has to write the rest, or handle an error.
    pub(super) fn flush_now(&self, transport: &dyn Transport) -> bool {
        let is_done = self.output.borrow_mut().try_flush(transport);
        self.sending.set(match is_done {
            true => Sending::Open,
            false => Sending::Stuck,
        });
        is_done
    }
}
