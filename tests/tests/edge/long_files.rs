//! Files that do not fit into a socket's buffers: the kernel sends them, or what they are copied by.

use std::fs;

use nix::sys::signal::Signal;
use surus_tests::http::{Connection, Request};
use surus_tests::surus::{Mode, Surus};
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

/// More than what a connection's buffers take in both kernels' ends.
const LENGTH: usize = 24 << 20;

const GET: &[u8] = b"GET /long.bin HTTP/1.1\r\nHost: a\r\n\r\n";

struct Site {
    server: Surus,
    folder: TempDir,
    content: Vec<u8>,
}

impl Site {
    fn new(config: &str) -> Self {
        let folder = TempDir::new("long-files");
        let content: Vec<u8> = (0..LENGTH as u32 / 4).flat_map(u32::to_le_bytes).collect();
        fs::write(folder.path().join("long.bin"), &content).expect("a file");
        folder.file("short.txt", "short");
        let server = Surus::serve(folder.path())
            .mode(Mode::Classic)
            .config(&format!("[server]\naccess_log = true\n{config}"))
            .start();
        Site {
            server,
            folder,
            content,
        }
    }

    /// In either way.
    fn each(config: &str, test: impl Fn(Self)) {
        for zero_copy in [true, false] {
            println!("zero_copy = {zero_copy}");
            test(Self::new(&format!("zero_copy = {zero_copy}\n{config}")));
        }
    }

    /// A client with little room that has asked for the long file, and has its head.
    fn reader(&self) -> Connection {
        let mut client = Connection::open_narrow(4096, self.server.address()).expect("a client");
        client.write(GET).expect("write");
        let (status, _) = client.interim_head().expect("a head");
        assert_eq!(status, 200);
        client
    }

    /// The lines of the access log, once there are so many.
    fn lines(&mut self, count: usize) -> Vec<serde_json::Value> {
        let mut lines = Vec::new();
        wait_for("not all requests are logged", || {
            let output = self.server.process().stdout();
            let parsed = output.lines().map(serde_json::from_str);
            let parsed = parsed.filter_map(Result::ok);
            let is_request = |line: &serde_json::Value| line.get("status").is_some();
            lines = parsed.filter(is_request).collect();
            lines.len() >= count
        });
        lines
    }
}

#[test]
fn answers_follow_each_other() {
    Site::each("", |mut site| {
        let mut client = Connection::open(site.server.address()).expect("a connection");
        let range = b"GET /long.bin HTTP/1.1\r\nHost: a\r\nRange: bytes=1000001-9000000\r\n\r\n";
        let short = b"GET /short.txt HTTP/1.1\r\nHost: a\r\n\r\n";
        client
            .write(&[GET, short, range, short].concat())
            .expect("write");
        let mut next = |status| {
            client
                .response("GET")
                .expect("an answer")
                .expect(status)
                .body
        };
        assert!(next(200) == site.content);
        assert_eq!(next(200), b"short");
        assert!(next(206) == site.content[1_000_001..=9_000_000]);
        assert_eq!(next(200), b"short");
        for (line, length) in site.lines(4).iter().zip([LENGTH, 5, 8_000_000, 5]) {
            assert_eq!(line["bytes"], length, "{line}");
            assert_eq!(line.get("broken_off"), None, "{line}");
        }
    });
}

#[test]
fn a_client_that_takes_nothing_is_cut() {
    Site::each("write_timeout = \"1s\"\nmin_rate = 0\n", |mut site| {
        let client = site.reader();
        client.wait_for_cut();
        let line = site.lines(1).remove(0);
        assert_eq!(line["broken_off"], true, "{line}");
        let sent = line["bytes"].as_u64().expect("a number");
        assert!((4096..LENGTH as u64).contains(&sent), "{line}");
        Request::get("/short.txt")
            .send(site.server.address())
            .expect(200);
    });
}

#[test]
fn a_client_that_leaves_is_noticed() {
    Site::each("", |mut site| {
        drop(site.reader());
        let line = site.lines(1).remove(0);
        assert_eq!(line["broken_off"], true, "{line}");
    });
}

/// The length that was announced cannot be kept: nobody takes what there is for the whole.
#[test]
fn a_file_that_becomes_shorter_ends_its_connection() {
    Site::each("", |mut site| {
        let mut client = site.reader();
        let file = fs::File::options()
            .write(true)
            .open(site.folder.path().join("long.bin"))
            .expect("the file");
        file.set_len(1000).expect("a shorter file");
        let rest = client.rest().expect("what there is");
        assert!(rest.len() < LENGTH, "{} bytes", rest.len());
        // What is in the kernel's hands is what the file has: its first bytes are gone already.
        assert!(rest[..1000] == site.content[..1000]);
        let line = site.lines(1).remove(0);
        assert_eq!(line["broken_off"], true, "{line}");
    });
}

#[test]
fn a_drain_waits_for_it() {
    Site::each("", |mut site| {
        let mut client = site.reader();
        site.server.process().signal(Signal::SIGTERM);
        wait_for("it takes new connections", || {
            Connection::open(site.server.address()).is_err()
        });
        let rest = client.rest().expect("all of it");
        assert!(rest == site.content, "{} bytes", rest.len());
        wait_for("it does not end", || {
            site.server.process().ended().is_some()
        });
    });
}
