//! What is published.

use std::{
    any::{Any, TypeId},
    cell::RefCell,
    fmt,
    rc::Rc,
    str::FromStr,
};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// What somebody publishes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Its kind, for those who tell kinds apart; "" is none.
    pub event: Box<str>,
    /// Text, which is valid UTF-8, unless it is `binary`.
    pub data: Bytes,
    /// It is no text.
    pub binary: bool,
    /// The name of a connection that does not get it, if its subscribers have names; "" is nobody's.
    pub except: Box<str>,
}

/// A place in the history of a channel, as text `epoch:offset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Another one means another history: the old one is lost.
    pub epoch: u64,
    /// 1 is that of the first publication.
    pub offset: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}:{}", self.epoch, self.offset)
    }
}

/// A text is no position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoPosition;

impl FromStr for Position {
    type Err = NoPosition;

    fn from_str(text: &str) -> Result<Self, NoPosition> {
        let (epoch, offset) = text.split_once(':').ok_or(NoPosition)?;
        let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !is_plain(epoch) || !is_plain(offset) {
            return Err(NoPosition);
        }
        Ok(Position {
            epoch: u64::from_str_radix(epoch, 16).map_err(|_| NoPosition)?,
            offset: offset.parse().map_err(|_| NoPosition)?,
        })
    }
}

/// A message on its way to all subscribers of its channel.
pub struct Publication {
    /// The name of the channel.
    pub channel: Rc<str>,
    /// What was published.
    pub message: Message,
    /// Where it is in the history of the channel, if that has one.
    pub position: Option<Position>,
    made: RefCell<Vec<(TypeId, Rc<dyn Any>)>>,
}

impl Publication {
    pub(crate) fn new(channel: Rc<str>, message: Message, position: Option<Position>) -> Self {
        Publication {
            channel,
            message,
            position,
            made: RefCell::default(),
        }
    }

    /// What subscribers of one kind send to their clients, a frame say: it is made once for all of them, one value of each type.
    pub fn made<T: 'static>(&self, make: impl FnOnce(&Publication) -> T) -> Rc<T> {
        let of_type = |made: &[(TypeId, Rc<dyn Any>)]| {
            let found = made.iter().find(|(id, _)| *id == TypeId::of::<T>());
            found.and_then(|(_, value)| Rc::clone(value).downcast::<T>().ok())
        };
        if let Some(value) = of_type(&self.made.borrow()) {
            return value;
        }
        let value = Rc::new(make(self));
        let mut made = self.made.borrow_mut();
        made.push((TypeId::of::<T>(), Rc::clone(&value) as Rc<dyn Any>));
        value
    }
}

impl fmt::Debug for Publication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publication")
            .field("channel", &self.channel)
            .field("message", &self.message)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_texts() {
        for (epoch, offset) in [(0, 0), (u64::MAX, u64::MAX), (0xabc, 12)] {
            let position = Position { epoch, offset };
            assert_eq!(position.to_string().parse(), Ok(position));
        }
        for text in [
            "", ":", "1", "1:", ":1", "+1:1", "1:+1", "1:1:1", "x:1", "1:1 ", "1:a",
        ] {
            assert_eq!(text.parse::<Position>(), Err(NoPosition), "{text}");
        }
        let beyond = "10000000000000000:1";
        assert_eq!(beyond.parse::<Position>(), Err(NoPosition));
    }

    #[test]
    fn each_form_is_made_once() {
        let publication = Publication::new("a".into(), Message::default(), None);
        let (mut texts, mut numbers) = (0, 0);
        for _ in 0..3 {
            let text = publication.made(|publication| {
                texts += 1;
                publication.channel.to_string()
            });
            assert_eq!(*text, "a");
            numbers += *publication.made(|_| 1u8);
        }
        assert_eq!((texts, numbers), (1, 3));
    }
}
