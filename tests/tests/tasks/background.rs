//! `Surus\background()`: code of an application that belongs to no request.

use nix::sys::signal::Signal;
use surus_tests::fixture;
use surus_tests::http::Request;
use surus_tests::surus::Surus;
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

use super::timers::Notes;
use super::{serve, MODES};

fn ask(server: &Surus, query: &str) -> String {
    Request::get(&format!("/?{query}"))
        .send(server.address())
        .text()
}

#[test]
fn what_runs_in_the_background_belongs_to_the_application() {
    let folder = TempDir::new("background");
    let notes = Notes::new(&folder);
    let mut server = Surus::serve(&fixture("tasks").join("background.php"))
        .env("NOTES", &notes.0.display().to_string())
        .start();
    assert_eq!(ask(&server, "case=ends"), "served");
    notes.reach("[[],[null,\"a task\"]]", 1);
    notes.reach("from the background", 1);
    for case in ["throws", "exits"] {
        assert_eq!(ask(&server, &format!("case={case}")), "served");
    }
    notes.reach("exits", 1);
    let full = ask(&server, "case=stays&ignores&times=101");
    assert_eq!(
        full,
        "There is no room in the background: 100 callables run, or the application was replaced in background.php"
    );
    notes.reach("begins", 100);
    assert_eq!(ask(&server, ""), "served");
    let (code, text) = server.command(&["reload"]);
    assert_eq!(code, Some(0), "{text}");
    notes.reach("finally", 100);
    // A fatal error ends what shares the isolate.
    assert_eq!(ask(&server, "case=stays"), "served");
    notes.reach("begins", 101);
    assert_eq!(ask(&server, "case=fails"), "served");
    notes.reach("finally", 101);
    assert_eq!(ask(&server, ""), "served");
    // And the end of the server.
    assert_eq!(ask(&server, "case=stays"), "served");
    notes.reach("begins", 102);
    wait_for("its exception is not logged", || {
        server.log().contains("wrong in the background")
    });
    server.process().signal(Signal::SIGTERM);
    wait_for("the server does not end", || {
        server.process().ended().is_some()
    });
    assert_eq!(notes.count("finally"), 102);
    assert_eq!(notes.count("caught"), 0);
}

#[test]
fn other_modes_have_no_background() {
    for mode in [MODES[0], MODES[2], MODES[3]] {
        let server = serve(mode, &[]);
        let text = ask(&server, "case=background");
        assert!(
            text.contains(
                "Surus\\\\background() is for code that serves a request in coroutine mode"
            ),
            "{mode:?}: {text}"
        );
    }
}
