//! Topics: what is published reaches who has subscribed, in all workers.

use std::collections::{HashMap, HashSet};

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use surus_tests::fixture;
use surus_tests::http::Request;
use surus_tests::parallel::together;
use surus_tests::surus::Surus;
use surus_tests::waiting::wait_for;
use surus_tests::websocket::{Client, Frame};

use super::serve;

fn serve_with(workers: usize) -> Surus {
    Surus::serve(&fixture("websocket").join("app.php"))
        .workers(workers)
        .start()
}

/// A client that has subscribed, and the process that it is connected to.
fn subscribed(server: &Surus, topics: &[&str]) -> (Client, String) {
    let mut client = Client::open(server.address(), "/topics");
    let worker = client.next_text();
    for topic in topics {
        let message = format!("+{topic}");
        client.text(&message);
        assert_eq!(client.next_text(), message);
    }
    (client, worker)
}

/// Clients of several workers: the kernel chooses one for each connection.
fn spread(server: &Surus, topics: &[&str], workers: usize) -> Vec<(Client, String)> {
    let mut clients: Vec<_> = (0..20).map(|_| subscribed(server, topics)).collect();
    wait_for("not all workers have clients", || {
        let seen: HashSet<_> = clients.iter().map(|(_, worker)| worker.clone()).collect();
        if seen.len() < workers {
            clients.push(subscribed(server, topics));
        }
        seen.len() >= workers
    });
    clients
}

/// Returns the process that has published it.
fn publish(server: &Surus, query: &str) -> String {
    let answer = Request::get(&format!("/publish?{query}")).send(server.address());
    answer.expect(200).text()
}

#[test]
fn who_has_subscribed_gets_it() {
    let server = serve();
    let (mut red, _) = subscribed(&server, &["red"]);
    let (mut both, _) = subscribed(&server, &["red", "blue"]);
    let (gone, _) = subscribed(&server, &["red", "blue"]);
    publish(&server, "topic=red&text=1");
    drop(gone);
    publish(&server, "topic=blue&text=2");
    publish(&server, "topic=green&text=3");
    publish(&server, "topic=red&text=4");
    assert_eq!((red.next_text(), red.next_text()), ("1".into(), "4".into()));
    for text in ["1", "2", "4"] {
        assert_eq!(both.next_text(), text);
    }
    both.text("-red");
    assert_eq!(both.next_text(), "-red");
    publish(&server, "topic=red&text=5");
    publish(&server, "topic=blue&text=6");
    assert_eq!(both.next_text(), "6");
    assert_eq!(red.next_text(), "5");
    assert_eq!(red.close(), [Frame::close(1000, "")]);
    let said = Request::get("/wrong").send(server.address()).json();
    let said = said.as_array().expect("a list");
    assert_eq!(said.len(), 5, "{said:?}");
    let texts = [
        "1 to 200 bytes",
        "1 to 200 bytes",
        "1 to 200 bytes",
        "is UTF-8",
        "has 65537",
    ];
    for (said, text) in said.iter().zip(texts) {
        assert!(said.to_string().contains(text), "{said}");
    }
}

#[test]
fn it_reaches_all_workers_in_order() {
    let server = serve_with(3);
    let mut clients = spread(&server, &["news"], 3);
    // More than the sockets between workers take, from several of them at a time, and less than may wait for a client.
    together(3, |number| {
        publish(
            &server,
            &format!("topic=news&text={number}&times=15&size=20000"),
        );
    });
    for (client, _) in &mut clients {
        let mut next = HashMap::new();
        for _ in 0..45 {
            let text = client.next_text();
            let (publisher, number) = text.trim_end().split_once(' ').expect("two words");
            let expected = next.entry(publisher.to_owned()).or_insert(0);
            assert_eq!(number, expected.to_string());
            *expected += 1;
        }
        assert_eq!(next.len(), 3);
    }
    publish(&server, "topic=news&text=last");
    for (client, _) in &mut clients {
        assert_eq!(client.next_text(), "last");
    }
}

/// Nobody waits for it, and it does not miss anything without knowing.
#[test]
fn who_is_too_slow_has_to_come_again() {
    let server = serve();
    let (mut slow, _) = subscribed(&server, &["news"]);
    let (mut quick, _) = subscribed(&server, &["news"]);
    for _ in 0..40 {
        publish(&server, "topic=news&text=many&times=10&size=60000");
        for _ in 0..10 {
            assert!(quick.next_text().starts_with("many"));
        }
    }
    let frames = slow.rest();
    assert!(frames.len() < 400, "{} messages", frames.len());
    assert_eq!(frames.last(), Some(&Frame::close(1013, "")));
}

#[test]
fn workers_that_die_and_new_code_disturb_nobody() {
    let server = serve_with(2);
    let mut clients = spread(&server, &["news"], 2);
    let dead = clients[0].1.clone();
    let pid = dead.parse().expect("a process id");
    kill(Pid::from_raw(pid), Signal::SIGKILL).expect("kill");
    clients.retain(|(_, worker)| *worker != dead);
    // While nobody reads its letters, and more than there is room for.
    let publishing = |text: &str| loop {
        let query = format!("topic=news&text={text}&times=20&size=30000");
        let request = Request::get(&format!("/publish?{query}"));
        if request.try_send(server.address()).is_ok() {
            break;
        }
    };
    publishing("old");
    let all_new = || {
        let workers = server.workers();
        workers.len() == 2 && !workers.contains(&pid)
    };
    wait_for("the worker is not replaced", all_new);
    for (client, _) in &mut clients {
        for number in 0..20 {
            assert_eq!(client.next_text().trim_end(), format!("old {number}"));
        }
    }
    let mut fresh = spread(&server, &["news"], 2);
    publish(&server, "topic=news&text=new");
    for (client, _) in clients.iter_mut().chain(&mut fresh) {
        assert_eq!(client.next_text(), "new");
    }
    let (code, text) = server.command(&["reload"]);
    assert_eq!(code, Some(0), "{text}");
    for (client, _) in clients.iter_mut().chain(&mut fresh) {
        assert_eq!(client.rest(), [Frame::close(1012, "")]);
    }
    let mut clients = spread(&server, &["news"], 2);
    publish(&server, "topic=news&text=again");
    for (client, _) in &mut clients {
        assert_eq!(client.next_text(), "again");
    }
    let log = server.log();
    assert!(!log.contains("letter"), "{log}");
}
