//! WebSockets (RFC 6455) over an upgraded connection.
//!
//! - [`frame`]: what frames are made of; [`decoder`]: from a client's bytes to events; [`held`]: what it keeps
//! - [`deflate`]: compressed messages
//! - [`serve`](serve()): one conversation between a client and an [`Application`]
//!
//! The handshake is the application's: who answers 101 has checked it.

pub(crate) mod decoder;
mod deflate;
pub(crate) mod frame;
mod held;
mod serve;
#[cfg(test)]
mod tests;

use std::cell::OnceCell;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;

pub use serve::serve;

/// A whole message, of one frame or several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Otherwise it is text: valid UTF-8.
    pub binary: bool,
    /// Its payload.
    pub data: Bytes,
    /// If it is for many: what is compressed once for all of them.
    pub shared: Option<Compressed>,
}

/// The compressed payload of a message, with the largest window; `None` inside if it is sent as it is.
pub type Compressed = Rc<OnceCell<Option<Bytes>>>;

/// Why a conversation ends (RFC 6455, 7.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Close {
    /// 1005: the client has given none. 1006: there was no closing handshake.
    pub code: u16,
    /// For people; at most 123 bytes.
    pub reason: String,
}

impl Close {
    /// The server, or the application, goes away.
    pub const GOING_AWAY: u16 = 1001;
    /// The client violates the protocol.
    pub const PROTOCOL: u16 = 1002;
    /// No code was given.
    pub const NONE: u16 = 1005;
    /// The connection has broken.
    pub const ABNORMAL: u16 = 1006;
    /// A text is not UTF-8, or a message cannot be decompressed.
    pub const INVALID: u16 = 1007;
    /// A message is too large.
    pub const TOO_LARGE: u16 = 1009;
    /// There is no room for it now.
    pub const TRY_AGAIN: u16 = 1013;

    /// Without a reason.
    pub fn new(code: u16) -> Self {
        Close {
            code,
            reason: String::new(),
        }
    }
}

/// What an application sends.
#[derive(Debug)]
pub enum Outgoing {
    /// A message.
    Message(Message),
    /// The end: nothing follows.
    Close(Close),
}

/// The application's side of a WebSocket.
pub trait Application {
    /// Pending while it takes no further message.
    fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<()>;
    /// Takes a message of the client.
    fn receive(&self, message: Message);
    /// What it sends next.
    fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Outgoing>;
    /// The server ends: it is to close.
    fn leave(&self);
    /// The client closes. What it has sent before may still be answered; then the application closes, too.
    fn finish(&self, close: Close);
    /// Nothing more comes from the client, and nothing reaches it. Called once or more.
    fn ended(&self, close: Close);
}

/// Bounds of one conversation.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The largest message of a client, in bytes.
    pub max_message: usize,
    /// How often the client is asked whether it is there. After two questions without an answer it is gone. Zero: never.
    pub ping: Duration,
    /// Both sides may compress messages (RFC 7692), without context takeover: the window of what is sent, in bits.
    pub deflate: Option<u8>,
}
