//! Requests put together at random, the same ones each time: combinations that nobody has thought of.

use super::Sent;

const COUNT: usize = 150;

const LINES: &[&str] = &[
    "Content-Length: 5\r\n",
    "Content-Length: 5\r\n",
    "Content-Length: 50\r\n",
    "Content-Length: 0\r\n",
    "Content-Length: +5\r\n",
    "Content-Length:5\n",
    "Content-Length: 5 \r\n",
    "Content-Length\r\n: 5\r\n",
    "content-length:\r\n 5\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: chunked\r\n",
    "transfer-encoding:chunked \t\r\n",
    "Transfer-Encoding: ,chunked\r\n",
    "Transfer-Encoding:\tchunked\r\n",
    "Transfer-Encoding: identity\r\n",
    "Transfer-Encoding: chunked\n",
    "Transfer-Encoding\n: chunked\r\n",
    "\tTransfer-Encoding: chunked\r\n",
    "X: y\nTransfer-Encoding: chunked\r\n",
    "X: y\r\r\nTransfer-Encoding: chunked\r\n",
    "Connection: close\r\n",
    "Connection: Transfer-Encoding\r\n",
    "Trailer: Content-Length\r\n",
    "Upgrade: h2c\r\nConnection: upgrade\r\n",
];

const BODIES: &[&str] = &[
    "hello",
    "5\r\nhello\r\n0\r\n\r\n",
    "5\r\nhello\r\n0\r\n\r\n",
    "0\r\n\r\n",
    "0\r\n\r\nGET /smuggled-NAME HTTP/1.1\r\nHost: a\r\n\r\n",
    "5;a=\"\r\nhello\r\n0\r\n\r\n",
    "0;a\r\nX: y\r\n\r\n",
    "05\r\nhello\r\n0\r\nX: y\n\r\n",
    "5\r\nhello\r\n0\r\n\n",
    "5\r\n\r\n\r\n\r\n0\r\n\r\n",
    "2d\r\nGET /smuggled-NAME HTTP/1.1\r\nHost: a\r\n\r\n\r\n0\r\n\r\n",
    "",
];

/// `first`: the number of the first of them.
pub(super) fn some(first: usize) -> Vec<Sent> {
    let mut state = 0x5DEE_CE66_D1CE_4E5Bu64;
    let mut random = |count: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).expect("31 bits") % count
    };
    (first..first + COUNT)
        .map(|number| {
            let version = if random(8) == 0 { "1.0" } else { "1.1" };
            let mut text = format!("POST /NAME HTTP/{version}\r\nHost: a\r\n");
            for _ in 0..1 + random(3) {
                text += LINES[random(LINES.len())];
            }
            text += "\r\n";
            text += BODIES[random(BODIES.len())];
            Sent::new(number, format!("combination {number}"), &text, None)
        })
        .collect()
}
