//! Very many clients that do not read: what waits for them is bounded in memory, then in files, and nobody fails for it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use surus_tests::http::Connection;
use surus_tests::http2::{self, Client};
use surus_tests::process::cpu_time;
use surus_tests::surus::{Mode, Surus};
use surus_tests::waiting::wait_for;

use super::{get, sent, server};

const MEGABYTE: usize = 1 << 20;

/// A site or application whose responses may take so much memory and disk. Nobody is cut for being slow: the kernel sends
/// to a full window again after up to half a minute, and these clients read one after the other.
fn bounded(mode: Mode, memory: &str, disk: &str) -> Surus {
    let processes = match mode {
        Mode::Process => "processes = 4\n",
        Mode::Classic | Mode::Coroutine | Mode::Snapshot => "",
    };
    let config = format!(
        "[server]\nworkers = 1\nwrite_timeout = \"300s\"\n[app.app]\n{processes}\
         response_memory = \"{memory}\"\nresponse_disk = \"{disk}\"\nmemory_limit = \"512M\"\n\
         queue_timeout = \"60s\"\n"
    );
    server(mode, &config).start()
}

/// Clients that have asked for a megabyte each and take little of it.
fn readers(server: &Surus, count: usize) -> Vec<Connection> {
    readers_of(server, "/large?kilobytes=1024", count)
}

fn readers_of(server: &Surus, target: &str, count: usize) -> Vec<Connection> {
    let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
    (0..count)
        .map(|_| {
            let mut client = Connection::open_narrow(4096, server.address()).expect("a connection");
            client.write(request.as_bytes()).expect("write");
            client
        })
        .collect()
}

/// Megabytes that the server has taken since it had `before` bytes.
fn growth(server: &mut Surus, before: u64) -> u64 {
    server.process().memory().saturating_sub(before) / MEGABYTE as u64
}

/// Until the server has answered so many requests in all: as long as there is progress.
fn wait_for_answers(server: &Surus, count: u64) {
    for few in (0..count).step_by(50).chain([count]) {
        wait_for("not all have their responses", || {
            let answered = server.status()["workers"][0]["requests_total"].as_u64();
            answered >= Some(few)
        });
    }
}

fn expect_whole(client: &mut Connection) {
    let response = client.response("GET").expect("an answer").expect(200);
    assert_eq!(response.body.len(), MEGABYTE);
    let mut pieces = response.body.chunks_exact(16);
    assert!(pieces.all(|piece| piece == b"0123456789abcdef"));
}

#[test]
fn a_thousand_slow_readers_cost_little_in_every_mode() {
    for mode in Mode::ALL {
        let mut server = bounded(mode, "16M", "4G");
        get(&server, "/").expect(200);
        let before = server.process().memory();
        let mut clients = readers(&server, 1000);
        wait_for_answers(&server, 1001);
        let growth = growth(&mut server, before);
        println!("{mode:?}: {growth} MB for a thousand responses of a megabyte");
        // What was said, and what is on the way to each socket.
        assert!(growth < 16 + 150, "{mode:?}: {growth} MB");
        for client in clients.iter_mut().step_by(25) {
            expect_whole(client);
        }
        drop(clients);
        get(&server, "/").expect(200);
    }
}

#[test]
fn a_thousand_slow_streams_of_http_2_cost_little() {
    const CONNECTIONS: usize = 10;
    for mode in Mode::ISOLATES {
        let mut server = bounded(mode, "16M", "4G");
        get(&server, "/").expect(200);
        let before = server.process().memory();
        let requests: Vec<u8> = (1..200)
            .step_by(2)
            .flat_map(|stream| http2::get(stream, "/large?kilobytes=1024"))
            .collect();
        let mut clients: Vec<Client> = (0..CONNECTIONS)
            .map(|_| {
                let mut client = Client::open(server.address()).expect("a connection");
                client.write(&requests).expect("write");
                client
            })
            .collect();
        for client in &mut clients {
            for _ in 0..100 {
                client.next(http2::HEADERS).expect("a head");
            }
        }
        let growth = growth(&mut server, before);
        println!("{mode:?}: {growth} MB for a thousand streams of a megabyte");
        assert!(growth < 16 + 150, "{mode:?}: {growth} MB");
        get(&server, "/").expect(200);
    }
}

/// PHP may say a word at a time: these are put together, in memory as in files, and take no more than their bytes.
#[test]
fn small_pieces_cost_little() {
    const READERS: usize = 20;
    for (mode, memory) in [
        (Mode::Classic, "64M"),
        (Mode::Coroutine, "64M"),
        (Mode::Classic, "0"),
        (Mode::Coroutine, "0"),
        (Mode::Process, "64M"),
    ] {
        let mut server = bounded(mode, memory, "4G");
        get(&server, "/").expect(200);
        let before = server.process().memory();
        let mut clients = readers_of(&server, "/words?count=40000", READERS);
        // They have ended, or wait for their clients.
        let pids = server.workers();
        wait_for("it computes on", || {
            let used = || pids.iter().map(cpu_time).sum::<Duration>();
            let before = used();
            thread::sleep(Duration::from_millis(300));
            used() - before <= Duration::from_millis(20)
        });
        let growth = growth(&mut server, before);
        println!("{mode:?} {memory}: {growth} MB for {READERS} responses in small pieces");
        assert!(growth < 40, "{mode:?} {memory}: {growth} MB");
        for client in &mut clients {
            let response = client.response("GET").expect("an answer").expect(200);
            assert!(
                response.body == b"a word; ".repeat(40_000),
                "{mode:?} {memory}"
            );
        }
    }
}

/// Where there is room neither in memory nor in files, a response does not become long in memory before PHP waits.
#[test]
fn without_files_memory_is_bounded_all_the_same() {
    const READERS: usize = 250;
    let mut server = bounded(Mode::Coroutine, "4M", "0");
    // So many stacks are there already.
    for mut client in readers_of(&server, "/sleep?seconds=1", READERS) {
        client.response("GET").expect("an answer").expect(200);
    }
    let before = server.process().memory();
    let mut clients = readers_of(&server, "/print?kilobytes=1024", READERS);
    get(&server, "/").expect(200);
    let growth = growth(&mut server, before);
    println!("{growth} MB for {READERS} responses of a megabyte");
    // Beside what PHP has in its hands. 256 KB of each would be 45 more.
    assert!(growth < 112, "{growth} MB");
    for client in clients.iter_mut().step_by(20) {
        expect_whole(client);
    }
    drop(clients);
    get(&server, "/").expect(200);
}

/// Beyond both bounds PHP waits for its client: all get what they have asked for.
#[test]
fn what_has_no_room_waits() {
    for mode in Mode::ISOLATES {
        let server = bounded(mode, "4M", "4M");
        let mut clients = readers(&server, 50);
        get(&server, "/").expect(200);
        for client in &mut clients {
            expect_whole(client);
        }
        get(&server, "/").expect(200);
    }
}

/// A site or application with few places for PHP, and clients that have asked for so much that they hold all of these.
fn held(mode: Mode, target: &str, disk: &str, count: usize) -> (Surus, Vec<Connection>) {
    let places = match mode {
        Mode::Classic => "isolates = { max = 4 }\n",
        Mode::Coroutine | Mode::Snapshot => "max_requests_in_flight = 32\n",
        Mode::Process => "processes = 4\n",
    };
    let config = format!(
        "[server]\nworkers = 1\nwrite_timeout = \"300s\"\n[app.app]\n{places}response_memory = \"1M\"\n\
         response_disk = \"{disk}\"\nqueue_timeout = \"30s\"\nrequest_timeout = \"300s\"\n"
    );
    let server = server(mode, &config).start();
    get(&server, "/").expect(200);
    let slow = readers_of(&server, target, count);
    (server, slow)
}

/// Who does not read has others end him, when these wait for what he holds: there is room for 8 of 120 responses.
#[test]
fn slow_readers_hold_nothing_that_others_wait_for() {
    for mode in Mode::ALL {
        let (server, slow) = held(mode, "/print?kilobytes=1024", "8M", 120);
        for _ in 0..10 {
            get(&server, "/").expect(200);
        }
        // Also beside those that have been let in meanwhile.
        for _ in 0..10 {
            let page = get(&server, "/print?kilobytes=512").expect(200);
            assert_eq!(page.body.len(), MEGABYTE / 2, "{mode:?}");
        }
        assert!(
            server
                .log()
                .contains("read their responses slowly were cut"),
            "{mode:?}"
        );
        drop(slow);
    }
}

/// One response is longer than what goes to a file for a client that nobody waits for.
#[test]
fn long_responses_hold_nothing_that_others_wait_for() {
    for mode in [Mode::Classic, Mode::Process] {
        let (server, slow) = held(mode, "/print?kilobytes=98304", "4G", 4);
        for _ in 0..10 {
            get(&server, "/").expect(200);
        }
        drop(slow);
    }
}

/// Where there are no files, PHP waits for its client only as long as nobody else waits.
#[test]
fn without_files_slow_readers_hold_nothing_either() {
    for mode in Mode::ALL {
        let (server, slow) = held(mode, "/print?kilobytes=1024", "0", 40);
        for _ in 0..10 {
            get(&server, "/").expect(200);
        }
        drop(slow);
    }
}

/// Those that read are not the ones that are ended.
#[test]
fn who_reads_is_not_ended_for_those_who_do_not() {
    for mode in Mode::ALL {
        let (server, slow) = held(mode, "/print?kilobytes=1024", "8M", 100);
        let mut reader = sent(
            &server,
            "GET /print?kilobytes=16384 HTTP/1.1\r\nHost: a\r\n\r\n",
        )
        .expect("a connection");
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    get(&server, "/");
                }
            });
            let mut bytes = 0;
            while bytes < 16 * MEGABYTE {
                let some = reader.some().expect("bytes").len();
                assert!(some > 0, "{mode:?}: ended after {bytes} bytes");
                bytes += some;
                // About 10 MB/s.
                thread::sleep(Duration::from_micros(some as u64 / 10));
            }
            stop.store(true, Ordering::Relaxed);
        });
        drop(slow);
    }
}

/// What many clients took at a time is the system's again when they have gone.
#[test]
fn memory_goes_back_after_a_load() {
    for mode in Mode::ALL {
        let mut server = bounded(mode, "64M", "4G");
        get(&server, "/").expect(200);
        let before = server.process().memory();
        let clients = readers(&server, 500);
        wait_for_answers(&server, 501);
        let peak = growth(&mut server, before);
        drop(clients);
        wait_for("memory is kept", || growth(&mut server, before) < peak / 2);
    }
}
