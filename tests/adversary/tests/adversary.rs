//! The short form: every operation under every interruption in every mode, for some seconds each. A failure prints the
//! seed and the first exchanges that were wrong; README.md says how to have them again.
#![forbid(unsafe_code)]

use std::process::Command;

const ADVERSARY: &str = env!("CARGO_BIN_EXE_surus-adversary");

fn run(mode: &str, clients: &str, arguments: &[&str]) {
    let mut command = Command::new(ADVERSARY);
    command.args(["--mode", mode, "--concurrency", clients, "--repeat", "10"]);
    let output = command.args(arguments).output().expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    println!("{out}{err}");
    assert!(output.status.success(), "{}\n{out}{err}", output.status);
}

fn all_columns(mode: &str, clients: &str) {
    run(mode, clients, &["--seconds", "2"]);
}

#[test]
fn classic() {
    all_columns("classic", "120");
}

#[test]
fn coroutine() {
    all_columns("coroutine", "40");
}

#[test]
fn process() {
    all_columns("process", "120");
}

#[test]
fn snapshot() {
    run("snapshot", "40", &["--seconds", "1"]);
}
