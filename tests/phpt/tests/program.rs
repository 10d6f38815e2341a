//! The program that stands in for php-cli: it behaves like it, and its neighbour does run.

use std::{
    io::Write,
    process::{Command, Output, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

fn php(arguments: &[&str], neighbour: Option<&str>, input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_surus-phpt"));
    command.args(arguments);
    if let Some(code) = neighbour {
        command.env("SURUS_PHPT_NEIGHBOUR", code);
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // The pipe breaks when the program does not read it.
    let _ = child
        .stdin
        .take()
        .expect("piped")
        .write_all(input.as_bytes());
    child.wait_with_output().expect("the program ends")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn code_gets_its_arguments_and_gives_its_exit_code() {
    let output = php(
        &[
            "-d",
            "precision=5",
            "-r",
            "echo PHP_SAPI, ini_get('precision'), $argv[1]; exit(3);",
            "--",
            "-x",
        ],
        None,
        "",
    );
    assert_eq!(
        (text(&output).as_str(), output.status.code()),
        ("cli5-x", Some(3))
    );
}

#[test]
fn a_script_comes_from_standard_input() {
    let output = php(
        &[],
        None,
        "<?php register_shutdown_function(fn () => exit(4)); echo __LINE__;",
    );
    assert_eq!(
        (text(&output).as_str(), output.status.code()),
        ("1", Some(4))
    );
}

#[test]
fn standard_streams_are_there() {
    let output = php(
        &["-r", "fwrite(STDERR, fgets(STDIN)); fwrite(STDOUT, 'out');"],
        None,
        "line\n",
    );
    assert_eq!(text(&output), "out");
    assert_eq!(output.stderr, b"line\n");
}

#[test]
fn the_neighbour_runs_whenever_the_script_can_be_left() {
    let folder = std::env::temp_dir().join(format!("surus-phpt-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the count");
    let count = folder.join("count");
    let neighbour = format!(
        "for ($n = 1; ; $n++) {{ file_put_contents('{}', (string) $n); }}",
        count.display()
    );
    let script = "for ($n = 0; $n < 500; $n++) { md5('x'); } usleep(20000);";
    let output = php(&["-r", script], Some(&neighbour), "");
    assert_eq!(output.status.code(), Some(0));
    let steps: u32 = std::fs::read_to_string(&count)
        .expect("the neighbour counts")
        .parse()
        .expect("a number");
    std::fs::remove_dir_all(&folder).expect("the folder goes");
    assert!(steps >= 500, "{steps} steps");
}

#[test]
fn a_neighbour_that_ends_fails_the_test() {
    let neighbour = "for ($n = 0; $n < 1200; $n++) { md5('x'); }";
    let output = php(&["-r", "usleep(500000); echo 'done';"], Some(neighbour), "");
    assert_eq!(output.status.code(), Some(70));
    assert!(String::from_utf8_lossy(&output.stderr).contains("the neighbour has ended"));
}

#[test]
fn a_forked_child_ends_with_its_script() {
    let script = "$pid = pcntl_fork(); usleep(1000); if (!$pid) { echo 'child '; exit(3); }
        pcntl_waitpid($pid, $status); echo 'parent ', pcntl_wexitstatus($status);";
    let output = php(&["-r", script], None, "");
    assert_eq!(text(&output), "child parent 3", "{output:?}");
    let neighbour = "while (true) { usleep(500); }";
    let output = php(&["-r", script], Some(neighbour), "");
    assert_eq!(text(&output), "child parent 3", "{output:?}");
}

/// Where libphp changes while the code runs, though no isolate has its own: addresses in it.
fn changes(code: &str) -> Vec<i64> {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    let name = format!("surus-phpt-changes-{}-{run}", std::process::id());
    let file = std::env::temp_dir().join(name);
    let status = Command::new(env!("CARGO_BIN_EXE_surus-phpt"))
        .args(["-r", code])
        .env("SURUS_PHPT_CHANGES", &file)
        .stdout(Stdio::null())
        .status()
        .expect("the program starts");
    assert!(status.success());
    let lines = std::fs::read_to_string(&file).expect("what has changed");
    std::fs::remove_file(&file).expect("the file goes");
    let lines = lines.lines().filter(|line| line.contains("/libphp"));
    lines
        .map(|line| line.split('\t').nth(1).expect("an address"))
        .map(|address| address.parse().expect("a number"))
        .collect()
}

#[test]
fn changes_of_what_isolates_share_are_written() {
    // Which bytes of a pointer change is chance.
    const NEAR: i64 = 64;
    let nothing = changes("strlen('x');");
    let made = changes("uniqid();");
    let is_new = |address: &i64| nothing.iter().all(|other| (address - other).abs() > NEAR);
    assert!(made.iter().any(is_new), "{made:?} {nothing:?}");
}
