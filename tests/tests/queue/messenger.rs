//! Symfony Messenger on queues of the server, with Debian's packages.

use std::process::Command;
use std::time::{Duration, Instant};

use surus_tests::fixture;
use surus_tests::surus::binary;

use super::support::{get, Site};

#[test]
fn messages_run_in_the_server_with_the_retries_of_messenger() {
    let site = Site::new();
    let server = site.options_of("messenger.php").start();
    assert_eq!(get(&server, "/send/one"), "sent");
    site.wait_for("handled one", 1);
    // Many wait at the same time in one process.
    let begun = Instant::now();
    get(&server, "/send/waits?times=200");
    get(&server, "/send/later?delay=150");
    get(&server, "/send/fails");
    site.wait_for("handled waits", 200);
    site.wait_until_none_is_left("messages");
    // One after another they would take a minute.
    assert!(begun.elapsed() < Duration::from_secs(20));
    let failed = get(&server, "/failed");
    assert_eq!(failed, "fails of messages after 2\n");
    // Out of time: that is the queue's affair.
    get(&server, "/endless");
    site.wait_for_failed("endless", 1);
    let notes = site.notes();
    assert_eq!(notes["handled waits"], 200, "{notes:?}");
    assert_eq!(notes["handled fails"], 2, "{notes:?}");
    assert_eq!(notes["begun"], 2, "{notes:?}");
    assert_eq!(notes["handled later"], 1, "{notes:?}");
    assert_eq!(site.counts("messages")["failed"], 0);
}

#[test]
fn messages_are_taken_by_workers_of_messenger() {
    let site = Site::new();
    let server = site.options_of("messenger.php").env("RUNS", "no").start();
    get(&server, "/send/dies?unique=key&times=3");
    assert_eq!(get(&server, "/waiting"), "[1]");
    let worker = |count: &str| {
        let output = Command::new(binary())
            .arg("php")
            .arg(fixture("queue").join("messenger.php"))
            .arg(count)
            .env("SURUS_QUEUE_FOLDER", site.queue())
            .env("NOTES", site.notes_file())
            .output();
        output.expect("php").status
    };
    assert_eq!(worker("1").code(), None);
    assert_eq!(worker("1").code(), None);
    get(&server, "/send/fails");
    let (code, said) = site.command(&["list", "messages"]);
    assert!(code == Some(0) && said.contains("attempts 2"), "{said}");
}
