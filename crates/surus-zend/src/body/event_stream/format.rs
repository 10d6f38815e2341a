//! Publications as server-sent events (HTML standard, 9.2).

use std::{collections::VecDeque, fmt::Write};

use bytes::{Bytes, BytesMut};
use surus_channels::Publication;

/// Bytes that are sent at once.
const TOGETHER: usize = 64 * 1024;

/// With its id.
pub(super) struct Whole(pub(super) Bytes);

/// Without one.
pub(super) struct Event(pub(super) Bytes);

pub(super) fn whole(publication: &Publication) -> Bytes {
    let event = event(publication);
    match publication.position {
        Some(position) => {
            let id = format!("id: {position}\n");
            Bytes::from([id.as_bytes(), &event].concat())
        }
        None => event,
    }
}

pub(super) fn event(publication: &Publication) -> Bytes {
    let message = &publication.message;
    let mut text = String::with_capacity(message.data.len() + 32);
    if !message.event.is_empty() {
        let name: String = message.event.chars().filter(|c| !c.is_control()).collect();
        let _ = writeln!(text, "event: {name}");
    }
    data_lines(&mut text, &String::from_utf8_lossy(&message.data));
    text.push('\n');
    Bytes::from(text)
}

/// Line ends are those of the format: CR, LF, or both.
pub(super) fn data_lines(text: &mut String, data: &str) {
    let data = data.replace("\r\n", "\n");
    for line in data.split(['\r', '\n']) {
        text.push_str("data: ");
        text.push_str(line);
        text.push('\n');
    }
}

pub(super) fn together(first: Bytes, waiting: &mut VecDeque<Bytes>) -> Bytes {
    let next = waiting.front().map_or(usize::MAX, Bytes::len);
    if first.len().saturating_add(next) > TOGETHER {
        return first;
    }
    let mut all = BytesMut::from(&first[..]);
    while let Some(next) = waiting.front() {
        if all.len() + next.len() > TOGETHER {
            break;
        }
        all.extend_from_slice(next);
        waiting.pop_front();
    }
    all.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_has_lines() {
        for (data, expected) in [
            ("", "data: \n"),
            ("a", "data: a\n"),
            (
                "a\nb\r\nc\rd\n",
                "data: a\ndata: b\ndata: c\ndata: d\ndata: \n",
            ),
        ] {
            let mut text = String::new();
            data_lines(&mut text, data);
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn short_ones_leave_together() {
        let bytes = |size| Bytes::from(vec![b'x'; size]);
        let mut waiting = VecDeque::from([bytes(2), bytes(3), bytes(TOGETHER), bytes(1)]);
        assert_eq!(together(bytes(1), &mut waiting).len(), 6);
        let next = waiting.pop_front().unwrap();
        assert_eq!(together(next, &mut waiting).len(), TOGETHER);
        let next = waiting.pop_front().unwrap();
        assert_eq!(together(next, &mut waiting).len(), 1);
    }
}
