//! Everything at once, at random: kills, reloads, slow clients, clients that leave. Afterwards the books of both sides
//! agree: no request was lost without its client being told, and none was executed twice.
//!
//! `SURUS_SOAK=600 cargo test -p surus-tests --test master soak -- --nocapture` makes it last ten minutes and prints the books.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use serde_json::Value;
use surus_tests::http::{Connection, Request};
use surus_tests::surus::Surus;
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

/// Each process has a file of its own, so that no line is torn.
const WORK: &str = "<?php function work(string $id, int $size): string {
    file_put_contents(__DIR__ . '/done.' . getmypid(), \"$id\\n\", FILE_APPEND);
    usleep(random_int(0, 4000));
    return $id . str_repeat('.', $size);
}";
const APP: &str = "<?php require __DIR__ . '/work.php';
    return fn ($request) => work($request->query('id'), (int) $request->query('size'));";
const SITE: &str =
    "<?php require __DIR__ . '/work.php'; echo work($_GET['id'], (int) $_GET['size']);";

const CLIENTS: usize = 6;
/// A response that fits into no socket's buffer.
const LARGE: usize = 3_000_000;

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

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn pause(&mut self) {
        thread::sleep(Duration::from_millis(self.below(50)));
    }
}

/// What became of the requests of a client.
#[derive(Default)]
struct Books {
    answered: BTreeSet<String>,
    /// The client has left before the answer.
    left: BTreeSet<String>,
    /// The client was told: by the end of its connection, or by a 502.
    failed: BTreeSet<String>,
}

impl Books {
    fn add(&mut self, other: Books) {
        self.answered.extend(other.answered);
        self.left.extend(other.left);
        self.failed.extend(other.failed);
    }

    fn has(&self, id: &str) -> bool {
        [&self.answered, &self.left, &self.failed]
            .iter()
            .any(|ids| ids.contains(id))
    }
}

fn client(address: SocketAddr, number: usize, stop: &AtomicBool) -> Books {
    let mut random = Random(number as u64 + 1);
    let mut books = Books::default();
    let mut kept = None;
    for count in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let id = format!("{number}-{count}");
        let mut connection = match kept.take() {
            Some(connection) => connection,
            // The listening sockets are the master's: whoever dies, nobody is refused.
            None => Connection::open(address).expect("a connection"),
        };
        let size = if random.one_in(20) { LARGE } else { 0 };
        let request = Request::post(&format!("/?id={id}&size={size}"));
        let request = request.body("text/plain", vec![b'x'; random.below(20_000) as usize]);
        if let Err(error) = send(&mut connection, &request.bytes(address), &mut random) {
            assert!(error.kind() != ErrorKind::WouldBlock, "{id}: a stall");
            books.failed.insert(id);
            continue;
        }
        if random.one_in(10) {
            random.pause();
            books.left.insert(id);
            continue;
        }
        if size > 0 {
            // A slow reader.
            random.pause();
        }
        match connection.response("POST") {
            Ok(response) if response.status == 200 => {
                let text = response.text();
                assert_eq!(text.trim_end_matches('.'), id, "somebody else's answer");
                assert_eq!(text.len(), id.len() + size);
                let last = response.header("connection") == Some("close");
                kept = Some(connection).filter(|_| !last && random.one_in(2));
                books.answered.insert(id);
            }
            // The process that had it was killed.
            Ok(response) if response.status == 502 => _ = books.failed.insert(id),
            Ok(response) => panic!("{} for {id}: {}", response.status, response.text()),
            Err(error) => {
                assert!(error.kind() != ErrorKind::WouldBlock, "{id}: a stall");
                books.failed.insert(id);
            }
        }
    }
    books
}

fn send(connection: &mut Connection, bytes: &[u8], random: &mut Random) -> io::Result<()> {
    if !random.one_in(10) {
        return connection.write(bytes);
    }
    // A slow one.
    let (first, rest) = bytes.split_at(random.below(bytes.len() as u64) as usize);
    connection.write(first)?;
    random.pause();
    connection.write(rest)
}

/// What each process has written, and how often.
fn executed(folder: &Path) -> BTreeMap<String, usize> {
    let mut done = BTreeMap::new();
    for file in fs::read_dir(folder).unwrap().flatten() {
        if file.file_name().to_string_lossy().starts_with("done.") {
            for id in fs::read_to_string(file.path()).unwrap().lines() {
                *done.entry(id.to_owned()).or_insert(0) += 1;
            }
        }
    }
    done
}

/// A server while all of this happens to it.
struct Soak {
    server: Surus,
    random: Random,
    kills: usize,
    reloads: usize,
    /// Bytes of the master and of the one worker that is never killed, over time.
    memory: Vec<u64>,
}

impl Soak {
    fn processes(&self) -> Vec<Value> {
        let status = self.server.status();
        let processes = status["workers"].as_array().unwrap().clone();
        let ready = |process: &Value| process["state"] == "ready";
        processes.into_iter().filter(ready).collect()
    }

    fn act(&mut self) {
        thread::sleep(Duration::from_millis(100 + self.random.below(300)));
        if self.random.below(3) > 0 {
            let (code, text) = self.server.command(&["reload"]);
            assert!(
                code == Some(0) || text.contains("killed"),
                "{text}{}",
                self.server.log()
            );
            self.reloads += 1;
            return;
        }
        // Another one has to be there: that no worker is left has a pause.
        let mut processes = self.processes();
        processes.retain(|process| process["worker"] != 1);
        if !processes.is_empty() {
            let victim = &processes[self.random.below(processes.len() as u64) as usize];
            let pid = victim["pid"].as_i64().unwrap() as i32;
            // It may have ended by itself, replaced by the last reload.
            if kill(Pid::from_raw(pid), Signal::SIGKILL).is_ok() {
                self.kills += 1;
            }
        }
    }

    fn has_happened(&self) -> bool {
        self.kills > 0 && self.reloads > 0 && self.memory.len() >= 4
    }

    fn measure(&mut self) {
        let master = self.server.status()["pid"].as_u64().unwrap();
        let statm = fs::read_to_string(format!("/proc/{master}/statm")).unwrap();
        let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
        let processes = self.processes();
        let first = processes.iter().find(|process| process["worker"] == 1);
        let worker = first.expect("the worker that nobody kills")["rss_bytes"].as_u64();
        self.memory.push(pages * 4096 + worker.unwrap());
    }

    /// Responses that workers have counted.
    fn counted(&self) -> usize {
        let status = self.server.status();
        let workers = status["workers"].as_array().unwrap();
        // Whoever sits there: the numbers are the seat's.
        let seats: BTreeMap<u64, u64> = workers
            .iter()
            .filter(|worker| worker["kind"] == "worker")
            .map(|worker| {
                let seat = worker["worker"].as_u64().unwrap();
                (seat, worker["requests_total"].as_u64().unwrap())
            })
            .collect();
        seats.values().sum::<u64>() as usize
    }

    fn check(&self, books: &Books, folder: &Path) {
        let done = executed(folder);
        let (counted, log) = (self.counted(), self.server.log());
        println!(
            "{} answered, {} left, {} failed; {} executed, {counted} counted; {} kills, {} reloads; {:?} MB",
            books.answered.len(),
            books.left.len(),
            books.failed.len(),
            done.len(),
            self.kills,
            self.reloads,
            self.memory.iter().map(|bytes| bytes / 100_000).map(|tenths| tenths as f64 / 10.0).collect::<Vec<_>>(),
        );
        assert!(self.kills > 0 && self.reloads > 0 && books.answered.len() > 100);
        for id in &books.answered {
            assert_eq!(done.get(id), Some(&1), "{id} was answered");
        }
        for (id, times) in &done {
            assert_eq!(*times, 1, "{id} was executed again");
            assert!(books.has(id), "{id} was not asked for");
        }
        assert!(
            books.failed.len() <= self.kills * CLIENTS,
            "a kill fails what its process held, and nothing else does: {log}"
        );
        assert!((books.answered.len()..=done.len()).contains(&counted));
        // The first one is of a server that has just begun.
        let (early, late) = (self.memory[1], self.memory[self.memory.len() - 1]);
        assert!(late < early * 5 / 4, "{:?}", self.memory);
    }
}

fn soak(config: &str) {
    let length = env::var("SURUS_SOAK")
        .ok()
        .and_then(|text| text.parse().ok());
    let length = Duration::from_secs(length.unwrap_or(10));
    let folder = TempDir::new("soak");
    folder.file("work.php", WORK);
    folder.file("app.php", APP);
    folder.file("index.php", SITE);
    let server = Surus::serve(folder.path()).config(config).workers(3);
    let mut soak = Soak {
        server: server.start(),
        random: Random(7),
        kills: 0,
        reloads: 0,
        memory: Vec::new(),
    };
    let stop = AtomicBool::new(false);
    let address = soak.server.address();
    let books = thread::scope(|scope| {
        let stopping = crate::load::Stopping(&stop);
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let stop = &stop;
                scope.spawn(move || client(address, number, stop))
            })
            .collect();
        let begun = Instant::now();
        // On a slow machine it takes longer until something has happened.
        while begun.elapsed() < length || !soak.has_happened() {
            soak.act();
            if begun.elapsed() > length * (soak.memory.len() as u32 + 1) / 12 {
                soak.measure();
            }
        }
        drop(stopping);
        let mut books = Books::default();
        for client in clients {
            books.add(client.join().expect("a client"));
        }
        books
    });
    // What clients have left behind ends by itself.
    let settled = || {
        soak.processes()
            .iter()
            .all(|each| each["in_flight"].as_u64().unwrap_or(0) == 0)
    };
    wait_for("what clients have left does not end", settled);
    soak.check(&books, folder.path());
}

#[test]
fn the_books_agree_after_random_failures_of_an_application() {
    soak("[app.app]\nmode = 'coroutine'\n");
}

#[test]
fn the_books_agree_after_random_failures_of_a_site() {
    soak("[app.app]\nmode = 'classic'\n");
}

#[test]
fn the_books_agree_after_random_failures_of_processes() {
    soak("[app.app]\nmode = 'process'\nprocesses = 4\n");
}
