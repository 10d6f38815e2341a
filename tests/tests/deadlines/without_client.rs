//! `cancel_on_disconnect`: whether a request whose client disconnects is cancelled at once, or continues as under php-fpm,
//! which notices when the script sends output.

use std::thread;
use std::time::Duration;

use surus_tests::fixture;
use surus_tests::surus::{Mode, Surus};

use super::{begin, expect_notes};

const CASE: &str = "case=told_by_output&seconds=0.5&id=alone";

fn leave(server: &Surus) {
    let client = begin(server, CASE).expect("a connection");
    expect_notes(server, "alone", "begun;");
    drop(client);
}

/// A payment that is written down after the shop has been told of it is written down, also for a visitor who has closed
/// the page meanwhile.
#[test]
fn a_script_continues_until_its_output_as_under_php_fpm() {
    for mode in [Mode::Classic, Mode::Process] {
        let server = Surus::serve(&mode.script(&fixture("deadlines")))
            .mode(mode)
            .start();
        leave(&server);
        expect_notes(&server, "alone", "begun;slept 0;shutdown 1;");
        // Not even with some patience is there anything after the output.
        thread::sleep(Duration::from_millis(300));
        expect_notes(&server, "alone", "begun;slept 0;shutdown 1;");
    }
}

/// By default in coroutine mode, and where it is configured.
#[test]
fn a_wait_is_cut_short_where_disconnects_cancel() {
    let options = |mode: Mode| Surus::serve(&mode.script(&fixture("deadlines"))).mode(mode);
    for options in [
        options(Mode::Coroutine),
        options(Mode::Classic).cancel_on_disconnect(),
    ] {
        let server = options.start();
        leave(&server);
        expect_notes(&server, "alone", "begun;shutdown 1;");
    }
}

/// And the other way round.
#[test]
fn a_coroutine_continues_where_it_is_configured() {
    let server = Surus::serve(&Mode::Coroutine.script(&fixture("deadlines")))
        .mode(Mode::Coroutine)
        .config("[app.app]\ncancel_on_disconnect = false\n")
        .start();
    leave(&server);
    expect_notes(&server, "alone", "begun;slept 0;shutdown 1;");
}
