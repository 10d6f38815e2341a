//! Who is in a channel.

use std::collections::HashSet;

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use serde_json::{json, Value};
use surus_tests::http::Request;
use surus_tests::surus::Surus;
use surus_tests::waiting::wait_for;
use surus_tests::websocket::Client;

use super::{joined, serve, stream};

fn members(server: &Surus) -> Value {
    Request::get("/members?channel=room")
        .send(server.address())
        .expect(200)
        .json()
}

fn names(server: &Surus) -> Vec<String> {
    let members = members(server);
    let names = members.as_array().expect("a list").iter();
    names
        .map(|one| one[0].as_str().expect("a name").to_owned())
        .collect()
}

/// Waits until these are there, as each worker sees it.
fn are<T>(server: &Surus, expected: &[T])
where
    String: PartialEq<T>,
{
    for _ in 0..6 {
        wait_for("they are others", || names(server) == expected);
    }
}

#[test]
fn members_are_those_who_are_there_whatever_worker_is_killed() {
    let server = serve(3);
    let (mut ann, _) = joined(&server, "ann");
    let (again, _) = joined(&server, "ann");
    let (bob, _) = joined(&server, "bob");
    are(&server, &["ann", "bob"]);
    assert_eq!(members(&server)[0], json!(["ann", {"name": "Ann"}]));
    ann.text("leave room");
    assert_eq!(ann.next_text(), "> leave");
    are(&server, &["ann", "bob"]);
    drop(again);
    are(&server, &["bob"]);
    drop(bob);
    are(&server, &[] as &[&str]);
    // Some of each worker.
    let mut clients: Vec<(Client, i32)> = Vec::new();
    let spread = |clients: &[(Client, i32)]| {
        clients
            .iter()
            .map(|(_, worker)| *worker)
            .collect::<HashSet<_>>()
            .len()
    };
    while spread(&clients) < 3 || clients.len() < 12 {
        assert!(clients.len() < 90);
        clients.push(joined(&server, &format!("m{:02}", clients.len() + 10)));
    }
    let victim = clients[0].1;
    let left = |alive: bool| {
        let names = clients
            .iter()
            .enumerate()
            .filter(|(_, one)| !alive || one.1 != victim);
        names
            .map(|(place, _)| format!("m{:02}", place + 10))
            .collect::<Vec<_>>()
    };
    are(&server, &left(false));
    kill(Pid::from_raw(victim), Signal::SIGKILL).expect("kill");
    are(&server, &left(true));
    wait_for("the worker is not replaced", || {
        let workers = server.workers();
        workers.len() == 3 && !workers.contains(&victim)
    });
    // The new worker knows the others.
    are(&server, &left(true));
    let (_new, _) = joined(&server, "zoe");
    wait_for("zoe is not there", || {
        names(&server).last().is_some_and(|name| name == "zoe")
    });
}

#[test]
fn subscribers_are_counted_over_all_workers() {
    let server = serve(2);
    let count = |expected: u64| {
        for _ in 0..6 {
            wait_for("there are others", || {
                let query = "/subscribers?channel=room";
                Request::get(query).send(server.address()).json()[0] == expected
            });
        }
    };
    count(0);
    let mut all: Vec<_> = (0..8).map(|_| stream(&server, "room", None)).collect();
    count(8);
    all.truncate(3);
    count(3);
}
