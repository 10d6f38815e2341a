//! Handlers that are classes: they have no fiber between two events, and everything else that a loop has.

use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{json, Value};
use surus_tests::fixture;
use surus_tests::http::Request;
use surus_tests::parallel::together;
use surus_tests::surus::Surus;
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;
use surus_tests::websocket::{close, frame, Client, Frame, BINARY, FIN, TEXT};

fn serve(settings: &[&str]) -> Surus {
    let mut options = Surus::serve(&fixture("websocket").join("classes.php"));
    for setting in settings {
        options = options.argument("--set").argument(*setting);
    }
    options.start()
}

fn talk(server: &Surus, how: &str) -> Client {
    Client::open(server.address(), &format!("/talk/{how}?name=Ann"))
}

fn expect_log(server: &Surus, text: &str) {
    let has = || server.log().contains(text);
    if !has() {
        wait_for(&format!("the log has no {text}"), has);
    }
}

/// What `onClose` has logged: how it has ended, what was received, and a value of the middleware.
fn expect_closed(server: &Surus, how: &str, code: u16, reason: &str, said: &str) {
    let end = json!([code, reason, said, "Ann"]);
    expect_log(server, &format!("closed {how} /talk/{how} {end}"));
}

fn none_is_open(server: &Surus) {
    wait_for("they are still open", || {
        let status = server.status();
        let worker = &status["workers"][0];
        worker["websockets"] == 0 && worker["in_flight"] == 0
    });
}

#[test]
fn each_event_finds_what_is_the_requests() {
    let server = serve(&[]);
    let mut client = talk(&server, "state");
    let zone = "UTC";
    for (number, last) in [(1, ""), (2, "a"), (3, "b")] {
        client.text(if number == 1 { "a" } else { "b" });
        let state: Value = serde_json::from_str(&client.next_text()).expect("JSON");
        // Settings are those of the application again, as for a request.
        let precision = state[3].clone();
        assert_eq!(
            state,
            json!(["Ann", last, number, precision, zone, "Ann", "Ann", true])
        );
        assert_ne!(precision, json!("3"));
    }
    // Another one between them sees nothing of it.
    let mut other = Client::open(server.address(), "/talk/state?name=Bob");
    other.text("a");
    let state: Value = serde_json::from_str(&other.next_text()).expect("JSON");
    assert_eq!(
        (&state[0], &state[1], &state[2]),
        (&json!("Bob"), &json!(""), &json!(1))
    );
    assert_eq!(client.close(), [Frame::close(1000, "")]);
    expect_closed(&server, "state", 1000, "", "abb");
    other.close();
    none_is_open(&server);
    // Its request has ended with it.
    let ended = Request::get("/ended").send(server.address()).json();
    for said in ended.as_array().expect("a list") {
        assert!(
            said.to_string().contains("This request has ended"),
            "{said}"
        );
    }
    assert_eq!(
        Request::get("/open").send(server.address()).json(),
        json!([0])
    );
}

#[test]
fn messages_are_handled_in_order_and_one_at_a_time() {
    let server = serve(&[]);
    let at = server.address();
    for path in ["/least", "/talk/echo", "/talk/slow"] {
        let mut client = Client::open(at, path);
        let many: Vec<u8> = (0..300)
            .flat_map(|number: u32| frame(FIN | TEXT, number.to_string().as_bytes()))
            .collect();
        for piece in many.chunks(701) {
            client.send(piece);
        }
        for number in 0..300 {
            assert_eq!(client.next_text(), number.to_string(), "{path}");
        }
        client.close();
    }
    let mut client = talk(&server, "binary");
    client.send(&frame(FIN | BINARY, b"\xff\xfe"));
    client.text("text");
    let bytes = Frame {
        first: FIN | BINARY,
        payload: b"\xff\xfe".to_vec(),
    };
    assert_eq!(client.frame(), Some(bytes));
    assert_eq!(client.next_text(), "text");
    // What comes before the end is handled before it.
    client.send(
        &[
            frame(FIN | TEXT, b"a"),
            frame(FIN | TEXT, b"b"),
            close(3000, "c"),
        ]
        .concat(),
    );
    assert_eq!(
        client.rest(),
        [Frame::text("a"), Frame::text("b"), Frame::close(3000, "c")]
    );
    let mut client = talk(&server, "receive");
    client.text("a");
    thread::sleep(Duration::from_millis(50));
    client.text("b");
    assert_eq!(client.next_text(), "ab");
    client.close();
    // While `onOpen` runs, nothing else does.
    let mut client = talk(&server, "wait-open");
    client.text("early");
    assert_eq!(
        (client.next_text(), client.next_text()),
        ("opened".into(), "early".into())
    );
    client.close();
    none_is_open(&server);
    assert!(!server.log().contains("two at a time"), "{}", server.log());
}

#[test]
fn its_handler_ends_it() {
    let server = serve(&[]);
    let ends = |how: &str| {
        let mut client = talk(&server, how);
        client.text("m");
        client.rest()
    };
    assert_eq!(ends("throw"), [Frame::close(1011, "")]);
    expect_log(&server, "thrown for m");
    expect_closed(&server, "throw", 1011, "", "");
    assert_eq!(ends("throw-open"), [Frame::close(1011, "")]);
    expect_log(&server, "thrown in onOpen");
    expect_closed(&server, "throw-open", 1011, "", "");
    assert_eq!(ends("exit-open"), [Frame::close(1000, "")]);
    expect_closed(&server, "exit-open", 1000, "", "");
    assert_eq!(ends("close-open"), [Frame::close(4001, "at once")]);
    expect_closed(&server, "close-open", 4001, "at once", "");
    assert_eq!(ends("close"), [Frame::close(4002, "no m")]);
    expect_closed(&server, "close", 4002, "no m", "m");
    assert_eq!(ends("exit"), [Frame::close(1000, "")]);
    expect_closed(&server, "exit", 1000, "", "");
    for how in ["throw-close", "late-close"] {
        let mut client = talk(&server, how);
        client.text("m");
        assert_eq!(client.next_text(), "m");
        assert_eq!(client.close(), [Frame::close(1000, "")]);
    }
    expect_log(&server, "thrown in onClose");
    // What is printed is no message; what is deferred runs after each event.
    let mut client = talk(&server, "print");
    client.text("m");
    assert_eq!(client.close(), [Frame::close(1000, "")]);
    let mut client = talk(&server, "defer");
    assert_eq!(client.next_text(), "deferred by onOpen");
    for message in ["1", "2"] {
        client.text(message);
        assert_eq!(client.next_text(), format!("deferred for {message}"));
    }
    client.close();
    let mut client = Client::open(server.address(), "/broken");
    assert_eq!(client.rest(), [Frame::close(1011, "")]);
    expect_log(&server, "thrown in a constructor");
    none_is_open(&server);
    assert!(
        !server.log().contains("WebSocketClosed"),
        "{}",
        server.log()
    );
}

#[test]
fn a_fatal_error_ends_all_of_its_isolate_and_all_are_told() {
    for (how, said) in [("fatal", ""), ("memory", "")] {
        let server = serve(&["memory_limit=64M"]);
        let at = server.address();
        let mut other = talk(&server, "echo");
        let mut busy = talk(&server, "wait");
        busy.text("busy");
        let mut client = talk(&server, how);
        client.text("m");
        assert_eq!(client.rest(), [Frame::close(1011, "")], "{how}");
        assert_eq!(other.rest(), [Frame::close(1012, "")]);
        assert_eq!(busy.rest(), [Frame::close(1012, "")]);
        expect_closed(&server, how, 1011, "", said);
        expect_closed(&server, "echo", 1012, "", "");
        assert_eq!(Request::get("/").send(at).text(), "Hello");
        let mut next = talk(&server, "echo");
        next.text("again");
        assert_eq!(next.next_text(), "again");
    }
    // It may be another one's.
    let server = serve(&[]);
    let mut others: Vec<_> = (0..120).map(|_| talk(&server, "slow-close")).collect();
    let mut client = Client::open(server.address(), "/loop");
    client.text("fatal");
    client.rest();
    for other in &mut others {
        assert_eq!(other.rest(), [Frame::close(1012, "")]);
    }
    let all = || server.log().matches("closed slow-close").count() == 120;
    wait_for("not all are told", all);
}

#[test]
fn its_client_ends_it() {
    let server = serve(&["request_timeout=1s"]);
    let client = talk(&server, "echo");
    drop(client);
    expect_closed(&server, "echo", 1006, "", "");
    // What its handler waits for has the time of a request, and so has `onClose` then.
    let mut client = talk(&server, "wait");
    client.text("m");
    thread::sleep(Duration::from_millis(100));
    assert_eq!(client.close(), [Frame::close(1000, "")]);
    expect_closed(&server, "wait", 1000, "", "");
    let mut client = talk(&server, "flood");
    client.text("m");
    thread::sleep(Duration::from_millis(200));
    drop(client);
    expect_closed(&server, "flood", 1006, "", "");
    // Gone before, while, and after it is opened.
    for pause in [0, 0, 1, 5, 50, 300] {
        let client = talk(&server, "wait-open");
        thread::sleep(Duration::from_millis(pause));
        drop(client);
    }
    none_is_open(&server);
    let closed = || server.log().matches("closed wait-open").count() == 6;
    wait_for("not all were told", closed);
    assert!(!server.log().contains("Uncaught"), "{}", server.log());
}

#[test]
fn new_code_and_the_end_of_the_server_end_it() {
    let folder = TempDir::new("websocket");
    let code = std::fs::read_to_string(fixture("websocket").join("classes.php")).expect("read");
    let script = folder.file("app.php", &code);
    let mut server = Surus::serve(&script).start();
    let mut clients: Vec<_> = (0..60).map(|_| talk(&server, "echo")).collect();
    // Those that do something meanwhile, too.
    let mut slow: Vec<_> = (0..20).map(|_| talk(&server, "slow")).collect();
    for client in &mut slow {
        client.text("m");
    }
    folder.file("app.php", &code.replace("'Hello'", "'New'"));
    let (status, text) = server.command(&["reload"]);
    assert_eq!(status, Some(0), "{text}");
    for client in &mut clients {
        assert_eq!(client.rest(), [Frame::close(1012, "")]);
    }
    for client in &mut slow {
        // What they would have sent afterwards is not.
        assert_eq!(client.rest().last(), Some(&Frame::close(1012, "")));
    }
    assert_eq!(Request::get("/").send(server.address()).text(), "New");
    none_is_open(&server);
    for (how, count) in [("echo", 60), ("slow", 20)] {
        let closed = format!("closed {how} /talk/{how} [1012,");
        let all = || server.log().matches(&closed).count() == count;
        wait_for("not all are told", all);
    }

    let mut client = talk(&server, "slow-close");
    client.text("again");
    assert_eq!(client.next_text(), "again");
    server.process().signal(Signal::SIGTERM);
    assert_eq!(client.rest(), [Frame::close(1001, "")]);
    wait_for("the server does not end", || {
        server.process().ended().is_some()
    });
    let log = server.log();
    assert!(
        log.contains("closed slow-close /talk/slow-close [1001,\"\",\"again\",\"Ann\"]"),
        "{log}"
    );
}

#[test]
fn topics_need_no_fiber() {
    let server = serve(&[]);
    let at = server.address();
    let mut clients: Vec<_> = (0..50).map(|_| talk(&server, "topic")).collect();
    for client in &mut clients {
        client.text("in");
        while client.next_text() != "subscribed" {}
    }
    Request::get("/publish?text=news").send(at).expect(200);
    for client in &mut clients {
        while client.next_text() != "news" {}
    }
}

/// More than may be in flight are open and say something at the same time, while others come and go.
#[test]
fn nobody_gets_a_message_of_another_one() {
    const ROUNDS: usize = 15;
    let server = serve(&["max_requests_in_flight=10", "max_queue=200"]);
    let at = server.address();
    let idle: Vec<_> = (0..500).map(|_| talk(&server, "echo")).collect();
    together(100, |number| {
        let mut client = Client::open(at, "/talk/slow");
        for round in 0..ROUNDS {
            let token = format!("{number}/{round}");
            client.text(&token);
            if number % 4 == 3 && round % 5 == 4 {
                client = Client::open(at, "/talk/slow");
                continue;
            }
            assert_eq!(client.next_text(), token);
        }
        assert_eq!(client.close(), [Frame::close(1000, "")]);
    });
    let status = server.status();
    assert_eq!(status["workers"][0]["in_flight"], 0);
    drop(idle);
    none_is_open(&server);
    assert!(!server.log().contains("Uncaught"), "{}", server.log());
}
