//! Laravel's queues on those of the server, with Debian's packages.

use std::process::{Command, Stdio};

use surus_tests::fixture;
use surus_tests::surus::binary;

use super::support::Site;

fn script(site: &Site, what: &str) -> Command {
    let mut command = Command::new(binary());
    command
        .args(["php"])
        .arg(fixture("queue").join("laravel.php"))
        .arg(what)
        .env("SURUS_QUEUE_FOLDER", site.queue())
        .env("NOTES", site.notes_file());
    command
}

#[test]
fn jobs_of_laravel_run_fail_and_are_released() {
    let site = Site::new();
    let _server = site.options().start();
    let output = script(&site, "push").output().expect("php");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert_eq!(said, "size 4\n");
    // A worker that dies in the middle of a job leaves it to the next one.
    let mut first = script(&site, "die")
        .stdout(Stdio::null())
        .spawn()
        .expect("php");
    first.wait().expect("its end");
    let output = script(&site, "work").output().expect("php");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(said.contains("failed: no luck"), "{said}");
    site.wait_until_none_is_left("default");
    let notes = site.notes();
    assert_eq!(notes["taken a 1"], 1, "{notes:?}");
    assert_eq!(notes["handled a 2"], 1, "{notes:?}");
    assert_eq!(notes["handled later 1"], 1, "{notes:?}");
    assert_eq!(notes["released again 1"], 1, "{notes:?}");
    assert_eq!(notes["handled again 2"], 1, "{notes:?}");
    assert_eq!(notes["handled wrong 1"], 1, "{notes:?}");
}
