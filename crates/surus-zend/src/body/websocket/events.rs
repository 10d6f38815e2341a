//! What happens to a WebSocket that no fiber waits for.

use std::rc::Rc;

/// What a fiber of such a WebSocket is for; with the numbers of C.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Event {
    /// The request itself, up to the end of `onOpen`.
    #[default]
    Open = 0,
    /// Messages have come.
    Messages = 1,
    /// It is over, and no messages are left.
    End = 2,
}

/// Sees to it that such a fiber runs.
pub(crate) trait Listener {
    /// Something has happened: see [`super::WebSocket::next_event`]. May be called within PHP.
    fn notice(self: Rc<Self>);
}
