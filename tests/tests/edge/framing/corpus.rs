//! Requests whose bounds could be read in more than one way, and what RFC 9112 makes of each.

/// What the server under test does with a request, and with one more behind it on the same connection.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reading {
    /// Answers with this status and closes.
    Refused(u16),
    /// Closes without having taken anything for a request; whether it answers first is all the same.
    Dropped,
    /// Takes the request with this body, then the one behind it.
    Taken(&'static str),
    /// Takes the request with this body and closes.
    Last(&'static str),
}

use Reading::{Dropped, Last, Refused, Taken};

#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) name: &'static str,
    /// `NAME` in it is replaced by a name of nine letters that tells the request from all others.
    pub(super) bytes: &'static str,
    pub(super) reading: Reading,
}

const fn case(name: &'static str, bytes: &'static str, reading: Reading) -> Case {
    Case {
        name,
        bytes,
        reading,
    }
}

/// What a body may try to be taken for: 45 bytes.
macro_rules! smuggled {
    () => {
        "GET /smuggled-NAME HTTP/1.1\r\nHost: a\r\n\r\n"
    };
}

/// A POST with these header lines and this body.
macro_rules! post {
    ($headers:expr, $body:expr) => {
        concat!(
            "POST /NAME HTTP/1.1\r\nHost: a\r\n",
            $headers,
            "\r\n",
            $body
        )
    };
}

/// A chunked POST.
macro_rules! chunks {
    ($body:expr) => {
        post!("Transfer-Encoding: chunked\r\n", $body)
    };
}

/// A GET with this target and version, and these header lines.
macro_rules! get {
    ($line:expr, $headers:expr) => {
        concat!($line, "\r\n", $headers, "\r\n")
    };
}

/// `Content-Length`: RFC 9112, 6.2 and 6.3.
pub(super) const LENGTHS: &[Case] = &[
    case("plain", post!("Content-Length: 5\r\n", "hello"), Taken("hello")),
    case("zeros before it", post!("Content-Length: 0005\r\n", "hello"), Taken("hello")),
    case("twice the same", post!("Content-Length: 5\r\nContent-Length: 5\r\n", "hello"), Refused(400)),
    case("twice, differing", post!("Content-Length: 5\r\nContent-Length: 50\r\n", concat!("hello", smuggled!())), Refused(400)),
    case("twice, the second is 0", post!("Content-Length: 45\r\nContent-Length: 0\r\n", smuggled!()), Refused(400)),
    case("a list of the same", post!("Content-Length: 5, 5\r\n", "hello"), Refused(400)),
    case("a list", post!("Content-Length: 5, 6\r\n", "hello"), Refused(400)),
    case("signed", post!("Content-Length: +5\r\n", "hello"), Refused(400)),
    case("negative", post!("Content-Length: -5\r\n", "hello"), Refused(400)),
    case("hexadecimal", post!("Content-Length: 0x5\r\n", "hello"), Refused(400)),
    case("with a point", post!("Content-Length: 5.0\r\n", "hello"), Refused(400)),
    case("with a space inside", post!("Content-Length: 5 0\r\n", "hello"), Refused(400)),
    case("letters behind it", post!("Content-Length: 5x\r\n", "hello"), Refused(400)),
    case("empty", post!("Content-Length:\r\n", smuggled!()), Refused(400)),
    case("quoted", post!("Content-Length: \"5\"\r\n", "hello"), Refused(400)),
    case("beyond 64 bits", post!("Content-Length: 18446744073709551621\r\n", "hello"), Refused(400)),
    case("2^64 - 1", post!("Content-Length: 18446744073709551615\r\n", "hello"), Refused(400)),
    case("space before the colon", post!("Content-Length : 5\r\n", "hello"), Refused(400)),
    case("tab before the colon", post!("Content-Length\t: 5\r\n", "hello"), Refused(400)),
    case("tab before the value", post!("Content-Length:\t5\r\n", "hello"), Taken("hello")),
    case("vertical tab before the value", post!("Content-Length: \x0b5\r\n", "hello"), Refused(400)),
    case("another name with an underscore", post!("Content_Length: 5\r\n", ""), Taken("")),
    case("of a GET", "GET /NAME HTTP/1.1\r\nHost: a\r\nContent-Length: 45\r\n\r\nGET /smuggled-NAME HTTP/1.1\r\nHost: a\r\n\r\n", Taken(smuggled!())),
    case("of HTTP/1.0", "POST /NAME HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello", Last("hello")),
    case("none", post!("", ""), Taken("")),
    case("named by Connection", post!("Connection: Content-Length\r\nContent-Length: 5\r\n", "hello"), Taken("hello")),
];

/// `Transfer-Encoding`: RFC 9112, 6.1 and 6.3.
pub(super) const CODINGS: &[Case] = &[
    case("in capitals", post!("Transfer-Encoding: CHUNKED\r\n", "5\r\nhello\r\n0\r\n\r\n"), Taken("hello")),
    case("with a length behind it", post!("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", "5\r\nhello\r\n0\r\n\r\n"), Refused(400)),
    case("with a length before it", post!("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"), Refused(400)),
    case("with a longer length", post!("Content-Length: 50\r\nTransfer-Encoding: chunked\r\n", concat!("0\r\n\r\n", smuggled!())), Refused(400)),
    case("with an invalid length", post!("Content-Length: x\r\nTransfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"), Refused(400)),
    case("identity", post!("Transfer-Encoding: identity\r\nContent-Length: 5\r\n", "hello"), Refused(400)),
    case("chunked, identity", post!("Transfer-Encoding: chunked, identity\r\n", "5\r\nhello\r\n0\r\n\r\n"), Refused(400)),
    case("identity, chunked", post!("Transfer-Encoding: identity, chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"), Refused(501)),
    case("gzip, chunked", post!("Transfer-Encoding: gzip, chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"), Refused(501)),
    case("chunked, chunked", post!("Transfer-Encoding: chunked, chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"), Refused(501)),
    case("chunked twice", post!("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"), Refused(501)),
    case("identity, then chunked", post!("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"), Refused(501)),
    case("chunked, then identity", post!("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "5\r\nhello\r\n0\r\n\r\n"), Refused(400)),
    case("unknown", post!("Transfer-Encoding: xchunked\r\n", "5\r\nhello\r\n0\r\n\r\n"), Refused(400)),
    case("empty coding", post!("Transfer-Encoding:\r\nContent-Length: 5\r\n", "hello"), Refused(400)),
    case("quoted coding", post!("Transfer-Encoding: \"chunked\"\r\n", "5\r\nhello\r\n0\r\n\r\n"), Refused(400)),
    case("with a parameter", post!("Transfer-Encoding: chunked;q=1\r\n", "5\r\nhello\r\n0\r\n\r\n"), Refused(400)),
    case("a comma behind it", post!("Transfer-Encoding: chunked,\r\n", "5\r\nhello\r\n0\r\n\r\n"), Refused(400)),
    case("vertical tab before it", post!("Transfer-Encoding: \x0bchunked\r\n", "5\r\nhello\r\n0\r\n\r\n"), Refused(400)),
    case("a coding, space before the colon", post!("Transfer-Encoding : chunked\r\nContent-Length: 5\r\n", "hello"), Refused(400)),
    case("in a folded line", post!("Transfer-Encoding:\r\n chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"), Refused(400)),
    case("with an underscore", post!("Transfer_Encoding: chunked\r\nContent-Length: 5\r\n", "hello"), Taken("hello")),
    case("in HTTP/1.0", "POST /NAME HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", Refused(400)),
];

/// The chunks themselves: RFC 9112, 7.1. Trailers end the connection, see `request_body.rs`.
pub(super) const CHUNKS: &[Case] = &[
    case(
        "two",
        chunks!("5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"),
        Taken("hello world"),
    ),
    case(
        "zeros before the size",
        chunks!("000000000000000000005\r\nhello\r\n0\r\n\r\n"),
        Taken("hello"),
    ),
    case(
        "many zeros at the end",
        chunks!("5\r\nhello\r\n00000000\r\n\r\n"),
        Taken("hello"),
    ),
    case(
        "an extension",
        chunks!("5;a=b\r\nhello\r\n0;c\r\n\r\n"),
        Taken("hello"),
    ),
    case(
        "a quoted extension",
        chunks!("5;a=\"b;c\"\r\nhello\r\n0\r\n\r\n"),
        Taken("hello"),
    ),
    case(
        "an empty extension",
        chunks!("5;\r\nhello\r\n0\r\n\r\n"),
        Taken("hello"),
    ),
    case(
        "space behind the size",
        chunks!("5 \r\nhello\r\n0\r\n\r\n"),
        Taken("hello"),
    ),
    case(
        "space before the size",
        chunks!(" 5\r\nhello\r\n0\r\n\r\n"),
        Refused(400),
    ),
    case(
        "an extension ended by LF",
        chunks!("5;a\nhello\r\n0\r\n\r\n"),
        Refused(400),
    ),
    case(
        "a size ended by LF",
        chunks!("5\nhello\r\n0\r\n\r\n"),
        Refused(400),
    ),
    case(
        "a size ended by CR",
        chunks!("5\rhello\r\n0\r\n\r\n"),
        Refused(400),
    ),
    case(
        "an extension with CR inside",
        chunks!("5;a\rb\r\nhello\r\n0\r\n\r\n"),
        Refused(400),
    ),
    case(
        "data ended by LF",
        chunks!("5\r\nhello\n0\r\n\r\n"),
        Refused(400),
    ),
    case(
        "data ended by two bytes",
        chunks!("5\r\nhelloxx0\r\n\r\n"),
        Refused(400),
    ),
    case(
        "data longer than its size",
        chunks!("5\r\nhello world\r\n0\r\n\r\n"),
        Refused(400),
    ),
    case("no size", chunks!("\r\nhello\r\n0\r\n\r\n"), Refused(400)),
    case(
        "signed size",
        chunks!("+5\r\nhello\r\n0\r\n\r\n"),
        Refused(400),
    ),
    case(
        "negative size",
        chunks!("-5\r\nhello\r\n0\r\n\r\n"),
        Refused(400),
    ),
    case(
        "prefixed size",
        chunks!("0x5\r\nhello\r\n0\r\n\r\n"),
        Refused(400),
    ),
    case(
        "size with an underscore",
        chunks!("0_5\r\nhello\r\n0\r\n\r\n"),
        Refused(400),
    ),
    case(
        "no hexadecimal size",
        chunks!("5g\r\nhello\r\n0\r\n\r\n"),
        Refused(400),
    ),
    case(
        "size beyond 64 bits",
        chunks!("10000000000000005\r\nhello\r\n0\r\n\r\n"),
        Refused(400),
    ),
    case(
        "size of 2^64 - 1",
        chunks!("ffffffffffffffff\r\nhello\r\n0\r\n\r\n"),
        Refused(400),
    ),
    case(
        "trailers",
        chunks!("5\r\nhello\r\n0\r\nX: y\r\n\r\n"),
        Last("hello"),
    ),
    case(
        "a length among the trailers",
        chunks!("5\r\nhello\r\n0\r\nContent-Length: 45\r\n\r\n"),
        Last("hello"),
    ),
    case(
        "a coding among the trailers",
        chunks!("5\r\nhello\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n"),
        Last("hello"),
    ),
    case(
        "a trailer ended by LF",
        chunks!("5\r\nhello\r\n0\r\nX: y\n\r\n"),
        Last("hello"),
    ),
    case(
        "a trailer without a colon",
        chunks!("5\r\nhello\r\n0\r\nX\r\n\r\n"),
        Refused(400),
    ),
    case(
        "a folded trailer",
        chunks!("5\r\nhello\r\n0\r\nX: y\r\n z\r\n\r\n"),
        Refused(400),
    ),
    case(
        "a trailer with space before the colon",
        chunks!("5\r\nhello\r\n0\r\nX : y\r\n\r\n"),
        Refused(400),
    ),
];

/// The request line: RFC 9112, 2.2 and 3.
pub(super) const LINES: &[Case] = &[
    case(
        "empty lines before it",
        "\r\n\r\nGET /NAME HTTP/1.1\r\nHost: a\r\n\r\n",
        Taken(""),
    ),
    case(
        "spaces before it",
        " GET /NAME HTTP/1.1\r\nHost: a\r\n\r\n",
        Refused(400),
    ),
    case(
        "two spaces inside",
        get!("GET  /NAME HTTP/1.1", "Host: a\r\n"),
        Refused(400),
    ),
    case(
        "two spaces before the version",
        get!("GET /NAME  HTTP/1.1", "Host: a\r\n"),
        Refused(400),
    ),
    case(
        "a tab inside",
        get!("GET\t/NAME HTTP/1.1", "Host: a\r\n"),
        Refused(400),
    ),
    case(
        "space at the end",
        get!("GET /NAME HTTP/1.1 ", "Host: a\r\n"),
        Refused(400),
    ),
    case(
        "space in the target",
        get!("GET /NAME a HTTP/1.1", "Host: a\r\n"),
        Refused(400),
    ),
    case(
        "NUL in the target",
        get!("GET /NAME\0 HTTP/1.1", "Host: a\r\n"),
        Refused(400),
    ),
    case(
        "CR in the target",
        get!("GET /NAME\rX: y HTTP/1.1", "Host: a\r\n"),
        Refused(400),
    ),
    case(
        "NUL in the method",
        get!("G\0T /NAME HTTP/1.1", "Host: a\r\n"),
        Refused(400),
    ),
    case(
        "a colon in the method",
        get!("G:T /NAME HTTP/1.1", "Host: a\r\n"),
        Refused(400),
    ),
    case(
        "a method of its own",
        get!("BREW /NAME HTTP/1.1", "Host: a\r\n"),
        Taken(""),
    ),
    case(
        "TRACE",
        get!("TRACE /NAME HTTP/1.1", "Host: a\r\n"),
        Refused(405),
    ),
    case(
        "TRACE of the server",
        get!("TRACE / HTTP/1.0", "X: y\r\n"),
        Refused(405),
    ),
    case(
        "a method in small letters",
        get!("get /NAME HTTP/1.1", "Host: a\r\n"),
        Taken(""),
    ),
    case(
        "no method",
        get!(" /NAME HTTP/1.1", "Host: a\r\n"),
        Refused(400),
    ),
    case("HTTP/0.9", "GET /NAME\r\n", Refused(400)),
    case(
        "HTTP/0.9 with headers",
        "GET /NAME\r\nHost: a\r\n\r\n",
        Refused(400),
    ),
    case(
        "version 1.2",
        get!("GET /NAME HTTP/1.2", "Host: a\r\n"),
        Refused(400),
    ),
    case(
        "version 2.0",
        get!("GET /NAME HTTP/2.0", "Host: a\r\n"),
        Dropped,
    ),
    case(
        "version 1.10",
        get!("GET /NAME HTTP/1.10", "Host: a\r\n"),
        Refused(400),
    ),
    case(
        "version 01.1",
        get!("GET /NAME HTTP/01.1", "Host: a\r\n"),
        Refused(400),
    ),
    case(
        "version in small letters",
        get!("GET /NAME http/1.1", "Host: a\r\n"),
        Refused(400),
    ),
    case(
        "another protocol",
        get!("GET /NAME ICAP/1.0", "Host: a\r\n"),
        Refused(400),
    ),
    case("ended by LF", "GET /NAME HTTP/1.1\nHost: a\n\n", Taken("")),
    case(
        "ended by CR",
        "GET /NAME HTTP/1.1\rHost: a\r\r",
        Refused(400),
    ),
    case(
        "absolute",
        get!("GET http://b/NAME HTTP/1.1", "Host: a\r\n"),
        Taken(""),
    ),
    case(
        "absolute without Host",
        get!("GET http://b/NAME HTTP/1.1", ""),
        Refused(400),
    ),
    case(
        "absolute with a user",
        get!("GET http://u:p@b/NAME HTTP/1.1", "Host: b\r\n"),
        Refused(400),
    ),
    case(
        "absolute of another scheme",
        get!("GET ftp://b/NAME HTTP/1.1", "Host: b\r\n"),
        Refused(400),
    ),
    case(
        "asterisk",
        get!("GET * HTTP/1.1", "Host: a\r\n"),
        Refused(400),
    ),
    case(
        "authority",
        get!("GET b:80 HTTP/1.1", "Host: a\r\n"),
        Refused(400),
    ),
    case(
        "without a slash",
        get!("GET NAME HTTP/1.1", "Host: a\r\n"),
        Refused(400),
    ),
    case(
        "CONNECT",
        get!("CONNECT b:80 HTTP/1.1", "Host: b:80\r\n"),
        Refused(501),
    ),
    case(
        "CONNECT with a path",
        get!("CONNECT /NAME HTTP/1.1", "Host: a\r\n"),
        Refused(501),
    ),
    case(
        "CONNECT with a body",
        get!(
            "CONNECT b:80 HTTP/1.1",
            "Host: b:80\r\nContent-Length: 5\r\n"
        ),
        Refused(501),
    ),
];

/// Header lines: RFC 9112, 5.
pub(super) const HEADERS: &[Case] = &[
    case("no Host", get!("GET /NAME HTTP/1.1", ""), Refused(400)),
    case("no Host, HTTP/1.0", get!("GET /NAME HTTP/1.0", ""), Last("")),
    case("an empty Host", get!("GET /NAME HTTP/1.1", "Host:\r\n"), Refused(400)),
    case("an empty Host, HTTP/1.0", get!("GET /NAME HTTP/1.0", "Host: \r\n"), Refused(400)),
    case("Host twice", get!("GET /NAME HTTP/1.1", "Host: a\r\nHost: b\r\n"), Refused(400)),
    case("Host twice the same", get!("GET /NAME HTTP/1.1", "Host: a\r\nHost: a\r\n"), Refused(400)),
    case("Host with a space before the colon", get!("GET /NAME HTTP/1.1", "Host : a\r\n"), Refused(400)),
    case("Host with a list", get!("GET /NAME HTTP/1.1", "Host: a, b\r\n"), Refused(400)),
    case("Host with a path", get!("GET /NAME HTTP/1.1", "Host: a/b\r\n"), Refused(400)),
    case("Host with a user", get!("GET /NAME HTTP/1.1", "Host: u@a\r\n"), Refused(400)),
    case("Host with a port", get!("GET /NAME HTTP/1.1", "Host: a:80\r\n"), Taken("")),
    case("a folded line", get!("GET /NAME HTTP/1.1", "Host: a\r\nX: y\r\n z\r\n"), Refused(400)),
    case("a folded line of a length", post!("X: y\r\n Content-Length: 45\r\n", smuggled!()), Refused(400)),
    case("a space before the first line", get!("GET /NAME HTTP/1.1", " X: y\r\nHost: a\r\n"), Refused(400)),
    case("a line of spaces", get!("GET /NAME HTTP/1.1", "Host: a\r\n \r\n"), Refused(400)),
    case("a line without a colon", get!("GET /NAME HTTP/1.1", "Host: a\r\nX\r\n"), Refused(400)),
    case("a line without a name", get!("GET /NAME HTTP/1.1", "Host: a\r\n: y\r\n"), Refused(400)),
    case("a name with a space", get!("GET /NAME HTTP/1.1", "Host: a\r\nX Y: z\r\n"), Refused(400)),
    case("a name with a bracket", get!("GET /NAME HTTP/1.1", "Host: a\r\nX(Y): z\r\n"), Refused(400)),
    case("a name with NUL", get!("GET /NAME HTTP/1.1", "Host: a\r\nX\0: z\r\n"), Refused(400)),
    case("a value with NUL", get!("GET /NAME HTTP/1.1", "Host: a\r\nX: y\0z\r\n"), Refused(400)),
    case("a value with CR", get!("GET /NAME HTTP/1.1", "Host: a\r\nX: y\rz\r\n"), Refused(400)),
    case("a value with CR and a length", post!("X: y\rContent-Length: 45\r\n", smuggled!()), Refused(400)),
    case("a line that ends in two CRs", get!("GET /NAME HTTP/1.1", "Host: a\r\r\nX: y\r\n"), Refused(400)),
    case("a value with a tab", get!("GET /NAME HTTP/1.1", "Host: a\r\nX: y\tz\r\n"), Taken("")),
    case("a value with bytes beyond ASCII", get!("GET /NAME HTTP/1.1", "Host: a\r\nX: \u{e9}\r\n"), Taken("")),
    case("lines ended by LF", post!("Content-Length: 5\n", "hello"), Taken("hello")),
    case("the head ended by LF CRLF", "GET /NAME HTTP/1.1\r\nHost: a\n\r\n", Taken("")),
    case("the head ended by CRLF LF", "GET /NAME HTTP/1.1\r\nHost: a\r\n\n", Taken("")),
    case("an upgrade to h2c", get!("GET /NAME HTTP/1.1", "Host: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n"), Taken("")),
    case("an upgrade with a body", post!("Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 5\r\n", "hello"), Taken("hello")),
    case("Connection: close", get!("GET /NAME HTTP/1.1", "Host: a\r\nConnection: close\r\n"), Last("")),
    case("Connection: keep-alive, close", get!("GET /NAME HTTP/1.1", "Host: a\r\nConnection: keep-alive, close\r\n"), Last("")),
    case("an unknown expectation", post!("Expect: 200-ok\r\nContent-Length: 5\r\n", "hello"), Taken("hello")),
];
