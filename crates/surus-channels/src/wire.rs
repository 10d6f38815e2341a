//! What workers tell each other. They are of one binary: nobody else reads or writes it.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{Message, Position};

/// Bytes of letters with several entries, so that they fit into one of the post.
const ROOM: usize = 60 * 1024;

/// A message between workers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Letter {
    pub(crate) from: u64,
    /// Zero: for all.
    pub(crate) to: u64,
    pub(crate) content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Content {
    Published {
        channel: Box<str>,
        message: Message,
        position: Option<Position>,
    },
    /// How many have subscribed to these channels now.
    Subscribers(Vec<(Box<str>, u32)>),
    Joined {
        channel: Box<str>,
        member: Box<str>,
        info: Bytes,
    },
    Left {
        channel: Box<str>,
        member: Box<str>,
    },
    /// It is new, and asks who is there.
    Hello,
    Members(Vec<(Box<str>, Box<str>, Bytes)>),
    /// It tells everything once more: what it has told before does not count.
    Anew,
}

impl Letter {
    pub(crate) fn write(&self) -> Bytes {
        // It fails for nothing that is in it.
        Bytes::from(postcard::to_stdvec(self).unwrap_or_default())
    }

    pub(crate) fn read(bytes: &[u8]) -> Option<Letter> {
        postcard::from_bytes(bytes).ok()
    }
}

/// In lists that fit into a letter each.
pub(crate) fn in_letters<T>(all: Vec<T>, size: impl Fn(&T) -> usize) -> Vec<Vec<T>> {
    let mut lists = Vec::new();
    let (mut list, mut bytes) = (Vec::new(), 0);
    for item in all {
        let more = size(&item) + 16;
        if bytes + more > ROOM && !list.is_empty() {
            lists.push(std::mem::take(&mut list));
            bytes = 0;
        }
        bytes += more;
        list.push(item);
    }
    if !list.is_empty() {
        lists.push(list);
    }
    lists
}

/// A publication as it is kept.
pub(crate) fn to_keep(message: &Message) -> Vec<u8> {
    postcard::to_stdvec(message).unwrap_or_default()
}

pub(crate) fn kept(content: &[u8]) -> Option<Message> {
    postcard::from_bytes(content).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_read_as_they_were_written() {
        let letter = Letter {
            from: 1,
            to: u64::MAX,
            content: Content::Published {
                channel: "rööm".into(),
                message: Message {
                    event: "e".into(),
                    data: Bytes::from_static(b"\0\xff"),
                    binary: true,
                    except: "".into(),
                },
                position: Some(Position {
                    epoch: 7,
                    offset: 8,
                }),
            },
        };
        let written = letter.write();
        assert_eq!(Letter::read(&written), Some(letter));
        for end in 0..written.len() {
            assert_eq!(Letter::read(&written[..end]), None);
        }
        assert_eq!(Letter::read(b"\x01\x00\xff"), None);
    }

    #[test]
    fn lists_fit() {
        let lists = in_letters(vec![ROOM, 1, 1, ROOM / 2, ROOM / 2], |size| *size);
        assert_eq!(lists, [vec![ROOM], vec![1, 1, ROOM / 2], vec![ROOM / 2]]);
        assert_eq!(in_letters(Vec::<usize>::new(), |size| *size).len(), 0);
    }
}
