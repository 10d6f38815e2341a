//! Values, on their way to the server and back; and what goes wrong.

use serde_json::{json, Value};
use surus_tests::surus::Mode;

use super::{ask, server};

#[test]
fn types() {
    for mode in [Mode::Coroutine, Mode::Classic] {
        let server = server(mode);
        let found = ask(&server, "step=types");
        assert_eq!(found["count"], 1);
        assert_eq!(
            found["row"],
            json!({
                "a": -32768, "b": 2147483647, "c": i64::MIN, "d": 0.1, "e": 0.1, "f": true, "g": "ä\"\\'",
                "h": "12345678901234567890.123", "i": "00ff5c", "j": "{\"a\": [1]}", "k": found["row"]["k"], "l": "{1,NULL,3}",
                "m": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "n": "low",
            })
        );
        let time = found["row"]["k"].as_str().expect("text");
        assert!(time.contains(":34:56.789"), "{time}");
        assert_eq!(found["types"]["c"], "int");
        assert_eq!(found["types"]["d"], "float");
        assert_eq!(found["nulls"], json!({"a": null, "b": null, "c": null}));
        assert_eq!(
            found["special"],
            json!({"a": "NAN", "b": "-INF", "c": "INF", "d": "NAN"})
        );
        assert_eq!(found["lists"], json!({"same": true, "any": true}));
        assert_eq!(found["names"], json!({"0": 2, "a": 4}));
        assert_eq!(found["empty"], json!([]));
        assert_eq!(found["none"], Value::Null);
        assert_eq!(found["columnless"], json!([[]]));
        assert_eq!(
            found["bools"],
            json!({"number": 1, "text": "false", "bool": true})
        );
    }
}

#[test]
fn objects() {
    let server = server(Mode::Coroutine);
    let found = ask(&server, "step=objects");
    assert_eq!(found["class"], "Item");
    assert_eq!(
        found["items"][2],
        json!({"id": 3, "name": "n3", "price": 4.5})
    );
    assert_eq!(
        found["missing"]["message"],
        "Item has no public property $other for the column of this name"
    );
    assert_eq!(found["wrong"]["class"], "TypeError");
    assert_eq!(found["level"], true);
    assert_eq!(found["at"], "2024-02-29T12:34:56+00:00 789");
    assert_eq!(found["day"], Value::Null);
    let case = found["case"]["message"].as_str().unwrap_or_default();
    assert!(case.contains("not a valid backing value"), "{found}");
    assert_eq!(found["date"]["message"], "\"infinity\" is no date for PHP");
    assert_eq!(
        found["interface"]["message"],
        "Countable is no class of which there can be objects"
    );
}

#[test]
fn errors_name_what_is_wrong() {
    let server = server(Mode::Coroutine);
    let found = ask(&server, "step=errors&token=t");
    let error = "Surus\\Postgres\\Error";
    assert_eq!(found["syntax"]["class"], error);
    assert_eq!(found["syntax"]["state"], "42601");
    assert_eq!(found["syntax"]["position"], 17);
    assert_eq!(found["syntax"]["file"], "cases.php");
    assert_eq!(found["unique"]["constraint"], "one_only");
    assert_eq!(found["unique"]["detail"], "Key (id)=(1) already exists.");
    assert_eq!(found["divided"]["state"], "22012");
    assert_eq!(
        found["few"]["message"],
        "The statement has 2 parameters, and 1 were given"
    );
    for (what, said) in [
        ("keys", "Parameters are a list"),
        ("object", "$1 is stdClass"),
        ("json", "json_encode() it"),
        ("utf8", "no UTF-8"),
        ("begin", "BEGIN would change a connection that others use"),
        ("set", "SET would change"),
        ("copy", "COPY would change"),
        ("string", "usr is not known"),
        ("connections", "connections must be from 1"),
        (
            "refused",
            "No connection to PostgreSQL at 127.0.0.1:1: Connection refused",
        ),
        ("database", "database \"none\" does not exist"),
        ("two", "cannot insert multiple commands"),
    ] {
        let message = found[what]["message"].as_str().unwrap_or_default();
        assert!(message.contains(said), "{what}: {found}");
    }
    assert_eq!(found["value"]["state"], "22021");
    assert!(found["nul"]["class"].is_string(), "{found}");
    for what in ["refused", "database"] {
        assert_eq!(found[what]["class"], "Surus\\Postgres\\ConnectionError");
    }
    assert_eq!(found["after"]["token"], "t");
}

/// A prepared statement whose table has other columns now is prepared again.
#[test]
fn tables_may_change() {
    let server = server(Mode::Coroutine);
    let (text, number) = (json!({"a": "7"}), json!({"a": 7}));
    for _ in 0..3 {
        let found = ask(&server, "step=changed");
        assert_eq!(found[0], json!([text, text, text, text]));
        assert_eq!(found[1], json!([number, number, number, number]));
    }
}

/// More statements than are kept.
#[test]
fn statements_are_not_kept_for_ever() {
    let server = server(Mode::Coroutine);
    for _ in 0..2 {
        assert_eq!(ask(&server, "step=many")["right"], 600);
    }
}

#[test]
fn large_results_are_whole() {
    for mode in [Mode::Coroutine, Mode::Classic] {
        let server = server(mode);
        // {"text":"…"} and a comma for each.
        let rows = 20_000;
        let length = ask(&server, &format!("step=large&rows={rows}"));
        assert_eq!(length["length"], rows * 1012 + 1);
    }
}
