//! Where one response ends and the next one begins, whatever PHP says.

use std::io;

use surus_tests::http::Connection;
use surus_tests::surus::Mode;

use crate::{get, server};

/// One connection: a byte too many or too few would be the next response's.
#[test]
fn responses_are_as_long_as_they_say() -> io::Result<()> {
    for mode in Mode::ISOLATES {
        let server = server(mode, "").start();
        let mut connection = Connection::open(server.address())?;
        for said in ["2", "5", "50", "x", "5,6", "-1", "+5"] {
            let request = format!("GET /length?say={said} HTTP/1.1\r\nHost: a\r\n\r\n");
            connection.write(request.as_bytes())?;
            let response = connection.response("GET")?.expect(200);
            assert_eq!(response.text(), "hello", "{mode:?} {said}");
        }
        for code in ["101", "102", "199"] {
            let request = format!("GET /status?code={code} HTTP/1.1\r\nHost: a\r\n\r\n");
            connection.write(request.as_bytes())?;
            connection.response("GET")?.expect(500);
        }
        get(&server, "/").expect(200);
    }
    Ok(())
}

/// The head has left before it is known: no more bytes follow than it says, and with fewer the connection ends.
#[test]
fn streams_end_where_they_said() -> io::Result<()> {
    for mode in Mode::ISOLATES {
        let server = server(mode, "").start();
        for (said, text) in [("2", Some("he")), ("5", Some("hello")), ("50", None)] {
            let mut connection = Connection::open(server.address())?;
            let request = format!("GET /length?flush=1&say={said} HTTP/1.1\r\nHost: a\r\n\r\n");
            connection.write(request.as_bytes())?;
            connection.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")?;
            let response = connection.response("GET");
            let Some(text) = text else {
                response.expect_err("half of it");
                continue;
            };
            assert_eq!(response?.expect(200).text(), text, "{mode:?} {said}");
            assert_eq!(connection.response("GET")?.expect(200).text(), "hello");
        }
    }
    Ok(())
}
