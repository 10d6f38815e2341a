//! A client of an event stream, as the HTML standard has it.

use surus_tests::http::{Connection, Request};
use surus_tests::surus::Surus;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) kind: String,
    pub(crate) data: String,
}

pub(crate) struct Events {
    connection: Connection,
    /// What has come of the body, and is not read.
    text: String,
    chunks: Vec<u8>,
    pub(crate) last_id: String,
    pub(crate) comments: usize,
    pub(crate) retry: String,
}

impl Events {
    /// Returns when the server has said something.
    pub(crate) fn open(server: &Surus, target: &str, last: Option<&str>) -> Self {
        let mut request = Request::get(target).header("accept", "text/event-stream");
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let mut connection = Connection::open(server.address()).expect("a connection");
        let bytes = request.bytes(server.address());
        connection.write(&bytes).expect("the request is sent");
        let mut events = Events {
            connection,
            text: String::new(),
            chunks: Vec::new(),
            last_id: last.unwrap_or_default().to_owned(),
            comments: 0,
            retry: String::new(),
        };
        let head = events.head();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(head.contains("content-type: text/event-stream"), "{head}");
        assert!(head.contains("cache-control: no-cache\r\n"), "{head}");
        while events.retry.is_empty() {
            assert!(events.more(), "the stream ends");
            assert_eq!(events.block(), Some(None), "it does not begin with `retry`");
        }
        events
    }

    fn head(&mut self) -> String {
        loop {
            let text = String::from_utf8_lossy(&self.chunks).into_owned();
            if let Some(end) = text.find("\r\n\r\n") {
                self.chunks.drain(..end + 4);
                return text[..end + 2].to_owned();
            }
            let some = self.connection.some().expect("a head");
            assert!(!some.is_empty(), "{text}");
            self.chunks.extend(some);
        }
    }

    /// Reads a chunk; false at the end, whichever it is.
    fn more(&mut self) -> bool {
        loop {
            let line = self.chunks.windows(2).position(|two| two == b"\r\n");
            if let Some(line) = line {
                let size = std::str::from_utf8(&self.chunks[..line]).expect("a size");
                let size = usize::from_str_radix(size, 16).expect("a size");
                if size == 0 {
                    return false;
                }
                if self.chunks.len() >= line + size + 4 {
                    let data = &self.chunks[line + 2..line + 2 + size];
                    self.text
                        .push_str(std::str::from_utf8(data).expect("UTF-8"));
                    self.chunks.drain(..line + size + 4);
                    return true;
                }
            }
            match self.connection.some() {
                Ok(some) if !some.is_empty() => self.chunks.extend(some),
                _ => return false,
            }
        }
    }

    /// The next event; `None` at the end.
    pub(crate) fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.parse_until_event() {
                return Some(event);
            }
            if !self.more() {
                return None;
            }
        }
    }

    pub(crate) fn data(&mut self) -> String {
        self.next().expect("the stream ends").data
    }

    pub(crate) fn all(&mut self, count: usize) -> Vec<String> {
        (0..count).map(|_| self.data()).collect()
    }

    pub(crate) fn wait_for_comment(&mut self) {
        let before = self.comments;
        while self.comments == before {
            assert_eq!(self.parse_until_event(), None);
            assert!(self.comments > before || self.more(), "the stream ends");
        }
    }

    fn parse_until_event(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.block()? {
                return Some(event);
            }
        }
    }

    /// Reads what is before an empty line, if it has come: an event, or something else.
    fn block(&mut self) -> Option<Option<Event>> {
        let end = self.text.find("\n\n")?;
        let block: String = self.text.drain(..end + 2).collect();
        let mut event = Event::default();
        let mut data = Vec::new();
        for line in block.lines() {
            match line.split_once(": ").unwrap_or((line, "")) {
                ("event", kind) => event.kind = kind.to_owned(),
                ("data", line) => data.push(line.to_owned()),
                ("id", id) => self.last_id = id.to_owned(),
                ("retry", time) => self.retry = time.to_owned(),
                (":", _) => self.comments += 1,
                ("", _) => {}
                other => panic!("{other:?}"),
            }
        }
        event.data = data.join("\n");
        Some((!data.is_empty()).then_some(event))
    }
}
