//! An extension whose state cannot be isolated: the self-test finds it out, and PHP gets processes.

use std::path::Path;
use std::process::Command;

use serde_json::json;
use surus_tests::fixture;
use surus_tests::http::Request;
use surus_tests::parallel::together;
use surus_tests::surus::{Options, Surus};
use surus_tests::temp::TempDir;

/// Compiles an extension of `fixtures/extension` into the folder.
fn compile(name: &str, define: &str, folder: &Path) {
    let includes = Command::new("php-config8.2")
        .arg("--includes")
        .output()
        .expect("PHP's headers are installed");
    let includes = String::from_utf8(includes.stdout).expect("UTF-8");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-shared", "-fPIC", "-O1", define])
        .args(includes.split_whitespace())
        .arg(fixture(&format!("extension/{name}.c")))
        .arg("-o")
        .arg(folder.join(format!("{name}.so")));
    surus_tests::process::run(compiler);
}

/// The extension `fixtures/extension/keeper.c`, and a site that uses it.
fn site(define: &str) -> TempDir {
    let folder = TempDir::new("extension");
    folder.file(
        "index.php",
        "<?php keep((int) $_GET['id']); usleep(100_000); echo kept(), ' ', getmypid();",
    );
    compile("keeper", define, folder.path());
    folder
}

fn server(site: &TempDir, app: &str) -> Options {
    let root = site.path().display();
    let config =
        format!("[app.site]\nroot = \"{root}\"\n{app}\n[php]\nextension = \"{root}/keeper.so\"\n");
    Surus::serve(site.path()).config(&config)
}

/// Requests that overlap, each of which finds what it has kept.
fn assert_apart(server: &Surus) {
    let (answers, _) = together(20, |id| {
        let request = Request::get(&format!("/?id={id}"));
        request.send(server.address()).expect(200).text()
    });
    for (id, answer) in answers.iter().enumerate() {
        let kept = answer.split(' ').next();
        assert_eq!(kept, Some(id.to_string().as_str()), "{answers:?}");
    }
}

/// What the self-test's script sees is named.
#[test]
fn shared_state_makes_processes() {
    let site = site("-DSEEDS");
    let server = server(&site, "").start();
    let log = server.log();
    assert!(
        log.contains("cannot be isolated: two requests at once share random numbers, perhaps because of keeper"),
        "{log}"
    );
    assert_apart(&server);
}

/// No script knows what an unknown extension keeps, but its variables change.
#[test]
fn changing_variables_make_processes() {
    let site = site("-DCOUNTS");
    let server = server(&site, "").start();
    let log = server.log();
    assert!(
        log.contains("share variables of the extension keeper"),
        "{log}"
    );
    assert_apart(&server);
}

/// Asked for, there is nothing to find out and nothing to complain of.
#[test]
fn processes_that_are_asked_for_say_nothing() {
    let site = site("-DSEEDS");
    let server = server(&site, "mode = \"process\"").start();
    let log = server.log();
    // Root is told who it is, whatever it serves.
    let said: Vec<&str> = log
        .lines()
        .filter(|line| !line.contains("PHP runs as root"))
        .collect();
    assert!(said.is_empty(), "{log}");
    assert_apart(&server);
}

/// What changes in no request of the self-test's is the administrator's to know: the log says so.
#[test]
fn an_unknown_extension_is_named() {
    let site = site("-DSILENT");
    let server = server(&site, "").start();
    let log = server.log();
    assert!(
        log.contains("the extension keeper needs a process for each request"),
        "{log}"
    );
    assert!(!log.contains("cannot be isolated"), "{log}");
}

/// A setting's handler may report, throw, fail or call PHP: no request hears of what another one has set.
#[test]
fn handlers_of_settings_reach_nobody_else() {
    const REQUESTS: usize = 6;
    let folder = TempDir::new("loud");
    compile("loud", "-DLOUD", folder.path());
    let script = fixture("extension/settings.php");
    let config = format!(
        "[php]\nextension = \"{}/loud.so\"\n",
        folder.path().display()
    );
    let server = Surus::serve(&script)
        .argument("--mode")
        .argument("coroutine")
        .config(&config)
        .start();
    let ask = |id: usize| {
        let request = Request::get(&format!("/?id={id}"));
        request.send(server.address()).expect(200).json()
    };
    let (answers, _) = together(REQUESTS, |number| ask(number + 1));
    for (id, answer) in (1..).zip(&answers) {
        assert_eq!(answer["before"], "application", "{answer}");
        assert_eq!(
            answer["own"],
            json!([format!("{id}{id}{id}{id}")]),
            "{answer}"
        );
        assert_eq!(answer["heard"], json!([]), "{answer}");
        assert_eq!(answer["said"], 2, "{answer}");
    }
    // Each request's own call, and no other.
    let after = ask(0);
    assert_eq!(after, json!({"before": "application", "called": REQUESTS}));
}
