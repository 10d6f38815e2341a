//! A blocking HTTP/1.1 client that hides nothing: headers in order, repeated ones too, and when the bytes came.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

/// How long a client waits for the next byte before it gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// A request to be sent.
#[derive(Clone, Debug)]
pub struct Request {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

impl Request {
    pub fn new(method: &str, target: &str) -> Self {
        Self {
            method: method.to_owned(),
            target: target.to_owned(),
            headers: Vec::new(),
            body: None,
        }
    }

    pub fn get(target: &str) -> Self {
        Self::new("GET", target)
    }

    pub fn post(target: &str) -> Self {
        Self::new("POST", target)
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn body(mut self, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self.header("Content-Type", content_type)
    }

    /// An URL-encoded form.
    pub fn form(self, fields: &[(&str, &str)]) -> Self {
        let pairs: Vec<_> = fields
            .iter()
            .map(|(name, value)| format!("{}={}", encode(name), encode(value)))
            .collect();
        self.body("application/x-www-form-urlencoded", pairs.join("&"))
    }

    /// A `multipart/form-data` form.
    pub fn multipart(self, parts: &[Part<'_>]) -> Self {
        const BOUNDARY: &str = "----surus-test-7MA4YWxkTrZu0gW";
        let mut body = Vec::new();
        for part in parts {
            let mut head = format!(
                "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{}\"",
                part.name
            );
            if let Some((file, content_type)) = part.file {
                let _ = write!(
                    head,
                    "; filename=\"{file}\"\r\nContent-Type: {content_type}"
                );
            }
            body.extend_from_slice(head.as_bytes());
            body.extend_from_slice(b"\r\n\r\n");
            body.extend_from_slice(part.content);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
        self.body(&format!("multipart/form-data; boundary={BOUNDARY}"), body)
    }

    pub fn target(&self) -> &str {
        &self.target
    }

    /// The request as it goes over the wire. `Host` is `address` unless it was given.
    pub fn bytes(&self, address: SocketAddr) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        let given = |name: &str| {
            self.headers
                .iter()
                .any(|(each, _)| each.eq_ignore_ascii_case(name))
        };
        if !given("host") {
            let _ = write!(head, "Host: {address}\r\n");
        }
        for (name, value) in &self.headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        if let Some(body) = &self.body {
            let _ = write!(head, "Content-Length: {}\r\n", body.len());
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(self.body.as_deref().unwrap_or_default());
        bytes
    }

    /// Sends it on a connection of its own.
    pub fn try_send(&self, address: SocketAddr) -> io::Result<Response> {
        let mut connection = Connection::open(address)?;
        connection.write(&self.clone().header("Connection", "close").bytes(address))?;
        connection.response(&self.method)
    }

    /// As [`Self::try_send`]; no answer fails the test.
    pub fn send(&self, address: SocketAddr) -> Response {
        self.try_send(address)
            .unwrap_or_else(|error| panic!("{} {}: {error}", self.method, self.target))
    }
}

/// A part of a multipart form.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    name: &'a str,
    /// The file's name and type, where it is a file.
    file: Option<(&'a str, &'a str)>,
    content: &'a [u8],
}

impl<'a> Part<'a> {
    pub fn field(name: &'a str, value: &'a str) -> Self {
        Self {
            name,
            file: None,
            content: value.as_bytes(),
        }
    }

    pub fn file(name: &'a str, file: &'a str, content_type: &'a str, content: &'a [u8]) -> Self {
        Self {
            name,
            file: Some((file, content_type)),
            content,
        }
    }
}

/// What came back.
#[derive(Clone, Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// How long after the wait for the response began its head was complete.
    pub head_after: Duration,
    /// The same of the body's first byte, if there was one.
    pub body_after: Option<Duration>,
}

impl Response {
    /// The first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(each, _)| each.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// Every header of this name, in order.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers
            .iter()
            .filter(move |(each, _)| each.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON; a body that is none fails the test.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error} in {} {}", self.status, self.text()))
    }

    /// Fails the test unless the status is this one.
    pub fn expect(self, status: u16) -> Self {
        let text = self.text();
        assert_eq!(self.status, status, "{:?}\n{text}", self.headers);
        self
    }
}

/// One connection, for what [`Request::send`] does not do: keep-alive, pipelining, slow and leaving clients.
#[derive(Debug)]
pub struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        Self::over(TcpStream::connect(address)?)
    }

    /// A connection from this address of the machine.
    pub fn open_from(from: Ipv4Addr, address: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.bind(&SocketAddr::from((from, 0)).into())?;
        socket.connect(&address.into())?;
        Self::over(socket.into())
    }

    /// A connection that takes in so many bytes without being read.
    pub fn open_narrow(bytes: usize, address: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.set_recv_buffer_size(bytes)?;
        socket.connect(&address.into())?;
        Self::over(socket.into())
    }

    fn over(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self {
            stream: BufReader::new(stream),
        })
    }

    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// True if something has come that is not read yet.
    pub fn has_input(&self) -> bool {
        let stream = self.stream.get_ref();
        let _ = stream.set_nonblocking(true);
        let peeked = stream.peek(&mut [0]);
        let _ = stream.set_nonblocking(false);
        !self.stream.buffer().is_empty() || peeked.is_ok()
    }

    /// True if the other side has closed it, and nothing that has come is left to read.
    pub fn is_closed(&self) -> bool {
        let stream = self.stream.get_ref();
        let _ = stream.set_nonblocking(true);
        let peeked = stream.peek(&mut [0]);
        let _ = stream.set_nonblocking(false);
        let is_open = peeked.map_or_else(
            |error| error.kind() == ErrorKind::WouldBlock,
            |count| count > 0,
        );
        self.stream.buffer().is_empty() && !is_open
    }

    /// Waits until the server has cut the connection. What has come before is still there.
    pub fn wait_for_cut(&self) {
        let end = Instant::now() + PATIENCE;
        while !matches!(self.stream.get_ref().take_error(), Ok(Some(_))) {
            assert!(
                Instant::now() < end,
                "the server does not cut the connection"
            );
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// What comes next, once something does; empty at the end.
    pub fn some(&mut self) -> io::Result<Vec<u8>> {
        let block = self.stream.fill_buf()?.to_vec();
        self.stream.consume(block.len());
        Ok(block)
    }

    /// Everything until the server closes the connection.
    pub fn rest(&mut self) -> io::Result<Vec<u8>> {
        let mut rest = Vec::new();
        self.stream.read_to_end(&mut rest)?;
        Ok(rest)
    }

    /// Reads the response to a request of this method.
    pub fn response(&mut self, method: &str) -> io::Result<Response> {
        let start = Instant::now();
        let (mut status, mut headers) = self.head()?;
        while (100..200).contains(&status) {
            (status, headers) = self.head()?;
        }
        let head_after = start.elapsed();
        let mut response = Response {
            status,
            headers,
            body: Vec::new(),
            head_after,
            body_after: None,
        };
        let bodiless = method == "HEAD" || matches!(status, 204 | 304);
        if !bodiless {
            self.body(&mut response, start)?;
        }
        Ok(response)
    }

    /// Reads an interim response (1xx); its status.
    pub fn interim(&mut self) -> io::Result<u16> {
        self.head().map(|(status, _)| status)
    }

    /// The same with its headers.
    pub fn interim_head(&mut self) -> io::Result<(u16, Vec<(String, String)>)> {
        self.head()
    }

    fn head(&mut self) -> io::Result<(u16, Vec<(String, String)>)> {
        let line = self.line()?;
        let status = line
            .strip_prefix("HTTP/1.")
            .and_then(|rest| rest.split(' ').nth(1))
            .and_then(|status| status.parse().ok())
            .ok_or_else(|| invalid(format!("status line {line:?}")))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                return Ok((status, headers));
            }
            let (name, value) = line
                .split_once(':')
                .ok_or_else(|| invalid(format!("header {line:?}")))?;
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
    }

    fn body(&mut self, response: &mut Response, start: Instant) -> io::Result<()> {
        let chunked = response.header("transfer-encoding") == Some("chunked");
        let length = response.header("content-length").map(str::to_owned);
        if chunked {
            loop {
                let line = self.line()?;
                let size = u64::from_str_radix(line.split(';').next().unwrap_or_default(), 16)
                    .map_err(|_| invalid(format!("chunk size {line:?}")))?;
                self.exactly(size, response, start)?;
                let end = self.line()?;
                if !end.is_empty() {
                    return Err(invalid(format!("chunk end {end:?}")));
                }
                if size == 0 {
                    return Ok(());
                }
            }
        } else if let Some(length) = length {
            let length = length
                .parse()
                .map_err(|_| invalid(format!("length {length:?}")))?;
            self.exactly(length, response, start)
        } else {
            self.pour(u64::MAX, response, start).map(drop)
        }
    }

    fn exactly(&mut self, length: u64, response: &mut Response, start: Instant) -> io::Result<()> {
        let got = self.pour(length, response, start)?;
        if got < length {
            let text = format!("{got} of {length} bytes: {}", response.text());
            return Err(io::Error::new(ErrorKind::UnexpectedEof, text));
        }
        Ok(())
    }

    /// Adds up to `length` bytes to the body; how many there were.
    fn pour(&mut self, length: u64, response: &mut Response, start: Instant) -> io::Result<u64> {
        if length == 0 || self.stream.fill_buf()?.is_empty() {
            return Ok(0);
        }
        response.body_after.get_or_insert_with(|| start.elapsed());
        let got = (&mut self.stream)
            .take(length)
            .read_to_end(&mut response.body)?;
        Ok(got as u64)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::Error::new(
                ErrorKind::UnexpectedEof,
                "closed before a line",
            ));
        }
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    }
}

/// Percent-encodes a form's name or value, or a part of a query.
pub fn encode(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

fn invalid(text: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, text)
}
