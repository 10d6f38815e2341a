//! Request bodies that do not fit into a buffer.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use surus_tests::http::{Connection, Part, Request};
use surus_tests::parallel::together;
use surus_tests::surus::{Mode, Options, Surus};
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

use super::{get, sent, server};

const MEGABYTE: usize = 1024 * 1024;

const LARGE: &str = "[app.app]\nmax_body = \"64M\"\n[php]\nupload_max_filesize = \"64M\"\n";

/// Bytes that do not repeat soon.
pub(super) fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

fn md5_of(server: &Surus, bytes: &[u8]) -> String {
    let answer = Request::post("/body")
        .body("text/plain", bytes)
        .send(server.address())
        .expect(200)
        .json();
    assert_eq!(answer["length"], bytes.len());
    answer["md5"].as_str().expect("a sum").to_owned()
}

/// In a form; PHP moves it.
fn assert_file_arrives(server: &Surus, content: &[u8], sum: &str) {
    let parts = [Part::file("file", "a.bin", "image/x-noise", content)];
    let answer = Request::post("/upload?sum=1")
        .multipart(&parts)
        .send(server.address())
        .expect(200)
        .json();
    let file = &answer["file"];
    assert_eq!(file["size"], content.len(), "{answer}");
    assert_eq!(file["md5"], sum, "{} bytes in a form", content.len());
    assert_eq!(file["moved"], true);
}

#[test]
fn bodies_of_every_size_arrive_whole() {
    for mode in Mode::ISOLATES {
        let server = server(mode, LARGE).start();
        for size in [1, 65_536, 262_144, 262_145, 400_000, 5 * MEGABYTE + 1] {
            let body = noise(size);
            let sum = md5_of(&server, &body);
            // The same in chunks of odd sizes.
            let mut chunked =
                b"POST /body HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
            for piece in body.chunks(77_777) {
                chunked.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
                chunked.extend_from_slice(piece);
                chunked.extend_from_slice(b"\r\n");
            }
            chunked.extend_from_slice(b"0\r\n\r\n");
            let mut connection = Connection::open(server.address()).expect("a connection");
            connection.write(&chunked).expect("write");
            let answer = connection.response("POST").expect("an answer").expect(200);
            assert_eq!(answer.json()["md5"], sum, "{size} bytes in chunks");
            assert_file_arrives(&server, &body, &sum);
        }
    }
}

/// PHP's folder for uploads may be on another file system than that of bodies.
#[test]
fn files_of_forms_cross_file_systems() {
    for mode in Mode::ISOLATES {
        let server = server(mode, "[php]\nupload_tmp_dir = \"/dev/shm\"\n").start();
        let body = noise(MEGABYTE);
        let sum = md5_of(&server, &body);
        assert_file_arrives(&server, &body, &sum);
    }
}

/// A form that PHP does not parse is a body like any other.
#[test]
fn forms_that_nobody_parses_arrive_whole() {
    let server = server(Mode::Classic, "[php]\nenable_post_data_reading = false\n").start();
    let content = noise(MEGABYTE);
    let parts = [
        Part::file("file", "a.bin", "image/x-noise", &content),
        Part::field("title", "a text"),
    ];
    let form = Request::post("/body").multipart(&parts);
    let bytes = form.bytes(server.address());
    let start = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let body = &bytes[start.expect("the end of the head") + 4..];
    let sum = md5_of(&server, body);
    let answer = form.send(server.address()).expect(200).json();
    assert_eq!(answer["md5"], sum);
}

/// 32 uploads of 20 MB at a time: memory stays flat, and short requests beside them are answered soon.
#[test]
fn many_large_uploads_at_a_time() {
    const UPLOADS: usize = 32;
    for mode in Mode::ISOLATES {
        let mut server = server(mode, LARGE).start();
        let body = noise(20 * MEGABYTE);
        let parts = [Part::file("file", "a.bin", "image/x-noise", &body)];
        let request = Request::post("/upload").multipart(&parts);
        let bytes = request
            .header("Connection", "close")
            .bytes(server.address());
        get(&server, "/").expect(200);
        let address = server.address();
        let before = server.process().memory();
        let done = AtomicBool::new(false);
        let peak = AtomicU64::new(before);
        let (answers, latencies, took) = thread::scope(|scope| {
            let beside = scope.spawn(|| {
                let mut latencies = Vec::new();
                while !done.load(Ordering::Relaxed) {
                    let start = Instant::now();
                    Request::get("/").send(address).expect(200);
                    latencies.push(start.elapsed());
                    peak.fetch_max(server.process().memory(), Ordering::Relaxed);
                    thread::sleep(Duration::from_millis(5));
                }
                latencies.sort();
                latencies
            });
            let (answers, took) = together(UPLOADS, |_| {
                let mut connection = Connection::open(address).expect("a connection");
                connection.write(&bytes).expect("write");
                let answer = connection.response("POST").expect("an answer").expect(200);
                answer.json()["file"].clone()
            });
            done.store(true, Ordering::Relaxed);
            (answers, beside.join().expect("the requests beside"), took)
        });
        for answer in answers {
            assert_eq!(
                (&answer["size"], &answer["error"], &answer["moved"]),
                (&body.len().into(), &0.into(), &true.into())
            );
        }
        let growth = peak.load(Ordering::Relaxed).saturating_sub(before) / MEGABYTE as u64;
        let p50 = latencies[latencies.len() / 2];
        let p99 = latencies[latencies.len() * 99 / 100];
        println!(
            "{}: {took:?}, {growth} MB more memory, short requests: {} with p50 {p50:?}, p99 {p99:?}",
            mode.name(),
            latencies.len(),
        );
        assert!(growth < 96, "{growth} MB");
        // Some wait where the machine stands still, and there may be few of them.
        let is_slow = |latency: &&Duration| **latency > Duration::from_secs(1);
        let slow = latencies.iter().filter(is_slow).count();
        assert!(slow <= 2 || slow < latencies.len() / 10, "{latencies:?}");
        assert!(p99 < Duration::from_secs(10), "{p99:?}");
    }
}

/// While uploads are on their way they take no isolate.
#[test]
fn slow_uploads_do_not_occupy_php() {
    let config =
        "[app.app]\nisolates = { min = 1, max = 1 }\nmax_queue = 0\nmax_requests_in_flight = 1\n";
    let server = server(Mode::Classic, config).start();
    let heads = "POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n";
    let mut slow: Vec<_> = (0..8)
        .map(|_| {
            let mut connection = sent(&server, heads).expect("a connection");
            connection.write(&[b'x'; 600_000]).expect("write");
            connection
        })
        .collect();
    for _ in 0..5 {
        get(&server, "/").expect(200);
    }
    for connection in &mut slow {
        connection.write(&[b'x'; 400_000]).expect("write");
        let answer = connection.response("POST").expect("an answer").expect(200);
        assert_eq!(answer.json()["length"], 1_000_000);
    }
}

#[test]
fn files_of_bodies_are_bounded_and_leave_nothing() {
    let config = "[app.app]\nbody_disk = \"1M\"\n";
    let server = server(Mode::Classic, config).start();
    let head = |length: usize| {
        format!("POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n")
    };
    let mut first = sent(&server, &head(900_000)).expect("a connection");
    first.write(&[b'x'; 600_000]).expect("write");
    wait_for("a second body has room", || {
        let refused = Request::post("/body")
            .body("text/plain", vec![b'x'; 500_000])
            .send(server.address());
        refused.status == 503 && refused.header("retry-after") == Some("1")
    });
    first.write(&[b'x'; 300_000]).expect("write");
    first.response("POST").expect("an answer").expect(200);
    let request = Request::post("/body").body("text/plain", vec![b'x'; 500_000]);
    request.send(server.address()).expect(200);
    let left: Vec<_> = std::fs::read_dir(server.folder())
        .expect("read the folder")
        .filter_map(Result::ok)
        .map(|file| file.file_name())
        .filter(|name| !name.to_string_lossy().starts_with("surus."))
        // Its control socket.
        .filter(|name| !name.to_string_lossy().ends_with(".sock"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

/// What a handler has asked for as a whole counts together with what the server keeps, until it is read or given up.
#[test]
fn files_of_bodies_that_handlers_wait_for_count_as_well() {
    let config = "[app.app]\nbody_disk = \"1M\"\nresponse_disk = \"0\"\n";
    let server = server(Mode::Coroutine, config).start();
    let content = noise(700_000);
    let form = || {
        let parts = [Part::file("file", "a.bin", "image/x-noise", &content)];
        let answer = Request::post("/upload").multipart(&parts);
        answer.send(server.address()).status
    };
    assert_eq!(form(), 200);
    let head = "POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 800000\r\n\r\n";
    for is_finished in [true, false] {
        let mut waiting = sent(&server, head).expect("a connection");
        waiting.write(&content).expect("write");
        // It is taken first: a form that comes meanwhile would have the room, and this one none.
        thread::sleep(Duration::from_millis(300));
        wait_for("the bound does not count it", || form() == 503);
        if is_finished {
            waiting.write(&[b'x'; 100_000]).expect("write");
            let answer = waiting.response("POST").expect("an answer").expect(200);
            assert_eq!(answer.json()["length"], 800_000);
        }
        drop(waiting);
        wait_for("its room does not come back", || form() == 200);
    }
}

/// A client that breaks off its upload is nobody's problem.
#[test]
fn an_upload_that_breaks_off_is_forgotten() {
    for mode in Mode::ISOLATES {
        let server = server(
            mode,
            "[app.app]\nmax_requests_in_flight = 4\nmax_queue = 0\n",
        )
        .start();
        for _ in 0..20 {
            let head = "POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 900000\r\n\r\n";
            let mut connection = sent(&server, head).expect("a connection");
            connection.write(&[b'x'; 500_000]).expect("write");
        }
        wait_for("they are still there", || get(&server, "/").status == 200);
    }
}

/// Nobody sends a large body before it is asked for it, and it is refused without being sent.
#[test]
fn expect_100_continue() -> io::Result<()> {
    for mode in Mode::ISOLATES {
        let server = server(mode, "[app.app]\nmax_body = \"1M\"\n").start();
        let head = |length: usize| {
            format!("POST /body HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: {length}\r\n\r\n")
        };
        for length in [1000, 600_000] {
            let mut connection = sent(&server, &head(length))?;
            assert_eq!(connection.interim()?, 100);
            connection.write(&vec![b'x'; length])?;
            let answer = connection.response("POST")?.expect(200);
            assert_eq!(answer.json()["length"], length);
        }
        let mut connection = sent(&server, &head(2_000_000))?;
        connection.response("POST")?.expect(413);
    }
    Ok(())
}

/// Scripts change the working directory; paths of the configuration start from where the server was started.
#[test]
fn a_relative_spool_folder_does_not_follow_chdir() {
    let folder = TempDir::new("chdir");
    folder.folder("spool");
    let work = "chdir('/proc'); $length = strlen(file_get_contents('php://input')); ";
    let text = "str_repeat(md5((string) $length), 1 << 17)";
    folder.file("index.php", &format!("<?php {work} echo {text};"));
    folder.file(
        "app.php",
        &format!("<?php return function () {{ {work} return {text}; }};"),
    );
    let site = folder.path().to_str().expect("a path");
    let content = noise(3 * MEGABYTE);
    for mode in Mode::ALL {
        for (tmpdir, argument) in [("/tmp", Some("spool_folder=spool")), ("spool", None)] {
            let options = Surus::serve(Path::new(mode.script(Path::new("")).as_os_str()))
                .mode(mode)
                .config("[app.app]\nbody_memory = 0\nresponse_memory = 0\nmemory_limit = '64M'\n")
                .under(&["env", "-C", site, &format!("TMPDIR={tmpdir}")]);
            let arguments = argument.into_iter().flat_map(|it| ["--set", it]);
            let server = arguments.fold(options, Options::argument).start();
            for _ in 0..3 {
                let request = Request::post("/").body("text/plain", content.as_slice());
                let answer = request.send(server.address()).expect(200);
                assert_eq!(answer.body.len(), 4 * MEGABYTE, "{mode:?}, {argument:?}");
            }
        }
    }
}
