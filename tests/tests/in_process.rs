//! Tests of an application in its own process: Debian's PHPUnit in `surus php`.
#![forbid(unsafe_code)]

use std::process::{Command, Output};

use surus_tests::fixture;
use surus_tests::surus::binary;
use surus_tests::temp::TempDir;

fn phpunit(file: &str) -> Output {
    let folder = TempDir::new("phpunit");
    Command::new(binary())
        .args(["php", "/usr/bin/phpunit", "--no-configuration"])
        .args([
            "--do-not-cache-result",
            "--fail-on-warning",
            "--fail-on-risky",
        ])
        .arg(fixture(&format!("in_process/{file}")))
        .env("SURUS_BIN", binary())
        .env("TMPDIR", folder.path())
        .env("RUNTIME_DIRECTORY", folder.path())
        .output()
        .expect("surus runs")
}

fn passes(file: &str) {
    let output = phpunit(file);
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("OK ("), "{text}");
}

#[test]
fn what_is_answered_in_process_is_what_a_server_answers() {
    passes("ParityTest.php");
}

#[test]
fn services_are_replaced_and_requests_leave_nothing_behind() {
    passes("ShopTest.php");
}
