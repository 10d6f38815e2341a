//! A server with queues, and what its jobs have noted.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use serde_json::Value;
use surus_tests::fixture;
use surus_tests::http::{Request, Response};
use surus_tests::surus::{binary, Options, Surus};
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

/// Where the jobs are, and what they have done.
pub(super) struct Site {
    folder: TempDir,
}

impl Site {
    pub(super) fn new() -> Site {
        Site {
            folder: TempDir::new("queue"),
        }
    }

    pub(super) fn queue(&self) -> PathBuf {
        self.folder.path().join("jobs")
    }

    pub(super) fn notes_file(&self) -> PathBuf {
        self.folder.path().join("notes")
    }

    pub(super) fn options(&self) -> Options {
        self.options_of("app.php")
    }

    /// Of another application of the fixture.
    pub(super) fn options_of(&self, script: &str) -> Options {
        Surus::serve(&fixture("queue").join(script))
            .env("NOTES", &self.notes_file().display().to_string())
            .argument("--set")
            .argument(format!("queue_folder={}", self.queue().display()))
    }

    /// A server with room for what is as large as may be.
    pub(super) fn start_large(&self) -> Surus {
        self.options()
            .argument("--set")
            .argument("memory_limit=512M")
            .start()
    }

    /// What waits for this sign goes on.
    pub(super) fn sign(&self, name: &str) {
        let path = self.folder.path().join(format!("notes.{name}"));
        fs::write(path, "").expect("a sign");
    }

    /// How often each thing was noted.
    pub(super) fn notes(&self) -> HashMap<String, usize> {
        let mut counts = HashMap::new();
        for line in self.lines() {
            *counts.entry(line).or_insert(0) += 1;
        }
        counts
    }

    /// In order.
    pub(super) fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(self.notes_file()).unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.map(|(_, what)| what.to_owned()).collect()
    }

    pub(super) fn wait_for(&self, what: &str, count: usize) {
        wait_for(&format!("{what} is not noted {count} times"), || {
            self.lines().iter().filter(|line| *line == what).count() >= count
        });
    }

    /// `surus queue`, with its exit code.
    pub(super) fn command(&self, words: &[&str]) -> (Option<i32>, String) {
        let output = Command::new(binary())
            .arg("queue")
            .args(words)
            .env("SURUS_QUEUE_FOLDER", self.queue())
            .output()
            .expect("the command");
        let text = [output.stdout, output.stderr].concat();
        (
            output.status.code(),
            String::from_utf8_lossy(&text).into_owned(),
        )
    }

    /// The counts of a queue, from `surus queue`.
    pub(super) fn counts(&self, queue: &str) -> Value {
        let (code, text) = self.command(&["--json"]);
        assert_eq!(code, Some(0), "{text}");
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        let mut queues = answer["queues"].as_array().expect("queues").iter();
        let found = queues.find(|each| each["queue"] == queue);
        found.cloned().unwrap_or_default()
    }

    pub(super) fn wait_until_none_is_left(&self, queue: &str) {
        wait_for("jobs are left", || {
            let counts = self.counts(queue);
            counts["waiting"] == 0 && counts["delayed"] == 0 && counts["running"] == 0
        });
    }

    pub(super) fn wait_for_failed(&self, queue: &str, count: u64) {
        wait_for("the jobs have not failed", || {
            self.counts(queue)["failed"] == count
        });
    }
}

pub(super) fn get(server: &Surus, path: &str) -> String {
    let request = Request::get(path);
    request.send(server.address()).expect(200).text()
}

pub(super) fn push(server: &Surus, target: &str) -> String {
    try_push(server, target)
        .expect("an answer")
        .expect(200)
        .text()
}

pub(super) fn try_push(server: &Surus, target: &str) -> io::Result<Response> {
    Request::get(&format!("/push/{target}")).try_send(server.address())
}

/// The process that has the jobs.
pub(super) fn owner(server: &Surus) -> Option<i32> {
    let status = server.status();
    let mut processes = status["processes"].as_array()?.iter();
    let queue = processes.find(|process| process["process"] == "queue")?;
    i32::try_from(queue["pid"].as_i64()?).ok()
}

/// Kills that process, and returns when there is another one.
pub(super) fn kill_owner(server: &Surus) {
    let old = owner(server).expect("an owner");
    kill(Pid::from_raw(old), Signal::SIGKILL).expect("an owner");
    wait_for("there is no other owner", || {
        owner(server).is_some_and(|new| new != old)
    });
}

/// Sets a sign however this ends: whoever waits for it goes on.
pub(super) struct Over<'a>(pub(super) &'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
