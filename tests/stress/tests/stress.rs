//! Short runs of the stress test: as it is, with a heap that knows whose each block is, and under valgrind. A failure
//! prints the seed; `cargo run --release -p surus-stress -- --seed N` repeats it.
#![forbid(unsafe_code)]

use std::process::{Command, Output};

const STRESS: &str = env!("CARGO_BIN_EXE_surus-stress");
const SUPPRESSIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/valgrind.supp");

fn check(output: &Output) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    println!("{out}{err}");
    assert!(output.status.success(), "{}\n{out}{err}", output.status);
}

fn run(arguments: &[&str]) {
    check(
        &Command::new(STRESS)
            .args(arguments)
            .output()
            .expect("it starts"),
    );
}

/// A seed that is known, so that a failure is the change's; another one each time, so that something is found.
#[test]
fn random_requests() {
    run(&["--seed", "1", "--requests", "5000", "--seconds", "20"]);
    run(&["--requests", "5000", "--seconds", "20"]);
}

/// A block of one isolate that another one frees would end the process. C stack overflows are left out: they would
/// happen inside malloc, where nothing can be done about them.
#[test]
fn checked_heap() {
    run(&[
        "--checked-heap",
        "--without",
        "c_recursion",
        "--requests",
        "3000",
        "--seconds",
        "20",
    ]);
}

#[test]
fn valgrind_has_nothing_to_say() {
    let output = Command::new("valgrind")
        .args(["-q", "--error-exitcode=9", "--num-callers=30"])
        .arg(format!("--suppressions={SUPPRESSIONS}"))
        .arg(STRESS)
        .args([
            "--checked-heap",
            "--without",
            "c_recursion",
            "--slowness",
            "50",
        ])
        .args(["--requests", "1000", "--seconds", "30"])
        .output()
        .expect("valgrind is installed");
    check(&output);
}

/// What each kind of request leaves behind, after some of its kind have warmed everything up. An isolate that is given up
/// after a C stack overflow leaves some kilobytes of its modules: nothing of it can be trusted.
#[test]
fn nothing_is_left_behind() {
    run(&[
        "--leaks",
        "--requests",
        "300",
        "--without",
        "pipes",
        "--without",
        "compute",
        "--without",
        "c_recursion",
    ]);
}
