//! What the last call has left in `errno` is a request's own.

use surus_tests::http::Request;
use surus_tests::repeater::Repeater;
use surus_tests::surus::Mode;

use super::{begin, server};

const NEIGHBOURS: usize = 20;
const LINES: usize = 20;

/// With `PHP_NORMAL_READ`, `socket_read()` looks at `errno` after every byte, and drops one where something is in it.
#[test]
fn a_line_loses_no_byte_beside_noisy_neighbours() {
    for mode in Mode::ISOLATES {
        let server = server(mode, "").start();
        let noise: Vec<_> = (0..NEIGHBOURS)
            .map(|_| begin(&server, "/?case=noise&seconds=2").expect("a connection"))
            .collect();
        let port = Repeater::shared().port();
        for number in 0..LINES {
            let target = format!("/?case=line&port={port}&word=word{number}");
            let text = Request::get(&target)
                .send(server.address())
                .expect(200)
                .text();
            assert_eq!(text, format!("word{number}\n"), "{mode:?}");
        }
        for mut neighbour in noise {
            neighbour.response("GET").expect("an answer").expect(200);
        }
    }
}
