//! Everything at once, at random: kills, reloads, slow clients, clients that leave. Afterwards the books of both sides
//! agree: no request was lost without its client being told, and none was executed twice.
//!
//! `SURUS_SOAK=600` makes it last ten minutes.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use surus_tests::http::{Connection, Request};
use surus_tests::surus::Surus;
use surus_tests::temp::TempDir;

const APP: &str = "<?php return function ($request) {
    $id = $request->query('id');
    // Each worker has a file of its own, so that no line is torn.
    file_put_contents(__DIR__ . '/done.' . getmypid(), \"$id\\n\", FILE_APPEND);
    usleep(random_int(0, 4000));
    return $id;
};";

const WORKERS: usize = 3;
const CLIENTS: usize = 6;

/// A generator of numbers that need not be good, only the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

#[derive(Default)]
struct Books {
    answered: BTreeSet<String>,
    /// Sent, and not answered: the client has left, or was told by the end of its connection.
    unanswered: BTreeSet<String>,
}

fn client(server: &Surus, number: usize, stop: &AtomicBool) -> Books {
    let mut random = Random(number as u64 + 1);
    let mut books = Books::default();
    for count in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let id = format!("{number}-{count}");
        let request = Request::get(&format!("/?id={id}"));
        let Ok(mut connection) = Connection::open(server.address()) else {
            continue;
        };
        let bytes = request.bytes(server.address());
        let sent = if random.below(10) == 0 {
            // A slow one.
            let (first, rest) = bytes.split_at(bytes.len() / 2);
            connection.write(first).and_then(|()| {
                thread::sleep(Duration::from_millis(random.below(50)));
                connection.write(rest)
            })
        } else {
            connection.write(&bytes)
        };
        if sent.is_err() || random.below(10) == 0 {
            // It leaves without its answer.
            books.unanswered.insert(id);
            continue;
        }
        match connection.response("GET") {
            Ok(response) if response.status == 200 => {
                assert_eq!(response.text(), id, "somebody else's answer");
                books.answered.insert(id);
            }
            Ok(response) => panic!("{} for {id}: {}", response.status, response.text()),
            Err(_) => _ = books.unanswered.insert(id),
        }
    }
    books
}

fn total(status: &serde_json::Value, key: &str) -> u64 {
    let workers = status["workers"].as_array().unwrap();
    let seats: BTreeMap<u64, u64> = workers
        .iter()
        .map(|worker| {
            (
                worker["worker"].as_u64().unwrap(),
                worker[key].as_u64().unwrap_or(0),
            )
        })
        .collect();
    seats.values().sum()
}

#[test]
fn the_books_agree_after_random_failures() {
    let length = env::var("SURUS_SOAK")
        .ok()
        .and_then(|text| text.parse().ok());
    let length = Duration::from_secs(length.unwrap_or(10));
    let folder = TempDir::new("soak");
    folder.file("app.php", APP);
    let server = Surus::serve(&folder.path().join("app.php"))
        .workers(WORKERS)
        .start();
    let stop = AtomicBool::new(false);
    let mut kills = 0;
    let mut early = 0;
    let books = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let (server, stop) = (&server, &stop);
                scope.spawn(move || client(server, number, stop))
            })
            .collect();
        let mut random = Random(7);
        let begun = Instant::now();
        while begun.elapsed() < length {
            thread::sleep(Duration::from_millis(100 + random.below(300)));
            let workers = server.workers();
            if random.below(3) > 0 {
                let (code, text) = server.command(&["reload"]);
                assert!(
                    code == Some(0) || text.contains("killed"),
                    "{text}{}",
                    server.log()
                );
            } else if workers.len() > 1 {
                let victim = workers[random.below(workers.len() as u64) as usize];
                kill(Pid::from_raw(victim), Signal::SIGKILL).unwrap();
                kills += 1;
            }
            if early == 0 && begun.elapsed() > length / 3 {
                early = total(&server.status(), "rss_bytes");
            }
        }
        stop.store(true, Ordering::Relaxed);
        let mut books = Books::default();
        for client in clients {
            let own = client.join().expect("a client");
            books.answered.extend(own.answered);
            books.unanswered.extend(own.unanswered);
        }
        books
    });
    // What clients have left behind ends by itself.
    thread::sleep(Duration::from_millis(500));
    let mut done = BTreeMap::new();
    for file in fs::read_dir(folder.path()).unwrap().flatten() {
        if file.file_name().to_string_lossy().starts_with("done.") {
            for id in fs::read_to_string(file.path()).unwrap().lines() {
                *done.entry(id.to_owned()).or_insert(0) += 1;
            }
        }
    }
    assert!(kills > 0 && books.answered.len() > 100, "{kills} kills");
    for id in &books.answered {
        assert_eq!(done.get(id), Some(&1), "{id} was answered");
    }
    for (id, times) in &done {
        assert_eq!(*times, 1, "{id} was executed again");
        assert!(
            books.answered.contains(id) || books.unanswered.contains(id),
            "{id} was not asked for"
        );
    }
    let status = server.status();
    let counted = total(&status, "requests_total") as usize;
    assert!(
        counted >= books.answered.len(),
        "{counted} of {}",
        books.answered.len()
    );
    assert!(counted <= done.len(), "{counted} of {}", done.len());
    let late = total(&status, "rss_bytes");
    assert!(late < early * 3 / 2, "{early} bytes, then {late}");
}
