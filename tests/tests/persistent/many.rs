//! However many persistent connections there are, each is clean.

use std::thread;
use std::time::Duration;

use serde_json::json;
use surus_tests::surus::Mode;

use super::Site;

pub(super) fn of_one_process(mode: Mode) {
    let site = Site::new(mode, "many");
    site.ask("step=leave&count=36");
    // The answer comes before they are cleaned.
    site.server.wait_for_in_flight(0);
    thread::sleep(Duration::from_millis(500));
    assert_eq!(site.ask("step=find&count=36"), json!([]), "{mode:?}");
}

/// One request has them all, others use them then. In coroutine mode these have other fibers, while the first one's waits.
pub(super) fn of_one_request(mode: Mode) {
    const COUNT: usize = 12;
    let site = Site::new(mode, "redis_many");
    assert_eq!(
        site.ask(&format!("step=open&count={COUNT}")),
        json!(vec![true; COUNT]),
        "{mode:?}"
    );
    thread::sleep(Duration::from_millis(200));
    thread::scope(|scope| {
        if mode == Mode::Coroutine {
            for _ in 0..8 {
                scope.spawn(|| site.ask("step=wait&ms=3000"));
            }
            site.server.wait_for_in_flight(8);
        }
        for _ in 0..COUNT + 2 {
            site.ask("step=leave");
        }
        thread::sleep(Duration::from_millis(200));
        for round in 0..COUNT + 2 {
            let found = site.ask("step=find");
            assert_eq!(found, json!(["", "0"]), "{mode:?} {round}");
        }
    });
}
