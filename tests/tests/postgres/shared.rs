//! Whose answer is this, where requests overlap on few connections and some of their clients leave.

use std::collections::HashSet;
use std::thread;
use std::time::Duration;

use serde_json::json;
use surus_tests::parallel::together;
use surus_tests::surus::Mode;
use surus_tests::waiting::wait_for;

use super::{ask, begin, server};

#[test]
fn overlapping_requests_get_their_own_rows() {
    for mode in [Mode::Coroutine, Mode::Classic, Mode::Process] {
        let server = server(mode);
        let clients = if mode == Mode::Coroutine { 200 } else { 40 };
        let mut backends = HashSet::new();
        for round in 0..3 {
            let (rows, _) = together(clients, |number| {
                ask(&server, &format!("step=echo&token={round}-{number}"))
            });
            for (number, row) in rows.iter().enumerate() {
                assert_eq!(row["token"], format!("{round}-{number}"));
                backends.insert(row["pid"].to_string());
            }
        }
        // Process mode has a client in each process.
        let most = if mode == Mode::Process { 100 } else { 4 };
        assert!(backends.len() <= most, "{backends:?}");
    }
}

#[test]
fn tasks_of_a_request_ask_at_the_same_time() {
    let server = server(Mode::Coroutine);
    together(20, |number| {
        let found = ask(&server, &format!("step=all&token=t{number}"));
        for (n, row) in found.as_array().expect("a list").iter().enumerate() {
            assert_eq!(row["token"], format!("t{number}"));
            assert_eq!(row["n"], n);
        }
    });
}

/// A third of the clients leaves: before, during or after its statement. Others never get its rows.
#[test]
fn clients_may_leave() {
    for mode in [Mode::Coroutine, Mode::Classic] {
        let server = server(mode);
        for round in 0..5 {
            together(60, |number| {
                let token = format!("{round}-{number}");
                let query = format!("step=sleep&token={token}&seconds=0.005");
                if number % 3 == 0 {
                    let client = begin(&server, &query);
                    thread::sleep(Duration::from_millis(number as u64 * 2));
                    drop(client);
                } else {
                    assert_eq!(ask(&server, &query)["token"], token);
                }
            });
        }
        assert_eq!(ask(&server, "step=echo&token=last")["token"], "last");
    }
}

/// What only clients who have left wait for is ended on the server, too.
#[test]
fn what_nobody_waits_for_is_cancelled() {
    let server = server(Mode::Coroutine);
    let clients: Vec<_> = (0..4)
        .map(|number| begin(&server, &format!("step=sleep&seconds=600&token={number}")))
        .collect();
    wait_for("they run", || ask(&server, "step=running")["count"] == 4);
    drop(clients);
    wait_for("they are cancelled", || {
        ask(&server, "step=running")["count"] == 0
    });
    assert_eq!(ask(&server, "step=echo&token=x")["token"], "x");
}

/// Long statements hold up nobody who comes later, as long as there is another connection.
#[test]
fn long_statements_leave_room() {
    let server = server(Mode::Coroutine);
    let _long: Vec<_> = (0..3)
        .map(|number| begin(&server, &format!("step=sleep&seconds=600&token={number}")))
        .collect();
    wait_for("they run", || ask(&server, "step=running")["count"] == 3);
    together(50, |number| {
        let token = number.to_string();
        assert_eq!(
            ask(&server, &format!("step=echo&token={token}"))["token"],
            token
        );
    });
}

/// Many statements of one request at once, also more than a connection has under way.
#[test]
fn each_list_of_parameters_has_its_own_rows() {
    for mode in [Mode::Coroutine, Mode::Classic] {
        let server = server(mode);
        together(8, |number| {
            let token = format!("each{mode:?}{number}");
            let found = ask(&server, &format!("step=each&token={token}"));
            for n in 1..=150 {
                let rows = json!([{"token": token, "n": n}]);
                assert_eq!(found["rows"][format!("k{n}")], rows);
            }
            assert_eq!(found["none"], json!([]));
            assert_eq!(found["inserted"], 100);
            assert_eq!(found["bound"], 100);
            assert_eq!(found["count"], 200);
            assert_eq!(found["undone"]["state"], "22P02", "{found}");
            assert_eq!(found["failed"]["state"], "22012", "{found}");
            assert_eq!(found["type"]["class"], "TypeError");
            assert_eq!(found["object"]["class"], "TypeError");
            assert_eq!(found["begin"]["class"], "LogicException");
            assert_eq!(found["after"]["token"], token);
        });
    }
}

#[test]
fn clients_are_not_serialized() {
    let server = server(Mode::Coroutine);
    let found = ask(&server, "step=serialized");
    for index in 0..4 {
        let message = found[index]["message"].as_str().unwrap_or_default();
        let class = found[index]["class"].as_str().unwrap_or_default();
        assert_eq!(class, "LogicException", "{found}");
        assert!(message.contains("belongs to its process"), "{found}");
    }
    assert_eq!(found[4]["returned"]["seven"], 7, "{found}");
}

/// Also where few are large.
#[test]
fn statements_are_kept_within_bytes() {
    let server = server(Mode::Coroutine);
    let found = ask(&server, "step=texts");
    assert_eq!(
        found["texts"],
        serde_json::json!((1..=12).collect::<Vec<_>>())
    );
    let kept = found["kept"].as_u64().expect("a number");
    assert!(kept < 3 << 20, "{found}");
}
