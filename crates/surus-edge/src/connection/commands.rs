//! Commands that others give to a connection's task.

use std::cell::{Cell, RefCell};
use std::task::{Context, Waker};

/// Carried out when the task is next polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Finish the request in flight, then close; close at once if there is none.
    Finish,
    /// The same for a connection that seems idle: a request that has arrived while the thread was busy is still
    /// answered, as the last one.
    Retire,
    /// Give up: drop the connection and the request in flight.
    Abort,
}

/// The command that was not carried out yet, and the task to wake for it.
#[derive(Debug, Default)]
pub(super) struct Commands {
    next: Cell<Option<Command>>,
    task: RefCell<Option<Waker>>,
}

impl Commands {
    pub(super) fn give(&self, command: Command) {
        let is_stricter = self.next.get() == Some(Command::Finish);
        if !(is_stricter && command == Command::Retire) {
            self.next.set(Some(command));
        }
        self.wake();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.next.get().is_none()
    }

    /// The command given since the last poll, if any. Registers the task to wake for the next one.
    pub(super) fn poll(&self, cx: &Context<'_>) -> Option<Command> {
        let mut task = self.task.borrow_mut();
        if !task
            .as_ref()
            .is_some_and(|waker| waker.will_wake(cx.waker()))
        {
            *task = Some(cx.waker().clone());
        }
        self.next.take()
    }

    pub(super) fn wake(&self) {
        if let Some(waker) = self.task.borrow().as_ref() {
            waker.wake_by_ref();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stricter_stays() {
        let cx = Context::from_waker(Waker::noop());
        let commands = Commands::default();
        assert!(commands.is_empty());
        for (first, second, heard) in [
            (Command::Finish, Command::Retire, Command::Finish),
            (Command::Retire, Command::Finish, Command::Finish),
            (Command::Finish, Command::Abort, Command::Abort),
            (Command::Retire, Command::Abort, Command::Abort),
        ] {
            commands.give(first);
            commands.give(second);
            assert!(!commands.is_empty());
            assert_eq!(commands.poll(&cx), Some(heard), "{first:?}, {second:?}");
            assert_eq!(commands.poll(&cx), None);
        }
    }
}
