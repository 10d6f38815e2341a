//! What jobs are given, and what becomes of them.

use surus_tests::http::Request;
use surus_tests::surus::{binary, Surus};
use surus_tests::waiting::wait_for;

use super::support::{push, Site};

#[test]
fn a_job_runs_once_with_what_was_pushed() {
    let site = Site::new();
    let server = site.options().workers(2).start();
    let ids: Vec<String> = (0..20)
        .map(|n| push(&server, &format!("note/{n}")))
        .collect();
    assert!(ids.iter().all(|id| id.len() == 32), "{ids:?}");
    push(&server, "class/x");
    for n in 0..20 {
        site.wait_for(&format!("note {n} 1"), 1);
    }
    site.wait_for("class x", 1);
    wait_for("they are not all done", || {
        site.counts("note")["done"] == 20
    });
    assert_eq!(site.lines().len(), 21);
}

#[test]
fn the_highest_priority_is_first_and_delayed_ones_wait() {
    let site = Site::new();
    let server = site.options().start();
    push(&server, "one/first");
    site.wait_for("one first", 1);
    push(&server, "one/delayed?delay=0.3&priority=9");
    for target in ["low?priority=-1", "a", "b", "high?priority=5"] {
        push(&server, &format!("one/{target}"));
    }
    assert_eq!(site.counts("one")["delayed"], 1);
    site.sign("go");
    site.wait_for("one delayed", 1);
    site.wait_for("one low", 1);
    let lines = site.lines();
    let order: Vec<&str> = lines
        .iter()
        .map(|line| line.trim_start_matches("one "))
        .filter(|name| *name != "delayed")
        .collect();
    assert_eq!(order, ["first", "high", "a", "b", "low"]);
}

#[test]
fn a_unique_job_is_there_once_until_it_is_done() {
    let site = Site::new();
    let server = site.options().start();
    push(&server, "one/first");
    let first = push(&server, "one/a?unique=x");
    assert_eq!(push(&server, "one/b?unique=x"), first);
    assert_ne!(push(&server, "one/c?unique=y"), first);
    assert_ne!(push(&server, "note/d?unique=x"), first, "another queue");
    site.sign("go");
    site.wait_for("one c", 1);
    wait_for("it is not done", || site.counts("one")["done"] == 3);
    push(&server, "one/e?unique=x");
    site.wait_for("one e", 1);
    assert!(!site.notes().contains_key("one b"));
}

#[test]
fn a_job_that_fails_runs_again_and_is_kept_in_the_end() {
    let site = Site::new();
    let server = site.options().start();
    let id = push(&server, "fails/x");
    site.wait_for_failed("fails", 1);
    assert_eq!(site.lines(), ["fails x 1", "fails x 2"]);
    let (_, listed) = site.command(&["failed"]);
    assert!(listed.contains(&id) && listed.contains("no x"), "{listed}");
    let (_, said) = site.command(&["retry", &id]);
    assert_eq!(said, "1 jobs run again\n");
    site.wait_for("fails x 2", 2);
    site.wait_for_failed("fails", 1);
    let (_, said) = site.command(&["forget", "fails"]);
    assert_eq!(said, "1 jobs were forgotten\n");
    assert_eq!(site.counts("fails")["failed"], 0);
    push(&server, "again/x");
    site.wait_for_failed("again", 1);
    assert_eq!(site.notes()["again 3"], 1);
    let log = server.log();
    assert!(log.contains("A job of fails has failed"), "{log}");
}

#[test]
fn exit_and_fatal_errors_are_failures() {
    let site = Site::new();
    let server = site.options().start();
    for how in ["exit", "fatal"] {
        push(&server, &format!("ends/{how}"));
    }
    site.wait_for_failed("ends", 2);
    let notes = site.notes();
    assert_eq!((notes["ends exit"], notes["ends fatal"]), (2, 2));
    let (_, listed) = site.command(&["failed", "ends"]);
    assert!(listed.contains("exit has ended it"), "{listed}");
    assert!(listed.contains("a fatal error has ended it"), "{listed}");
    push(&server, "note/after");
    site.wait_for("note after 1", 1);
}

#[test]
fn a_job_whose_time_is_over_is_ended_where_it_waits() {
    let site = Site::new();
    let server = site.options().start();
    push(&server, "late/x");
    site.wait_for_failed("late", 1);
    site.wait_for("finally", 1);
    let (_, listed) = site.command(&["failed", "late"]);
    assert!(listed.contains("not done within 0.5 s"), "{listed}");
    // The log says where it was.
    wait_for("there is no backtrace", || {
        let log = server.log();
        log.contains("job of /late timed out") && log.contains("sleep() [internal]")
    });
}

#[test]
fn hundreds_wait_at_the_same_time_in_one_process() {
    let site = Site::new();
    let server = site.options().start();
    for n in 0..300 {
        push(&server, &format!("many/{n}"));
    }
    site.wait_for("arrived", 300);
    assert_eq!(site.counts("many")["running"], 300);
    // Requests are served meanwhile.
    let counts = Request::get("/counts/many").send(server.address());
    assert_eq!(counts.expect(200).json()["running"], 300);
    site.sign("go");
    site.wait_for("left", 300);
}

#[test]
fn a_script_takes_and_pushes_jobs_of_the_server() {
    let site = Site::new();
    let server = site.options().start();
    push(&server, "taken/hello");
    let php = |code: &str| {
        let output = std::process::Command::new(binary())
            .args(["php", "-r", code])
            .env("SURUS_QUEUE_FOLDER", site.queue())
            .output()
            .expect("php");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    let taken = "$q = new Surus\\Queue('taken'); $j = $q->take(5); echo $j->payload, $j->attempt;";
    // It dies with the job: the next one gets it.
    assert_eq!(php(taken), "hello1");
    assert_eq!(php(&format!("{taken} $j->done();")), "hello2");
    assert_eq!(
        php("echo json_encode((new Surus\\Queue('taken'))->take());"),
        "null"
    );
    // What cannot be read is said of that job and that entry, and keeps nobody from the others.
    let broken = "class Bad { function __unserialize(array $data): void { throw new Exception('wrong'); } }
        $q = new Surus\\Queue('broken'); $q->push(new Bad); $q->push('good'); $j = $q->take(5); echo $j->payload; $j->done();
        echo $q->counts()['delayed'];
        $s = new Surus\\Stream('broken'); $s->append(new Bad); $s->append('next');
        foreach ($s->read('one', wait: 5) as $e) {
            try { echo $e->payload; } catch (Surus\\QueueException) { echo 'not ', $e->position, ' '; }
        }";
    let said = php(broken);
    assert!(said.starts_with("good1not 1 next"), "{said}");
    assert_eq!(php("Surus\\dispatch('note', 'script');"), "");
    site.wait_for("note script 1", 1);
    push(&server, "taken/again");
    let taken = Request::get("/take/taken").send(server.address());
    assert_eq!(taken.expect(200).text(), "again");
    drop(server);
    let code = "try { Surus\\dispatch('note', 1); } catch (Surus\\QueueException $e) { echo $e->getMessage(); }";
    assert!(php(code).contains("was not there for 15s"));
}

#[test]
fn mistakes_are_errors_that_name_them() {
    let site = Site::new();
    let folder = site.queue();
    std::fs::create_dir_all(&folder).expect("a folder");
    let wrong = |declared: &str| {
        let code = format!("<?php $app = new Surus\\App(); $app->queue({declared}); return $app;");
        let script = folder.join("wrong.php");
        std::fs::write(&script, code).expect("a script");
        Surus::serve(&script).boot_error()
    };
    let handler = "fn () => 1";
    let error = wrong(&format!("'a b', {handler}"));
    assert!(error.contains("\"a b\" is no name of a queue"), "{error}");
    let error = wrong(&format!("'a', {handler}, tries: 0"));
    assert!(error.contains("tries of a queue is from 1"), "{error}");
    let error = wrong("'a', 'nothing'");
    assert!(
        error.contains("the handler of a queue is a callable"),
        "{error}"
    );
    let error = wrong(&format!("'a', {handler})->queue('a', {handler}"));
    assert!(error.contains("has a handler already"), "{error}");
}
