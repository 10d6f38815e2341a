//! A few hundred of PHP's own tests, of every folder that `make phpt` runs: what passes with php-cli passes in an
//! isolate beside another one, and what changes in PHP and in the libraries behind it is swapped or explained.

use std::{path::Path, process::Command};

#[test]
fn a_subset_passes_and_changes_nothing_unknown() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(folder.join("run"))
        .args(["--subset", "--changes"])
        .args(["--binary", env!("CARGO_BIN_EXE_surus-phpt")])
        .output()
        .expect("the runner starts");
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    assert!(
        output.status.success(),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
