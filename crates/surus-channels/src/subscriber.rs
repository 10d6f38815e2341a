//! Who is told what happens.

use std::{cell::Cell, rc::Rc};

use crate::{Member, Publication};

thread_local! {
    static LAST: Cell<u64> = const { Cell::new(0) };
}

/// A number for a connection that subscribes: nobody else of this worker has it, or will have it.
pub fn next_id() -> u64 {
    let id = LAST.get() + 1;
    LAST.set(id);
    id
}

/// A client that has subscribed to channels. Its methods wait for nobody, and do not publish.
pub trait Subscriber {
    /// Something was published on a channel that it has subscribed to.
    fn deliver(&self, publication: &Rc<Publication>);

    /// Whether it has no room for more of what it has missed before it has subscribed: see [`crate::Recovery::behind`]. What is published
    /// from then on it gets anyway.
    fn is_full(&self) -> bool {
        false
    }

    /// Publications of this channel are lost for it: its client should notice, and come again.
    fn missed(&self, channel: &str);
}

/// Somebody who is told what happens in all channels of the server (or of all servers that share them), as this worker gets to know
/// it: each change once, in each worker. Its methods wait for nobody, and do not publish.
pub trait Observer {
    /// The first one has subscribed.
    fn occupied(&self, channel: &str) {
        let _ = channel;
    }

    /// The last one has unsubscribed.
    fn vacated(&self, channel: &str) {
        let _ = channel;
    }

    /// A member has come, with its first connection.
    fn joined(&self, channel: &str, member: &Member) {
        let _ = (channel, member);
    }

    /// A member has gone, with its last connection.
    fn left(&self, channel: &str, member: &Member) {
        let _ = (channel, member);
    }
}
