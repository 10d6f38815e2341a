//! Topics: who has subscribed gets each text that is published, wherever that happens: see `shared/post.rs`.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
    rc::Rc,
};

use bytes::Bytes;

use super::{SocketMessage, WebSocket};

/// Bytes of the longest name.
pub(crate) const LONGEST_NAME: usize = 200;

/// Bytes of the largest message.
pub(crate) const LARGEST: usize = 64 * 1024;

type Subscribers = BTreeMap<u64, Rc<WebSocket>>;

thread_local! {
    static TOPICS: RefCell<HashMap<Box<str>, Subscribers>> = RefCell::default();
}

pub(super) fn add(topic: &str, socket: &Rc<WebSocket>) {
    TOPICS.with_borrow_mut(|topics| {
        let subscribers = topics.entry(topic.into()).or_default();
        subscribers.insert(socket.number(), socket.clone());
    });
}

pub(super) fn remove(topic: &str, number: u64) {
    let removed = TOPICS.with_borrow_mut(|topics| {
        let subscribers = topics.get_mut(topic)?;
        let removed = subscribers.remove(&number);
        if subscribers.is_empty() {
            topics.remove(topic);
        }
        removed
    });
    // It may be the last owner, which looks for topics.
    drop(removed);
}

/// To all of this worker.
pub(crate) fn deliver(topic: &str, message: &SocketMessage) {
    let subscribers: Vec<_> = TOPICS.with_borrow(|topics| {
        let subscribers = topics.get(topic).into_iter().flat_map(BTreeMap::values);
        subscribers.cloned().collect()
    });
    for socket in subscribers {
        socket.offer(message.clone());
    }
}

/// A message for another worker.
pub(crate) fn letter(topic: &str, message: &SocketMessage) -> Bytes {
    let mut letter = Vec::with_capacity(2 + topic.len() + message.data.len());
    letter.push(u8::from(message.binary));
    letter.push(u8::try_from(topic.len()).unwrap_or(u8::MAX));
    letter.extend_from_slice(topic.as_bytes());
    letter.extend_from_slice(&message.data);
    Bytes::from(letter)
}

/// A letter of another worker has come.
pub(crate) fn receive(letter: Bytes) {
    let Some((topic, message)) = read(&letter) else {
        return tracing::error!("a letter of another worker is malformed");
    };
    deliver(topic, &message);
}

fn read(letter: &Bytes) -> Option<(&str, SocketMessage)> {
    let [binary, length, ..] = letter[..] else {
        return None;
    };
    let start = 2 + usize::from(length);
    let topic = std::str::from_utf8(letter.get(2..start)?).ok()?;
    let message = SocketMessage {
        binary: binary == 1,
        data: letter.slice(start..),
        shared: Some(Rc::default()),
    };
    Some((topic, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> SocketMessage {
        SocketMessage {
            binary: false,
            data: Bytes::copy_from_slice(text.as_bytes()),
            shared: Some(Rc::default()),
        }
    }

    #[test]
    fn letters_are_read_as_they_were_written() {
        let longest = "t".repeat(LONGEST_NAME);
        for topic in ["a", "rööm", &longest] {
            for data in ["", "hello"] {
                let mut message = text(data);
                for binary in [false, true] {
                    message.binary = binary;
                    let letter = letter(topic, &message);
                    assert_eq!(read(&letter), Some((topic, message.clone())));
                }
            }
        }
        for malformed in [&b""[..], b"\0", b"\0\x05abc", b"\0\x01\xff"] {
            assert_eq!(read(&Bytes::from_static(malformed)), None);
        }
    }

    #[test]
    fn who_is_over_has_no_topics() {
        let socket = WebSocket::new(100, None, || {});
        for topic in ["a", "b"] {
            assert!(socket.subscribe(topic));
        }
        deliver("a", &text("1"));
        socket.unsubscribe("b");
        deliver("b", &text("2"));
        socket.close_by_server(1001);
        deliver("a", &text("3"));
        assert!(!socket.subscribe("a"));
        TOPICS.with_borrow(|topics| assert!(topics.is_empty()));
        assert_eq!(Rc::strong_count(&socket), 1);
    }
}
