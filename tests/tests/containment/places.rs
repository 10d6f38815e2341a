//! `exit`, exceptions, fatal errors, memory exhaustion and stack overflow wherever PHP or C code calls back
//! (`fixtures/containment/places.php`), and all kinds of recursion (`recursions.php`): answered as php-fpm does, or with
//! 500 where it dies, while neighbours wait in the middle of something.

use std::fs;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use surus_tests::fixture;
use surus_tests::http::{Request, Response};
use surus_tests::reference::Reference;
use surus_tests::surus::{Mode, Surus};

use super::{ask, DETAILS};

const NEIGHBOURS: usize = 3;
const PATIENCE: Duration = Duration::from_secs(20);

/// Where a coroutine application's answer is on its way already, or an isolate's: only what a client must not see
/// is looked for.
const LATE: [&str; 3] = [
    "header_callback",
    "header_callback_of_flush",
    "object_at_the_end",
];

/// With processes there is one more than neighbours. From PHP 8.3 on it is an error of PHP's to use up the C stack, where
/// it is not told to leave that alone.
fn server(mode: Mode) -> Surus {
    let processes = match mode {
        Mode::Process => format!("[app.app]\nprocesses = {}\n", NEIGHBOURS + 1),
        Mode::Classic | Mode::Coroutine | Mode::Snapshot => String::new(),
    };
    let config = format!("[php]\n\"zend.max_allowed_stack_size\" = -1\n{processes}");
    super::server(mode).config(&config).start()
}

/// The names of the `places` or `recursions`.
fn names(server: &Surus, of: &str) -> Vec<String> {
    let names = ask(server, of, "").expect(200).json();
    let names = names.as_array().expect("a list").iter();
    let names: Vec<_> = names
        .map(|name| name.as_str().expect("a name").to_owned())
        .collect();
    assert!(names.len() > 20, "{names:?}");
    names
}

/// Does `work` while neighbours wait, which must end whole.
fn among_neighbours(server: &Surus, work: impl FnOnce()) {
    thread::scope(|scope| {
        let neighbours: Vec<_> = (0..NEIGHBOURS)
            .map(|number| {
                scope.spawn(move || ask(server, "hold", &format!("neighbour{number}")).text())
            })
            .collect();
        let start = Instant::now();
        while (0..NEIGHBOURS).any(|number| {
            let sign = format!("neighbour{number}.holds");
            !server.folder().join(sign).exists()
        }) {
            assert!(start.elapsed() < PATIENCE, "the neighbours do not wait");
            thread::sleep(Duration::from_millis(5));
        }
        // Also when it fails: nobody waits for it any longer.
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        fs::write(server.folder().join("go"), "").expect("a sign");
        for (number, neighbour) in neighbours.into_iter().enumerate() {
            let text = neighbour.join().expect("an answer");
            assert!(
                text.ends_with(&format!(" neighbour{number} whole")),
                "{text}"
            );
        }
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

/// php-fpm's answer.
fn reference(case: &str) -> Response {
    static SERVER: OnceLock<Reference> = OnceLock::new();
    let server = SERVER.get_or_init(|| Reference::serve(&fixture("containment")));
    Request::get(&format!("/?case=in&id={case}")).send(server.address())
}

fn check_answer(mode: Mode, place: &str, act: &str, response: &Response) {
    let text = response.text();
    for detail in DETAILS {
        assert!(!text.contains(detail), "{mode:?} {place} {act}: {text}");
    }
    if place == "header_callback_of_flush" || mode == Mode::Coroutine && LATE.contains(&place) {
        return;
    }
    let expected = reference(&format!("{place}.{act}"));
    assert_eq!(
        response.status, expected.status,
        "{mode:?} {place} {act}: {text}"
    );
    // What was printed before an exception is no part of an application's answer.
    let thrown = mode == Mode::Coroutine && act == "throw" && response.status == 500;
    if !thrown {
        assert_eq!(text, expected.text(), "{mode:?} {place} {act}");
    }
}

fn check(mode: Mode) {
    let server = server(mode);
    let places = names(&server, "places");
    among_neighbours(&server, || {
        let pid = ask(&server, "pid", "").expect(200).text();
        for place in &places {
            for act in ["exit", "throw", "fatal", "compile", "memory"] {
                let request = Request::get(&format!("/?case=in&id={place}.{act}"));
                match request.try_send(server.address()) {
                    Ok(response) => check_answer(mode, place, act, &response),
                    // Its head is on its way: it is cut off.
                    Err(error) => assert_eq!(place, "header_callback_of_flush", "{act}: {error}"),
                }
                let next = ask(&server, "pid", "").expect(200).text();
                assert_eq!(next, pid, "{mode:?} {place} {act}: what comes next");
            }
        }
    });
}

#[test]
fn wherever_it_happens_classic() {
    check(Mode::Classic);
}

#[test]
fn wherever_it_happens_coroutine() {
    check(Mode::Coroutine);
}

#[test]
fn wherever_it_happens_process() {
    check(Mode::Process);
}

/// Each wears out a worker or a process: the next one answers.
fn check_worn_out(of: &str, query: impl Fn(&str) -> (&'static str, String)) {
    // Newer versions always look after the stacks of Fibers.
    let looks_after_fibers = Surus::php() >= 80300;
    for mode in Mode::ALL {
        let server = server(mode);
        let mut names = names(&server, of);
        names.retain(|name| !(looks_after_fibers && name.starts_with("fiber")));
        among_neighbours(&server, || {
            for name in &names {
                let (case, id) = query(name);
                let text = ask(&server, case, &id).expect(500).text();
                assert!(!text.contains("in;"), "{mode:?} {name}: {text}");
            }
        });
        let log = server.log();
        let overflows = log.matches("C stack overflow: what ran").count();
        assert_eq!(overflows, names.len(), "{mode:?}: {log}");
    }
}

#[test]
fn wherever_the_stack_ends() {
    check_worn_out("places", |name| ("in", format!("{name}.overflow")));
}

#[test]
fn however_it_recurses() {
    check_worn_out("recursions", |name| ("recurse", name.to_owned()));
}

/// Memory that C code asks for beyond PHP's hard limit, at which PHP ends its process.
#[test]
fn memory_beyond_the_hard_limit() {
    for mode in Mode::ALL {
        let server = server(mode);
        among_neighbours(&server, || {
            for _ in 0..2 {
                ask(&server, "dump", "").expect(500);
            }
        });
    }
}
