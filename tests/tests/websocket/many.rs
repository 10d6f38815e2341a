//! Many WebSockets at once.

use std::thread;
use std::time::Duration;

use surus_tests::http::Request;
use surus_tests::parallel::together;
use surus_tests::waiting::wait_for;
use surus_tests::websocket::{Client, Frame};

use super::{serve, set};

/// They are no requests in flight: these stay within their limit, and so does what the server answers meanwhile.
#[test]
fn two_thousand_are_open() {
    let server = set(&["max_requests_in_flight=50", "max_queue=50"]);
    let at = server.address();
    let mut clients: Vec<_> = (0..2000).map(|_| Client::open(at, "/members")).collect();
    for client in &mut clients {
        assert_eq!(client.next_text(), "in");
    }
    let status = server.status();
    assert_eq!(status["workers"][0]["websockets"], 2000);
    assert_eq!(status["workers"][0]["in_flight"], 0);
    let said = Request::get("/say?text=all").send(at).json();
    assert_eq!(said, serde_json::json!([2000, 0]));
    for client in &mut clients {
        assert_eq!(client.next_text(), "all");
    }
    drop(clients);
    wait_for("they are still open", || {
        let status = server.status();
        status["workers"][0]["websockets"] == 0
    });
    let said = Request::get("/say").send(at).json();
    assert_eq!(said, serde_json::json!([0, 0]));
}

/// Whose message is this? Each client sends tokens of its own, the handlers wait at random, some clients vanish and others
/// connect, with requests between them: nobody gets what is another's, and nothing is lost.
#[test]
fn nobody_gets_a_message_of_another_one() {
    const ROUNDS: usize = 15;
    let server = serve();
    let at = server.address();
    together(100, |number| {
        let mut client = Client::open(at, "/slow");
        for round in 0..ROUNDS {
            let token = format!("{number}/{round}");
            client.text(&token);
            if number % 4 == 3 && round % 5 == 4 {
                // Gone in the middle: what was sent is nobody's.
                client = Client::open(at, "/slow");
                continue;
            }
            if number % 5 == 2 {
                let page = Request::get(&format!("/token?token={token}")).send(at);
                assert_eq!(page.text(), token);
            }
            assert_eq!(client.next_text(), token);
        }
        thread::sleep(Duration::from_millis(20));
        assert_eq!(client.close(), [Frame::close(1000, "")]);
    });
    wait_for("they are still open", || {
        let status = server.status();
        status["workers"][0]["websockets"] == 0
    });
}
