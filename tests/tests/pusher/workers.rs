//! Several workers: what is said to one is heard in all, and who was there when one was killed.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use serde_json::json;
use surus_tests::pusher::Client;
use surus_tests::redis::Redis;
use surus_tests::surus::{Mode, Surus};
use surus_tests::waiting::wait_for;

use super::{options, CHAT, CONFIG};

/// Enough for each worker to have some: the system spreads them.
const CLIENTS: usize = 16;

fn two_workers() -> Surus {
    options(Mode::Classic).workers(2).start()
}

fn users(at: SocketAddr) -> usize {
    let info = [("info", "user_count")];
    let about = CHAT.get(at, "/channels/presence-all", &info);
    about["user_count"].as_u64().expect("a number") as usize
}

#[test]
fn events_reach_all_workers() {
    let server = two_workers();
    let at = server.address();
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| Client::connect(at, CHAT)).collect();
    for client in &mut clients {
        client.subscribe("private-all", None);
    }
    let all = json!({"occupied": true, "subscription_count": CLIENTS});
    let status = server.status();
    let counts = status["workers"].as_array().expect("workers").iter();
    let counts = counts.map(|worker| worker["pusher_connections"].as_u64().expect("a number"));
    assert_eq!(counts.sum::<u64>(), CLIENTS as u64);
    wait_for("not all are counted", || {
        CHAT.get(
            at,
            "/channels/private-all",
            &[("info", "subscription_count")],
        ) == all
    });
    // Each request may come to another worker.
    for number in 0..8 {
        CHAT.trigger(at, "private-all", "e", &number.to_string());
    }
    for client in &mut clients {
        let mut numbers: Vec<u64> = (0..8)
            .map(|_| client.expect("e").data.as_u64().expect("a number"))
            .collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..8).collect::<Vec<u64>>());
    }
    clients[0].whisper("private-all", "client-a", &json!({}));
    for client in &mut clients[1..] {
        client.expect("client-a");
    }
    clients[0].expect_nothing();
    // A user of either worker.
    let socket = clients[1].socket.clone();
    let data = json!({"id": "7"}).to_string();
    let signature = CHAT.sign(&format!("{socket}::user::{data}"));
    let sign_in = json!({"auth": format!("{}:{signature}", CHAT.key), "user_data": data});
    clients[1].say("pusher:signin", &sign_in);
    clients[1].expect("pusher:signin_success");
    CHAT.post(at, "/users/7/terminate_connections", &json!({}))
        .expect(200);
    assert_eq!(clients[1].end(), (vec!["pusher:error".to_owned()], 4009));
    clients[2].expect_nothing();
}

#[test]
fn a_killed_worker_takes_its_members_with_it() {
    let server = two_workers();
    let at = server.address();
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| Client::connect(at, CHAT)).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        // Each user has two connections.
        let user = format!("u{}", number / 2);
        client.subscribe("presence-all", Some(&user));
    }
    wait_for("not all are seen", || users(at) == CLIENTS / 2);
    let victim = server.workers()[0];
    kill(Pid::from_raw(victim), Signal::SIGKILL).expect("kill a worker");
    // Those of the other worker are still connected, and are told of each user that is gone.
    let mut left: Vec<Client> = clients
        .into_iter()
        .filter_map(|mut client| client.is_alive().then_some(client))
        .collect();
    let mut here: BTreeSet<String> = left.iter().map(|client| client.user.clone()).collect();
    for client in &mut left {
        client.wait_for_members(&here);
    }
    wait_for("members of a dead worker are still there", || {
        users(at) == here.len()
    });
    // Whoever comes back is seen by all.
    let mut again = Client::connect(at, CHAT);
    again.subscribe("presence-all", Some("new"));
    here.insert("new".to_owned());
    left.push(again);
    for client in &mut left {
        client.wait_for_members(&here);
    }
}

/// Servers that share channels through Redis share those of this protocol, cache channels too, on whose history they agree.
#[test]
fn servers_share_channels() {
    let redis = format!("redis://127.0.0.1:{}", Redis::shared().port());
    let config = format!("[app.app]\nchannels_redis = \"{redis}\"\n{CONFIG}");
    let servers = [(); 2].map(|()| options(Mode::Classic).config(&config).start());
    let [first, second] = servers.each_ref().map(Surus::address);
    let mut one = Client::connect(first, CHAT);
    let mut two = Client::connect(second, CHAT);
    one.subscribe("presence-all", Some("ann"));
    wait_for("the other server does not see ann", || users(second) == 1);
    two.subscribe("presence-all", Some("bob"));
    assert_eq!(two.members.len(), 2);
    one.expect("pusher_internal:member_added");
    for client in [&mut one, &mut two] {
        client.subscribe("private-cache-x", None);
        client.expect("pusher:cache_miss");
    }
    CHAT.trigger(first, "private-cache-x", "made", "1");
    one.whisper("private-cache-x", "client-e", &json!(2));
    assert_eq!(one.expect("made").data, 1);
    two.expect("made");
    two.expect("client-e");
    one.expect_nothing();
    let mut late = Client::connect(second, CHAT);
    late.subscribe("private-cache-x", None);
    assert_eq!(late.expect("made").data, 1);
}
