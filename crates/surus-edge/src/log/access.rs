//! One line for each request, when its response has ended.

use std::fmt::Write as _;
use std::time::{Duration, Instant, SystemTime};

use http::header::{HeaderName, HeaderValue, REFERER, USER_AGENT};
use http::request::Parts;
use http::{Method, StatusCode, Uri, Version};
use surus_log::{quote, Clock, Log};

use crate::log::refusal::{Refusal, Refused};
use crate::Peer;

/// The format of the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// `127.0.0.1 [Sun, 06 Nov 1994 08:49:37 GMT] "GET /path" 200 1234B 1.234ms`, for people.
    Text,
    /// A JSON object, for programs.
    Json,
    /// `127.0.0.1 - - [06/Nov/1994:08:49:37 +0000] "GET /path HTTP/1.1" 200 1234`, the format of most web servers.
    Common,
    /// The same, and `"referer" "user agent"`.
    Combined,
}

/// The access log. Off by default: it costs a system call, an allocation and some copies per request.
#[derive(Clone, Copy, Debug)]
pub struct AccessLog {
    format: LogFormat,
}

/// Data of a request, noted before the backend takes parts of it, and then of its response.
#[derive(Debug)]
pub(crate) struct Entry {
    format: LogFormat,
    client: Peer,
    method: Method,
    uri: Uri,
    version: Version,
    agent: Option<HeaderValue>,
    referer: Option<HeaderValue>,
    id: Option<HeaderValue>,
    begun: Instant,
    status: StatusCode,
    bytes: u64,
    /// The body was not sent completely.
    broken_off: bool,
    /// Why the request was refused without the backend.
    refused: Option<Refusal>,
}

impl AccessLog {
    /// A log with lines in this format.
    pub fn new(format: LogFormat) -> Self {
        AccessLog { format }
    }

    /// The format of its lines.
    pub fn format(&self) -> LogFormat {
        self.format
    }

    pub(crate) fn begin(&self, request: &Parts, client: Peer) -> Box<Entry> {
        let header = |name: HeaderName| request.headers.get(name).cloned();
        let is_long = matches!(self.format, LogFormat::Json | LogFormat::Combined);
        Box::new(Entry {
            format: self.format,
            client,
            method: request.method.clone(),
            uri: request.uri.clone(),
            version: request.version,
            agent: header(USER_AGENT).filter(|_| is_long),
            referer: header(REFERER).filter(|_| is_long),
            id: None,
            begun: Instant::now(),
            status: gone(),
            bytes: 0,
            broken_off: true,
            refused: None,
        })
    }

    /// Writes a line for input that was refused before it became a request.
    pub(crate) fn refuse(&self, refused: &Refused<'_>) {
        let line = self.refusal(refused, SystemTime::now());
        surus_log::write(Log::Access, line.as_bytes());
    }

    /// In place of a request's method and target, the line has the received bytes. They may be anything, and are
    /// escaped so that none of them ends the line.
    fn refusal(&self, refused: &Refused<'_>, now: SystemTime) -> String {
        let Refused { client, why, first } = refused;
        let (status, why) = (why.status().as_u16(), why.name());
        let mut line = String::new();
        let _ = match self.format {
            LogFormat::Json => write!(
                line,
                "{{\"time\":{},\"client\":\"{client}\",\"request\":",
                seconds(now)
            ),
            LogFormat::Text => write!(line, "{client} [{}] \"", httpdate::fmt_http_date(now)),
            LogFormat::Common | LogFormat::Combined => {
                write!(line, "{client} - - [{}] \"", Clock::of(now).common())
            }
        };
        match (self.format, first.is_empty()) {
            (LogFormat::Json, _) => quote(&mut line, first),
            (_, true) => line.push('-'),
            (_, false) => escape(&mut line, first),
        }
        let _ = match self.format {
            LogFormat::Json => writeln!(line, ",\"status\":{status},\"refused\":\"{why}\"}}"),
            LogFormat::Text => writeln!(line, "\" {status} refused: {why}"),
            LogFormat::Common => writeln!(line, "\" {status} 0"),
            LogFormat::Combined => writeln!(line, "\" {status} 0 \"-\" \"-\""),
        };
        line
    }
}

impl Entry {
    /// The backend has given the response's head.
    pub(crate) fn respond(&mut self, status: StatusCode, id: Option<&HeaderValue>) {
        self.status = status;
        self.id = id.cloned();
    }

    /// The request is refused without the backend.
    pub(crate) fn refuse(&mut self, why: Refusal) {
        self.refused = Some(why);
    }

    pub(crate) fn add(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    pub(crate) fn complete(&mut self) {
        self.broken_off = false;
    }

    fn line(&self, took: Duration, now: SystemTime) -> String {
        match self.format {
            LogFormat::Text => self.text(took, now),
            LogFormat::Json => self.json(took, now),
            LogFormat::Common => self.common(now) + "\n",
            LogFormat::Combined => self.combined(now),
        }
    }

    fn target(&self) -> &str {
        self.uri
            .path_and_query()
            .map_or("*", |target| target.as_str())
    }

    fn text(&self, took: Duration, now: SystemTime) -> String {
        let id = self.id.as_ref().and_then(|id| id.to_str().ok());
        let mut line = format!(
            "{} [{}] \"{} {}\" {} {}B {:.3}ms{}{}{}\n",
            self.client,
            httpdate::fmt_http_date(now),
            self.method,
            self.target(),
            self.status.as_u16(),
            self.bytes,
            took.as_secs_f64() * 1000.0,
            if id.is_some() { " " } else { "" },
            id.unwrap_or_default(),
            if self.broken_off { " broken off" } else { "" },
        );
        if let Some(why) = self.refused {
            line.truncate(line.len() - 1);
            let _ = writeln!(line, " refused: {}", why.name());
        }
        line
    }

    fn common(&self, now: SystemTime) -> String {
        let mut line = format!("{} - - [{}] \"", self.client, Clock::of(now).common());
        let request = format!("{} {} {:?}", self.method, self.target(), self.version);
        escape(&mut line, request.as_bytes());
        let _ = write!(line, "\" {} {}", self.status.as_u16(), self.bytes);
        line
    }

    fn combined(&self, now: SystemTime) -> String {
        let mut line = self.common(now);
        for value in [&self.referer, &self.agent] {
            line.push_str(" \"");
            match value {
                Some(value) => escape(&mut line, value.as_bytes()),
                None => line.push('-'),
            }
            line.push('"');
        }
        line.push('\n');
        line
    }

    fn json(&self, took: Duration, now: SystemTime) -> String {
        let mut line = String::with_capacity(256);
        let _ = write!(
            line,
            "{{\"time\":{},\"client\":\"{}\",\"method\":",
            seconds(now),
            self.client
        );
        quote(&mut line, self.method.as_str().as_bytes());
        line.push_str(",\"target\":");
        quote(&mut line, self.target().as_bytes());
        let _ = write!(
            line,
            ",\"protocol\":\"{:?}\",\"status\":{},\"bytes\":{},\"duration_ms\":{:.3}",
            self.version,
            self.status.as_u16(),
            self.bytes,
            took.as_secs_f64() * 1000.0
        );
        let headers = [
            ("request_id", &self.id),
            ("user_agent", &self.agent),
            ("referer", &self.referer),
        ];
        for (name, value) in headers {
            if let Some(value) = value {
                let _ = write!(line, ",\"{name}\":");
                quote(&mut line, value.as_bytes());
            }
        }
        if self.broken_off {
            line.push_str(",\"broken_off\":true");
        }
        if let Some(why) = self.refused {
            let _ = write!(line, ",\"refused\":\"{}\"", why.name());
        }
        line.push_str("}\n");
        line
    }
}

/// Seconds since 1970, with milliseconds.
fn seconds(time: SystemTime) -> String {
    let since = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    format!("{}.{:03}", since.as_secs(), since.subsec_millis())
}

impl Drop for Entry {
    fn drop(&mut self) {
        let line = self.line(self.begun.elapsed(), SystemTime::now());
        surus_log::write(Log::Access, line.as_bytes());
    }
}

/// The client has disconnected before there was a response: the same status as in nginx.
fn gone() -> StatusCode {
    StatusCode::from_u16(499).unwrap_or(StatusCode::BAD_REQUEST)
}

/// As nginx does: bytes that are not printable ASCII, or could end the string, are written as `\xHH`.
fn escape(line: &mut String, bytes: &[u8]) {
    for &byte in bytes {
        match byte {
            b'"' | b'\\' | 0..0x20 | 0x7f.. => _ = write!(line, "\\x{byte:02X}"),
            byte => line.push(char::from(byte)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(format: LogFormat) -> String {
        let (request, ()) = http::Request::get("http://h/a?b=%22")
            .header(
                USER_AGENT,
                HeaderValue::from_bytes(b"a \"b\" \\ \xe9\t").unwrap(),
            )
            .body(())
            .unwrap()
            .into_parts();
        let mut entry =
            AccessLog::new(format).begin(&request, Peer::Tcp("192.0.2.7:1".parse().unwrap()));
        entry.respond(
            StatusCode::NOT_FOUND,
            Some(&HeaderValue::from_static("id-1")),
        );
        entry.add(12);
        entry.complete();
        entry.line(Duration::from_micros(1234), SystemTime::UNIX_EPOCH)
    }

    #[test]
    fn what_is_refused_stays_on_its_line() {
        let refused = Refused {
            client: Peer::Tcp("192.0.2.7:1".parse().unwrap()),
            why: Refusal::Malformed,
            first: b"GE\x1b[2J\r\x00 \"\xff\x9b",
        };
        for (format, expected) in [
            (LogFormat::Text, "192.0.2.7 [Thu, 01 Jan 1970 00:00:00 GMT] \"GE\\x1B[2J\\x0D\\x00 \\x22\\xFF\\x9B\" 400 refused: malformed\n"),
            (LogFormat::Combined, "192.0.2.7 - - [01/Jan/1970:00:00:00 +0000] \"GE\\x1B[2J\\x0D\\x00 \\x22\\xFF\\x9B\" 400 0 \"-\" \"-\"\n"),
            (LogFormat::Json, "{\"time\":0.000,\"client\":\"192.0.2.7\",\"request\":\"GE\\u001b[2J\\u000d\\u0000 \\\"ÿ\\u009b\",\"status\":400,\"refused\":\"malformed\"}\n"),
        ] {
            let line = AccessLog::new(format).refusal(&refused, SystemTime::UNIX_EPOCH);
            assert_eq!(line, expected);
        }
    }

    #[test]
    fn a_line_names_client_time_request_status_and_duration() {
        assert_eq!(
            line(LogFormat::Text),
            "192.0.2.7 [Thu, 01 Jan 1970 00:00:00 GMT] \"GET /a?b=%22\" 404 12B 1.234ms id-1\n"
        );
        assert_eq!(
            line(LogFormat::Json),
            "{\"time\":0.000,\"client\":\"192.0.2.7\",\"method\":\"GET\",\"target\":\"/a?b=%22\",\
            \"protocol\":\"HTTP/1.1\",\"status\":404,\"bytes\":12,\"duration_ms\":1.234,\
            \"request_id\":\"id-1\",\"user_agent\":\"a \\\"b\\\" \\\\ é\\u0009\"}\n"
        );
        let common = "192.0.2.7 - - [01/Jan/1970:00:00:00 +0000] \"GET /a?b=%22 HTTP/1.1\" 404 12";
        assert_eq!(line(LogFormat::Common), format!("{common}\n"));
        assert_eq!(
            line(LogFormat::Combined),
            format!("{common} \"-\" \"a \\x22b\\x22 \\x5C \\xE9\\x09\"\n")
        );
    }
}
