//! What is published, as the channels of all workers have it.

use std::cell::OnceCell;
use std::fmt;
use std::io;
use std::rc::Rc;

use bytes::Bytes;
use surus_channels::Message;

use crate::outgoing;

/// The name of a connection: two numbers, as clients expect it. No other connection of any worker has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SocketId(u64, u64);

impl SocketId {
    /// One that nobody has.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub(crate) fn random() -> io::Result<Self> {
        let number = getrandom::u64().map_err(io::Error::other)?;
        Ok(SocketId(number >> 32, number & u64::from(u32::MAX)))
    }

    /// What a server says; `None`: no connection can have this name.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let number = |part: &str| match part.bytes().all(|byte| byte.is_ascii_digit()) {
            true => part.parse().ok(),
            false => None,
        };
        let (first, second) = text.split_once('.')?;
        Some(SocketId(number(first)?, number(second)?))
    }
}

impl fmt::Display for SocketId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// An event of a client for the others of a channel.
///
/// The channels have no place for the member who has sent it: it stands behind the connection that does not get it.
pub(crate) fn of_client(
    name: String,
    data: &str,
    socket: SocketId,
    member: Option<&str>,
) -> Message {
    let member = member.map_or_else(String::new, |member| format!(";{member}"));
    Message {
        event: name.into(),
        data: Bytes::copy_from_slice(data.as_bytes()),
        binary: false,
        except: format!("{socket}{member}").into(),
    }
}

/// What connections have of a publication, made once for all of them.
#[derive(Debug)]
pub(crate) struct Made {
    /// `None`: it is nothing that this protocol can carry.
    pub(crate) frame: Option<Frame>,
    /// The connection that does not get it.
    pub(crate) except: Option<SocketId>,
}

impl Made {
    /// `channel`: the name by which clients know it.
    pub(crate) fn of(channel: &str, message: &Message) -> Made {
        let (except, member) = match message.except.split_once(';') {
            Some((except, member)) => (except, Some(member)),
            None => (&*message.except, None),
        };
        let text = std::str::from_utf8(&message.data).ok();
        Made {
            frame: text
                .filter(|_| !message.binary)
                .map(|text| outgoing::event(channel, &message.event, text, member)),
            except: SocketId::parse(except),
        }
    }
}

/// A text for clients. What is for many is made once.
#[derive(Clone, Debug)]
pub struct Frame {
    /// JSON.
    pub text: Bytes,
    /// If it is for many: what the server makes of it once for all of them.
    pub shared: Option<Rc<OnceCell<Option<Bytes>>>>,
}

impl Frame {
    pub(crate) fn one(text: impl Into<Bytes>) -> Self {
        Frame {
            text: text.into(),
            shared: None,
        }
    }

    pub(crate) fn many(text: impl Into<Bytes>) -> Self {
        Frame {
            text: text.into(),
            shared: Some(Rc::default()),
        }
    }
}
