//! Calls that are parked end as those that wait in the kernel: results, parts, errno, limits of time, flags. What php-cli says
//! is what is expected.

use std::process::Command;

use surus_tests::fixture;
use surus_tests::surus::Mode;
use surus_tests::temp::TempDir;

use crate::{ask, serve};

#[test]
fn calls_that_are_parked_end_as_libcs() {
    let folder = TempDir::new("libc");
    let mut command = Command::new("php8.2");
    command.arg(fixture("system/libc.php"));
    let output = command.arg(folder.path().join("cli")).output();
    let output = output.expect("php-cli");
    let expected = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && expected.contains("an end: "));
    for mode in Mode::ALL {
        let name = folder.path().join(mode.name());
        let server = serve(mode)
            .config("[php]\n\"ffi.enable\" = \"1\"\n")
            .start();
        let said = ask(
            server.address(),
            &format!("libc&name={}", name.to_str().expect("UTF-8")),
        );
        for (said, expected) in said.lines().zip(expected.lines()) {
            assert_eq!(said, expected, "{}", mode.name());
        }
        assert_eq!(said, expected, "{}", mode.name());
    }
}
