//! Clients that mean to be slow: slowhttptest's four attacks, each on a site with two isolates of PHP.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use surus_tests::fixture;
use surus_tests::http::Request;
use surus_tests::process::Process;
use surus_tests::surus::{Mode, Surus};
use surus_tests::temp::TempDir;

use super::get;

const CLIENTS: usize = 300;

/// The client's own bound, in seconds. It ends sooner when no connection is left.
const LENGTH: usize = 60;

/// Of all that a client can be slow with; `sweep` judges it once a second.
const TIMEOUT: Duration = Duration::from_secs(2);
const CONFIG: &str = "[server]\nheader_timeout = \"2s\"\nbody_timeout = \"2s\"\nwrite_timeout = \"2s\"\nkeep_alive = \"2s\"\nmin_rate = \"64K\"\n[app.app]\nisolates = { min = 1, max = 2 }\n";

/// Connections that a server has open on this port.
fn open(port: u16) -> usize {
    const ESTABLISHED: &str = "01";
    let local = format!("0100007F:{port:04X}");
    fs::read_to_string("/proc/net/tcp")
        .expect("the connections of this machine")
        .lines()
        .filter(|line| {
            let mut words = line.split_whitespace().skip(1);
            words.next() == Some(&local) && words.nth(1) == Some(ESTABLISHED)
        })
        .count()
}

/// While the attack goes on each request beside it is answered, and in the end all its connections have been closed.
fn withstands(site: &Path, attack: &[&str], path: &str) {
    let server = Surus::serve(site).mode(Mode::Classic);
    let server = server.config(CONFIG).start();
    let port = server.address().port();
    let mut command = Command::new("slowhttptest");
    command
        .args(attack)
        .args(["-c", &CLIENTS.to_string(), "-r", &CLIENTS.to_string()])
        .args(["-l", &LENGTH.to_string(), "-p", "20"])
        .args(["-u", &format!("http://127.0.0.1:{port}{path}")])
        .args(["-g", "-o", "report"])
        .current_dir(server.folder());
    let mut attacker = Process::start("attack", command, Signal::SIGKILL, server.folder());
    let start = Instant::now();
    let (mut most, mut slowest, mut left) = (0, Duration::ZERO, usize::MAX);
    // It may take a while to begin; once it has, its connections must go, also those of a client that never looks.
    while start.elapsed() < Duration::from_secs(LENGTH as u64) {
        left = open(port);
        most = most.max(left);
        if most > CLIENTS / 2 && left == 0 || attacker.ended().is_some() {
            break;
        }
        let asked = Instant::now();
        let answer = Request::get("/").try_send(server.address());
        let took = asked.elapsed();
        // One that stood still for as long is taken for a slow client as well.
        if took < TIMEOUT || answer.as_ref().is_ok_and(|answer| answer.status == 200) {
            answer.expect("an answer").expect(200);
            slowest = slowest.max(took);
        }
    }
    let seconds = start.elapsed();
    println!("{attack:?}: up to {most} connections, {left} after {seconds:?}; slowest answer beside them {slowest:?}");
    let log = attacker.stdout();
    // Where all went quickly its own count tells that they were there.
    assert!(
        most > CLIENTS / 2 || log.contains("No open connections left"),
        "{log}"
    );
    assert!(seconds < Duration::from_secs(LENGTH as u64), "{left} left");
    assert!(
        slowest < Duration::from_secs(LENGTH as u64 / 6),
        "{slowest:?}"
    );
    get(&server, "/").expect(200);
}

#[test]
fn slow_headers() {
    withstands(&fixture("edge"), &["-H", "-i", "1"], "/");
}

#[test]
fn slow_bodies() {
    withstands(&fixture("edge"), &["-B", "-i", "1", "-s", "8192"], "/body");
}

#[test]
fn slow_readers() {
    let attack = [
        "-X", "-n", "1", "-z", "32", "-w", "128", "-y", "1024", "-k", "3",
    ];
    withstands(&fixture("edge"), &attack, "/large?kilobytes=1000");
}

/// Thousands of overlapping ranges of one file in each request (CVE-2011-3192).
#[test]
fn ranges_without_end() {
    let site = TempDir::new("site");
    site.file("index.php", "<?php echo 'hello';");
    site.file("file.txt", &"0123456789abcdef".repeat(10_000));
    withstands(site.path(), &["-R", "-a", "1", "-b", "3000"], "/file.txt");
}
