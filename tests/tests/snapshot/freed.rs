//! Memory of malloc that a request has made or freed: what is put back leads to none of it.

use surus_tests::fixture;
use surus_tests::temp::TempDir;
use surus_tests::valgrind::VALGRIND;

use crate::{acts, one, send, set};

#[test]
fn what_is_put_back_leads_to_nothing_that_is_freed() {
    let folder = TempDir::new("snapshot");
    let options = one(&fixture("snapshot").join("app.php"), &folder).under(&VALGRIND);
    let options = set(options, "boot_timeout=120s").env("SURUS_SNAPSHOT_UNCHECKED", "1");
    let server = set(options, "app.memory_limit=32M").start();
    let workers = server.workers();
    let replaced = || server.status()["workers"][0]["isolates_replaced"].clone();
    let before = replaced();
    for _ in 0..2 {
        for act in acts() {
            send(&server, &format!("/?act={act}"));
            send(&server, "/").expect(200);
        }
        for how in ["exit", "uncaught", "fatal", "compile", "memory", "fiber"] {
            send(&server, &format!("/?act=bad&how={how}"));
            send(&server, "/").expect(200);
        }
    }
    for seed in 0..10 {
        send(&server, &format!("/?act=random&seed={seed}"));
    }
    let log = server.log();
    assert_eq!((server.workers(), replaced()), (workers, before), "{log}");
    assert!(!log.contains("Invalid "), "{log}");
}
