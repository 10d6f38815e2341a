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
fn settings_are_what_the_file_says() {
    passes("EnvTest.php");
}

#[test]
fn services_are_replaced_and_requests_leave_nothing_behind() {
    passes("ShopTest.php");
}

#[test]
fn stubs_say_what_is_native() {
    let folder = TempDir::new("stubs");
    let target = folder.path().join("surus");
    let made = Command::new(binary()).arg("stubs").arg(&target).output();
    assert!(made.expect("surus runs").status.success());
    let script = fixture("in_process/signatures.php");
    let lines = |command: &mut Command| {
        let output = command.output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).expect("text");
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let stubs = lines(
        Command::new("php8.2")
            .arg(&script)
            .arg(target.join("native.php")),
    );
    let native = lines(Command::new(binary()).arg("php").arg(&script));
    assert_eq!(stubs, native);
    for file in ["App.php", "Http/Request.php", "psr/Log/LoggerInterface.php"] {
        assert!(target.join(file).is_file(), "{file}");
    }
}
