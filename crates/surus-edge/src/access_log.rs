use std::io::Write;
use std::time::{Duration, Instant, SystemTime};

use http::{Method, Request, StatusCode, Uri};

use crate::Connection;

/// One line per request on standard output:
/// `127.0.0.1 [Sun, 06 Nov 1994 08:49:37 GMT] "GET /path" 200 1.234ms`, where the time runs to the response's head.
///
/// Off unless asked for: it costs a system call and two small copies per request.
#[derive(Debug, Default)]
pub struct AccessLog(());

/// What is noted of a request before the backend takes it apart.
#[derive(Debug)]
pub(crate) struct Entry {
    method: Method,
    uri: Uri,
    begun: Instant,
}

impl AccessLog {
    pub fn stdout() -> Self {
        AccessLog(())
    }

    pub(crate) fn begin<B>(&self, request: &Request<B>) -> Entry {
        Entry {
            method: request.method().clone(),
            uri: request.uri().clone(),
            begun: Instant::now(),
        }
    }

    pub(crate) fn end(&self, entry: Entry, connection: &Connection, status: StatusCode) {
        let line = line(
            &entry,
            connection,
            status,
            entry.begun.elapsed(),
            SystemTime::now(),
        );
        // One write per line keeps the lines of several workers apart. A closed log must not end requests.
        let _ = std::io::stdout().write_all(line.as_bytes());
    }
}

fn line(
    entry: &Entry,
    connection: &Connection,
    status: StatusCode,
    took: Duration,
    now: SystemTime,
) -> String {
    let target = entry
        .uri
        .path_and_query()
        .map_or("*", |target| target.as_str());
    format!(
        "{} [{}] \"{} {}\" {} {:.3}ms\n",
        connection.peer.ip(),
        httpdate::fmt_http_date(now),
        entry.method,
        target,
        status.as_u16(),
        took.as_secs_f64() * 1000.0,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_client_time_request_status_and_duration() {
        let request = Request::get("http://h/a?b=%22").body(()).unwrap();
        let entry = AccessLog::stdout().begin(&request);
        let address = "192.0.2.7:4711".parse().unwrap();
        let connection = Connection {
            peer: address,
            local: address,
        };
        let line = line(
            &entry,
            &connection,
            StatusCode::NOT_FOUND,
            Duration::from_micros(1234),
            SystemTime::UNIX_EPOCH,
        );
        assert_eq!(
            line,
            "192.0.2.7 [Thu, 01 Jan 1970 00:00:00 GMT] \"GET /a?b=%22\" 404 1.234ms\n"
        );
    }
}
