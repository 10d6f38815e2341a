//! Transactions: a connection each, whole or not at all.

use serde_json::json;
use surus_tests::http::Request;
use surus_tests::parallel::together;
use surus_tests::surus::Mode;
use surus_tests::waiting::wait_for;

use super::{ask, begin, server};

#[test]
fn overlapping_transactions_are_apart() {
    for mode in [Mode::Coroutine, Mode::Classic] {
        let server = server(mode);
        let own = format!("{mode:?}");
        together(40, |number| {
            let token = format!("{own}{number}");
            if number % 4 == 0 {
                let found = ask(&server, &format!("step=echo&token={token}"));
                assert_eq!(found["token"], token);
            } else {
                let found = ask(
                    &server,
                    &format!("step=transaction&token={token}&seconds=0.005"),
                );
                assert_eq!(found["count"], 1, "{found}");
                assert_eq!(found["token"], token);
            }
        });
    }
}

#[test]
fn what_fails_is_rolled_back() {
    let server = server(Mode::Coroutine);
    let found = ask(&server, "step=rolled-back&token=never");
    assert_eq!(found[0]["class"], "DomainException");
    assert_eq!(found[1]["state"], "25P02");
    assert_eq!(found[2]["message"], "The transaction has ended");
    let message = found[3]["message"].as_str().expect("a message");
    assert!(message.starts_with("COMMIT is not for the code"), "{found}");
    assert!(found[4]["message"].is_string(), "{found}");
    assert_eq!(found[5]["statement_timeout"], "7s");
    assert_eq!(found[6]["statement_timeout"], "0");
    assert_eq!(found[7], json!({"count": 0}));
}

/// However a request ends in the middle of a transaction, nothing of it is left, and its connection is not another's.
#[test]
fn what_is_cut_is_rolled_back() {
    for mode in [Mode::Coroutine, Mode::Classic] {
        let server = server(mode);
        let own = format!("cut{mode:?}");
        for round in 0..3 {
            // Three of four connections are for transactions.
            let clients: Vec<_> = (0..3)
                .map(|number| {
                    let token = format!("{own}{round}{number}");
                    begin(
                        &server,
                        &format!("step=transaction&token={token}&seconds=600"),
                    )
                })
                .collect();
            wait_for("they run", || ask(&server, "step=running")["count"] == 3);
            drop(clients);
            for number in 0..3 {
                let query = format!("step=transaction&token={own}{round}-{number}");
                assert_eq!(ask(&server, &query)["count"], 1);
                let query = format!("step=count&token={own}{round}{number}");
                assert_eq!(ask(&server, &query)["count"], 0);
            }
        }
        for step in ["exit", "fatal"] {
            for _ in 0..5 {
                Request::get(&format!("/?step={step}&token={own}{step}")).send(server.address());
            }
            let query = format!("step=count&token={own}{step}");
            assert_eq!(ask(&server, &query)["count"], 0);
            let query = format!("step=transaction&token={own}{step}-");
            assert_eq!(ask(&server, &query)["count"], 1);
        }
    }
}
