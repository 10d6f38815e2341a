//! An extension whose state cannot be isolated: the self-test finds it out, and PHP gets processes.

use std::process::Command;

use surus_tests::fixture;
use surus_tests::http::Request;
use surus_tests::parallel::together;
use surus_tests::surus::{Options, Surus};
use surus_tests::temp::TempDir;

/// The extension `fixtures/extension/keeper.c`, and a site that uses it.
fn site(define: &str) -> TempDir {
    let folder = TempDir::new("extension");
    folder.file(
        "index.php",
        "<?php keep((int) $_GET['id']); usleep(100_000); echo kept(), ' ', getmypid();",
    );
    let includes = Command::new("php-config8.2")
        .arg("--includes")
        .output()
        .expect("PHP's headers are installed");
    let includes = String::from_utf8(includes.stdout).expect("UTF-8");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-shared", "-fPIC", "-O1", define])
        .args(includes.split_whitespace())
        .arg(fixture("extension/keeper.c"))
        .arg("-o")
        .arg(folder.path().join("keeper.so"));
    surus_tests::process::run(compiler);
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
    assert_eq!(server.log(), "");
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
