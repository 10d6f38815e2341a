//! Several servers share channels through Redis.

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use surus_tests::http::Request;
use surus_tests::redis::Redis;
use surus_tests::surus::Surus;
use surus_tests::waiting::wait_for;

use super::{joined, options, publish, stream, RULES};

fn node(redis: &Redis) -> Surus {
    let url = format!("redis://127.0.0.1:{}", redis.port());
    let config = format!("[app.app]\nchannels_redis = \"{url}\"\n{RULES}");
    options().config(&config).workers(2).start()
}

fn members(server: &Surus) -> String {
    let answer = Request::get("/members?channel=room").send(server.address());
    answer.expect(200).text()
}

/// Waits until what is published on one is heard on the other, whichever worker that is.
fn are_connected(from: &Surus, to: &Surus) {
    let mut heard = stream(to, "heard", None);
    let end = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !end.load(std::sync::atomic::Ordering::Relaxed) {
                publish(from, "heard", "x");
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
        });
        heard.data();
        end.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn two_servers_have_the_same_channels_whatever_ends_and_comes_again() {
    let mut redis = Redis::own();
    let (one, two) = (node(&redis), node(&redis));
    are_connected(&one, &two);
    are_connected(&two, &one);
    // Without a history, and with one: everybody gets all, in one order.
    let mut plain = [stream(&one, "a", None), stream(&two, "a", None)];
    let mut kept = [stream(&one, "kept/a", None), stream(&two, "kept/a", None)];
    let mut positions = Vec::new();
    for number in 0..6 {
        let from = [&one, &two][number % 2];
        publish(from, "a", &number.to_string());
        positions.push(publish(from, "kept/a", &number.to_string()));
    }
    let numbers: Vec<_> = (0..6).map(|number| number.to_string()).collect();
    for events in &mut kept {
        assert_eq!(events.all(6), numbers);
        assert_eq!(events.last_id, positions[5]);
    }
    for events in &mut plain {
        let mut got = events.all(6);
        got.sort();
        assert_eq!(got, numbers);
    }
    // A client of one goes on with the other.
    let mut again = stream(&two, "kept/a", Some(&positions[2]));
    assert_eq!(again.all(3), numbers[3..]);
    // Presence, of both.
    let (ann, worker) = joined(&one, "ann");
    let (_bob, _) = joined(&two, "bob");
    for server in [&one, &two] {
        wait_for("not both are there", || {
            let all = members(server);
            all.contains("ann") && all.contains("bob")
        });
    }
    kill(Pid::from_raw(worker), Signal::SIGKILL).expect("kill");
    for server in [&two, &one] {
        wait_for("ann is still there", || {
            let all = members(server);
            !all.contains("ann") && all.contains("bob")
        });
    }
    drop(ann);
    // Redis is gone: channels without a history are each server's own, others cannot be published on.
    let mut here = stream(&two, "a", None);
    let mut there = stream(&two, "kept/b", None);
    redis.kill();
    wait_for("it is published nevertheless", || {
        let request = Request::get("/publish?channel=kept/b&text=lost");
        request.send(two.address()).status == 500
    });
    publish(&two, "a", "alone");
    assert_eq!(here.data(), "alone");
    // It comes again, and has forgotten all.
    redis.again();
    let published = |server: &Surus, text: &str| {
        wait_for("it is not there again", || {
            let request = Request::get(&format!("/publish?channel=kept/b&text={text}"));
            request.send(server.address()).status == 200
        });
    };
    published(&two, "again");
    // Nobody knows whether something was published that has never come here.
    assert_eq!(there.next().expect("an event").kind, "missed");
    published(&two, "more");
    while there.data() != "more" {}
    are_connected(&one, &two);
    are_connected(&two, &one);
    for server in [&one, &two] {
        wait_for("bob is not there", || members(server).contains("bob"));
    }
    let mut late = stream(&one, "kept/a", Some(&positions[2]));
    assert_eq!(late.next().expect("an event").kind, "missed");
}
