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
