//! How a WebSocket ends: the handler, the client, the server.

use std::net::Shutdown;
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;
use surus_tests::http::Request;
use surus_tests::surus::Surus;
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;
use surus_tests::websocket::{frame, Client, Frame, FIN, PING, PONG};

use super::{serve, set};

fn open(server: &Surus) -> u64 {
    let status = server.status();
    let open = status["workers"][0]["websockets"].as_u64();
    open.expect("a number")
}

fn expect_log(server: &Surus, text: &str) {
    wait_for(&format!("the log has no {text}"), || {
        server.log().contains(text)
    });
}

#[test]
fn a_handler_ends_it() {
    let server = serve();
    let at = server.address();
    let end = |how: &str| {
        let mut client = Client::open(at, &format!("/end?how={how}"));
        client.text("now");
        client.rest()
    };
    assert_eq!(end("throw"), [Frame::close(1011, "")]);
    expect_log(&server, "thrown in a loop");
    assert_eq!(end("exit"), [Frame::close(1000, "")]);
    assert_eq!(end("close"), [Frame::close(4001, "no now")]);
    expect_log(&server, r#"finally close [4001,"no now",false]"#);
    assert_eq!(end("text"), [Frame::close(1011, "")]);
    expect_log(&server, "A text of a WebSocket is UTF-8");
    assert_eq!(end("code"), [Frame::close(1011, "")]);
    expect_log(&server, "A WebSocket is closed with a code of");
    let mut client = Client::open(at, "/room/a");
    assert_eq!(client.next_text(), "a, nobody");
    client.text("throw");
    assert_eq!(client.rest(), [Frame::close(1011, "")]);
    expect_log(&server, "closed after 0 with");
    let mut client = Client::open(at, "/end?how=timeout");
    client.text("now");
    assert_eq!(client.next_text(), "No message has come within 0.05 s");
    client.close();
    // What is printed is no message.
    let mut client = Client::open(at, "/end?how=print");
    client.text("now");
    assert_eq!(client.close(), [Frame::close(1000, "")]);
    wait_for("a handler goes on", || open(&server) == 0);
    assert!(!server.log().contains("WebSocketClosed"));
}

#[test]
fn a_fatal_error_ends_it_and_the_others_of_its_isolate() {
    let server = serve();
    let at = server.address();
    let mut other = Client::open(at, "/echo");
    let mut client = Client::open(at, "/end?how=fatal");
    client.text("now");
    assert_eq!(client.rest(), [Frame::close(1011, "")]);
    assert_eq!(other.rest(), [Frame::close(1012, "")]);
    assert_eq!(Request::get("/").send(at).text(), "Hello");
    let mut next = Client::open(at, "/echo");
    next.text("again");
    assert_eq!(next.next_text(), "again");
}

#[test]
fn a_client_ends_it() {
    let server = set(&["request_timeout=2s"]);
    let at = server.address();
    // It waits for a message: the loop ends.
    let client = Client::open(at, "/end?how=echo");
    wait_for("it is not open", || open(&server) == 1);
    drop(client);
    expect_log(&server, r#"finally echo [1006,"",false]"#);
    // With its sending direction only: there is no closing handshake, so nothing can be sent either.
    let mut client = Client::open(at, "/end?how=echo");
    client
        .stream()
        .shutdown(Shutdown::Write)
        .expect("shut down");
    assert_eq!(client.rest(), []);
    // It waits for something else: it has the time of a request.
    let mut client = Client::open(at, "/end?how=wait");
    client.text("now");
    thread::sleep(Duration::from_millis(100));
    assert_eq!(client.close(), [Frame::close(1000, "")]);
    wait_for("its handler goes on", || {
        server.log().contains("finally wait")
    });
    // It reads nothing while the handler sends: that waits, and ends.
    let mut client = Client::open(at, "/end?how=flood");
    client.text("now");
    thread::sleep(Duration::from_millis(300));
    drop(client);
    expect_log(&server, r#"finally flood [1006,"",false]"#);
    wait_for("a handler goes on", || {
        server.status()["workers"][0]["in_flight"] == 0 && open(&server) == 0
    });
    assert!(!server.log().contains("Uncaught"), "{}", server.log());
}

/// A client that is there answers, or says something else; one that is silent is gone, although its connection is open.
#[test]
fn a_silent_client_is_gone() {
    let server = set(&["websocket_ping=1s"]);
    let at = server.address();
    let mut answers = Client::open(at, "/end?how=echo");
    let mut silent = Client::open(at, "/end?how=echo");
    let ping = Frame {
        first: FIN | PING,
        payload: Vec::new(),
    };
    for _ in 0..4 {
        assert_eq!(answers.frame(), Some(ping.clone()));
        answers.send(&frame(FIN | PONG, b""));
    }
    assert_eq!(silent.rest(), [ping.clone(), ping]);
    expect_log(&server, r#"finally echo [1006,"",false]"#);
    assert_eq!(open(&server), 1);
    assert_eq!(answers.close(), [Frame::close(1000, "")]);
}

#[test]
fn it_lasts_longer_than_a_request() {
    let server = set(&["request_timeout=1s", "slow_log=500ms"]);
    let at = server.address();
    let mut client = Client::open(at, "/echo");
    client.text("first");
    assert_eq!(client.next_text(), "first");
    thread::sleep(Duration::from_millis(2500));
    client.text("late");
    assert_eq!(client.next_text(), "late");
    client.close();
    let log = server.log();
    assert!(!log.contains("slow") && !log.contains("timed out"), "{log}");
}

#[test]
fn new_code_and_the_end_of_the_server_end_it() {
    let folder = TempDir::new("websocket");
    let script = surus_tests::fixture("websocket").join("app.php");
    let code = std::fs::read_to_string(script).expect("read");
    let script = folder.file("app.php", &code);
    let mut server = Surus::serve(&script).start();
    let at = server.address();
    let mut clients: Vec<_> = (0..20).map(|_| Client::open(at, "/end?how=echo")).collect();
    clients[0].text("before");
    assert_eq!(clients[0].next_text(), "before");
    folder.file("app.php", &code.replace("'Hello'", "'New'"));
    let (status, text) = server.command(&["reload"]);
    assert_eq!(status, Some(0), "{text}");
    for client in &mut clients {
        assert_eq!(client.rest(), [Frame::close(1012, "")]);
    }
    assert_eq!(Request::get("/").send(at).text(), "New");
    wait_for("a handler goes on", || open(&server) == 0);
    let count = |log: &str| log.matches(r#"finally echo [1012,"",false]"#).count();
    wait_for("not all have ended", || count(&server.log()) == 20);

    let mut client = Client::open(at, "/end?how=echo");
    client.text("again");
    assert_eq!(client.next_text(), "again");
    server.process().signal(Signal::SIGTERM);
    assert_eq!(client.rest(), [Frame::close(1001, "")]);
    wait_for("the server does not end", || {
        server.process().ended().is_some()
    });
    assert!(server.log().contains(r#"finally echo [1001,"",false]"#));
}

#[test]
fn other_modes_have_none() {
    let app = surus_tests::fixture("websocket").join("app.php");
    for options in [
        Surus::serve(&app).argument("--mode").argument("worker"),
        Surus::serve(&app).argument("--set").argument("processes=2"),
    ] {
        let error = options.boot_error();
        let expected = "WebSockets are for coroutine mode, without `processes`";
        assert!(error.contains(expected), "{error}");
    }
    let folder = TempDir::new("websocket");
    let call = "<?php try { Surus\\Internal\\websocket_accept(1000); } catch (Error $error) { echo $error->getMessage(); }";
    let script = folder.file("index.php", call);
    for mode in ["classic", "process"] {
        let server = Surus::serve(&script)
            .argument("--mode")
            .argument(mode)
            .start();
        let text = Request::get("/").send(server.address()).text();
        assert!(
            text.starts_with("WebSockets need coroutine mode"),
            "{mode}: {text}"
        );
    }
}
