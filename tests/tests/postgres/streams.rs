//! Rows one after the other, notifications.

use serde_json::json;
use surus_tests::parallel::together;
use surus_tests::surus::Mode;

use super::{ask, server};

#[test]
fn rows_are_read_when_they_are_needed() {
    for mode in [Mode::Coroutine, Mode::Classic] {
        let server = server(mode);
        together(6, |number| {
            let token = format!("t{number}");
            let found = ask(&server, &format!("step=stream&token={token}"));
            assert_eq!(found["all"], 20_000, "{found}");
            assert_eq!(found["small"], true, "{found}");
            assert_eq!((&found["none"], &found["exact"]), (&json!([]), &json!(20)));
            assert_eq!(found["other"], json!([{"a": "x", "b": 1.5, "c": true}]));
            assert_eq!(found["bound"], json!([30, token]));
            assert_eq!(found["wrong"]["state"], "42703", "{found}");
            assert_eq!(found["delete"]["state"], "42601", "{found}");
            assert_eq!(found["size"]["class"], "ValueError", "{found}");
            assert_eq!(found["after"], token);
        });
    }
}

#[test]
fn rows_are_copied_in_both_directions() {
    for mode in [Mode::Coroutine, Mode::Classic] {
        let server = server(mode);
        let own = format!("{mode:?}").to_lowercase();
        together(3, |number| {
            let token = format!("{own}{number}");
            let found = ask(&server, &format!("step=copy&token={token}"));
            let message = |key: &str| found[key]["message"].as_str().unwrap_or_default();
            assert_eq!(found["count"], 50_000, "{found}");
            assert_eq!(found["lines"], 50_000, "{found}");
            assert_eq!(found["sum"], 50_000_u64 * 50_001 / 2, "{found}");
            assert_eq!((&found["cut"], &found["null"]), (&json!(3), &json!(2)));
            assert_eq!(found["none"], 0);
            assert_eq!(found["large"], json!([1, true]), "{found}");
            assert_eq!(found["bound"], json!([1, "x", ["7\n"]]), "{found}");
            assert_eq!(found["bad"]["state"], "22P02", "{found}");
            assert_eq!(found["thrown"]["class"], "DomainException", "{found}");
            assert_eq!(found["type"]["class"], "TypeError", "{found}");
            assert_eq!(message("select"), "The statement is no COPY");
            assert_eq!(found["table"]["state"], "42P01", "{found}");
            assert_eq!(message("other"), "This COPY has no FROM STDIN");
            assert_eq!(message("another"), "This COPY has no TO STDOUT");
            assert_eq!(found["view"], json!([true]), "{found}");
            assert_eq!(found["left"], 0, "{found}");
            assert_eq!(found["after"], token);
        });
    }
}

#[test]
fn rows_of_a_copy_have_a_bound() {
    for mode in [Mode::Coroutine, Mode::Classic] {
        let found = ask(&server(mode), "step=long-copy&token=x");
        // With the head of the message and the end of the line.
        let said = "A row of the COPY has 68000006 bytes, more than the 67108864 that one may have";
        assert_eq!(found, json!([17_000_001, said, 2]));
    }
}

#[test]
fn listeners_share_a_connection() {
    for mode in [Mode::Coroutine, Mode::Classic] {
        let server = server(mode);
        together(20, |number| {
            let token = format!("n{number}");
            let found = ask(&server, &format!("step=listen&token={token}"));
            let heard = json!({"heard": token, "channel": "Shared \"one\"", "process": true, "missed": false, "listening": 1});
            assert_eq!(found, heard);
        });
    }
}

#[test]
fn who_may_have_missed_something_is_told() {
    let server = server(Mode::Coroutine);
    for _ in 0..3 {
        let said = ask(&server, "step=unheard");
        assert_eq!(said, json!(["first", "missed", "last"]));
    }
    let found = ask(&server, "step=many-unheard");
    assert_eq!(found["missed"], true, "{found}");
    let message = |index: usize| {
        found["names"][index]["message"]
            .as_str()
            .unwrap_or_default()
    };
    for index in 0..2 {
        assert!(
            message(index).starts_with("A channel's name has 1 to 63 bytes"),
            "{found}"
        );
    }
    assert!(
        message(2).starts_with("No connection to PostgreSQL at 127.0.0.1:1"),
        "{found}"
    );
}
