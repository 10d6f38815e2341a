//! The short form: every operation under every interruption in every mode, for some seconds each. A failure prints the
//! seed and the first exchanges that were wrong; README.md says how to have them again.
#![forbid(unsafe_code)]

use std::process::Command;

const ADVERSARY: &str = env!("CARGO_BIN_EXE_surus-adversary");

/// What is to be mended yet: each goes from here with its mend.
const NOT_YET: &[&str] = &[
    // In the column `reset` some wait for their deadline.
    "redis",
    "system.session_redis",
    // Overlapping requests read each other's lines.
    "sockets.shared",
];

fn run(mode: &str, clients: &str) {
    let mut command = Command::new(ADVERSARY);
    command.args(["--mode", mode, "--concurrency", clients]);
    command.args(["--seconds", "2", "--repeat", "10"]);
    for name in NOT_YET {
        command.args(["--without", name]);
    }
    let output = command.output().expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    println!("{out}{err}");
    assert!(output.status.success(), "{}\n{out}{err}", output.status);
}

#[test]
fn classic() {
    run("classic", "120");
}

#[test]
fn coroutine() {
    run("coroutine", "40");
}

#[test]
fn process() {
    run("process", "120");
}
