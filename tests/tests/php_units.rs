//! PHP's own tests of what is written in PHP: `php/tests`, by PHPUnit in `surus php`.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::Command;

use surus_tests::surus::binary;

#[test]
fn phpunit_passes() {
    let configuration = Path::new(env!("CARGO_MANIFEST_DIR")).join("../php/phpunit.xml.dist");
    let output = Command::new(binary())
        .args(["php", "/usr/bin/phpunit", "-c"])
        .arg(configuration)
        .output()
        .expect("surus runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("\nOK ("), "{text}");
}
