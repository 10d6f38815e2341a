//! Streams of wrappers and filters in PHP, objects that hold streams, and functions in PHP that a database calls: one request
//! waits inside of them, another one is told.

use std::time::Duration;

use surus_tests::surus::Mode;

use super::shared::{answer, expect_in_use, get, start};
use super::{port, server};

fn check(client: &str, class: &str, disturbing: &[&str]) {
    let server = server(Mode::Coroutine, "").start();
    let query = format!("case=guarded&client={client}&port={}", port("pgsql"));
    for (round, how) in disturbing.iter().enumerate() {
        let open = format!("/?{query}&seconds=open");
        assert_eq!(get(&server, &open), "opened");
        let word = format!("alice{round}");
        let target = format!("/orders?{query}&seconds=wait&word={word}");
        let alice = start(&server, &target, &word);
        std::thread::sleep(Duration::from_millis(50));
        let disturb = query.replace(
            &format!("client={client}"),
            &format!("client={client}-{how}"),
        );
        let text = get(&server, &format!("/users?{disturb}&seconds=disturb"));
        assert!(text.starts_with("in use"), "{client} {how}: {text}");
        expect_in_use(&text, class);
        assert_eq!(answer(alice), word, "{client} {how}");
        let carol = format!("/?{query}&seconds=wait&word=carol");
        assert_eq!(get(&server, &carol), "carol", "{client} {how}");
    }
}

#[test]
fn a_stream_of_a_wrapper_in_php() {
    let all = [
        "read", "write", "seek", "rewind", "flush", "truncate", "lock", "copy", "append", "close",
    ];
    check("wrapper", "A stream", &all);
}

#[test]
fn a_folder_of_a_wrapper_in_php() {
    check("folder", "A stream", &["read", "rewind", "close"]);
}

#[test]
fn an_object_with_a_stream() {
    check("file_object", "SplFileObject", &["read", "seek", "flush"]);
}

#[test]
fn a_stream_with_a_filter_in_php() {
    let all = ["write", "append", "remove", "flush", "close"];
    check("filter", "A stream", &all);
}

/// Also what only the driver has: methods that are in no class.
#[test]
fn a_database_within_its_own_function() {
    check("sqlite", "PDO", &["query", "function", "collation"]);
}

#[test]
fn methods_of_a_driver() {
    check("pdo_pgsql", "PDO", &["copy_from", "notify", "pid"]);
}
