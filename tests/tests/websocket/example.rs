//! `examples/chat`, with two workers.

use std::path::Path;

use serde_json::{json, Value};
use surus_tests::http::Request;
use surus_tests::surus::Surus;
use surus_tests::websocket::{Client, Frame};

fn said(client: &mut Client) -> (Value, Value, Value) {
    let mut message: Value = serde_json::from_str(&client.next_text()).expect("JSON");
    let mut take = |name: &str| message[name].take();
    (take("name"), take("what"), take("text"))
}

fn is(name: &str, what: &str, text: &str) -> (Value, Value, Value) {
    (json!(name), json!(what), json!(text))
}

#[test]
fn visitors_talk_in_rooms() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/chat/app.php");
    let server = Surus::serve(&script).workers(2).start();
    let at = server.address();
    let page = Request::get("/hall").send(at).expect(200);
    assert!(page.text().contains("new WebSocket(url)"));
    let mut ann = Client::open(at, "/hall/socket?name=Ann");
    assert_eq!(said(&mut ann), is("Ann", "joined", ""));
    let mut bob = Client::open(at, "/hall/socket?name=B%C3%B6b");
    assert_eq!(said(&mut bob), is("Böb", "joined", ""));
    assert_eq!(said(&mut ann), is("Böb", "joined", ""));
    let mut other = Client::open(at, "/bar/socket?name=Cy");
    assert_eq!(said(&mut other), is("Cy", "joined", ""));
    ann.text("hello");
    for client in [&mut ann, &mut bob] {
        assert_eq!(said(client), is("Ann", "says", "hello"));
    }
    // Who comes later gets the last messages, also in another worker.
    for _ in 0..4 {
        let mut late = Client::open(at, "/hall/socket?name=Late");
        assert_eq!(said(&mut late), is("Ann", "says", "hello"));
        late.close();
        for client in [&mut ann, &mut bob] {
            assert_eq!(said(client), is("Late", "joined", ""));
            assert_eq!(said(client), is("Late", "left", ""));
        }
    }
    drop(ann);
    assert_eq!(said(&mut bob), is("Ann", "left", ""));
    let mut nameless = Client::open(at, "/hall/socket?name=%3Cb%3E");
    assert_eq!(
        nameless.rest(),
        [Frame::close(4000, "A name has 1 to 30 letters")]
    );
    other.text("anybody?");
    assert_eq!(said(&mut other), is("Cy", "says", "anybody?"));
    assert!(!server.log().contains("Uncaught"), "{}", server.log());
}
