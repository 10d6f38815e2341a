//! The examples of docs/guide and the project that `surus new` makes.
#![forbid(unsafe_code)]

#[path = "guide/scaffold.rs"]
mod scaffold;

use std::fs;
use std::path::Path;
use std::process::Command;

use surus_tests::http::Request;
use surus_tests::surus::{binary, Surus};
use surus_tests::temp::TempDir;

/// The first block of this language.
fn block<'a>(page: &'a str, language: &str) -> &'a str {
    let start = format!("```{language}\n");
    let rest = page.split_once(&start).expect("a block").1;
    rest.split_once("\n```").expect("its end").0
}

#[test]
fn every_page_of_the_guide_does_what_it_says() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guide");
    let mut pages: Vec<_> = fs::read_dir(&guide)
        .expect("the guide")
        .map(|entry| entry.expect("a page").path())
        .filter(|path| !path.ends_with("README.md"))
        .collect();
    pages.sort();
    assert_eq!(pages.len(), 11);
    for path in pages {
        let page = fs::read_to_string(&path).expect("a page");
        let folder = TempDir::new("guide");
        let script = folder.file("app.php", block(&page, "php"));
        let server = Surus::serve(&script).start();
        for line in block(&page, "text").lines() {
            let (method, rest) = line.split_once(' ').expect("a method");
            let (target, rest) = rest.trim_start().split_once(' ').expect("a target");
            let rest = rest.trim_start();
            let (status, body) = rest.split_once(' ').unwrap_or((rest, ""));
            let answer = Request::new(method, target).send(server.address());
            let place = format!("{}: {line}", path.display());
            assert_eq!(
                answer.status.to_string(),
                status,
                "{place}\n{}",
                server.log()
            );
            if !body.is_empty() {
                assert_eq!(answer.text(), body, "{place}");
            }
        }
    }
}

fn surus(arguments: &[&str], folder: &Path) -> (bool, String) {
    let output = Command::new(binary())
        .args(arguments)
        .current_dir(folder)
        .env("SURUS_BIN", binary())
        .env("TMPDIR", folder)
        .env("RUNTIME_DIRECTORY", folder)
        .output()
        .expect("surus runs");
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    (output.status.success(), text.into_owned())
}

#[test]
fn a_new_project_passes_its_own_tests() {
    let folder = TempDir::new("new");
    let (made, text) = surus(&["new", "notes"], folder.path());
    assert!(made, "{text}");
    let (again, text) = surus(&["new", "notes"], folder.path());
    assert!(!again && text.contains("not empty"), "{text}");
    let (passed, text) = surus(&["php", "notes/tests/run.php"], folder.path());
    assert!(passed && text.contains("8 assertions hold"), "{text}");
    let (listed, routes) = surus(&["routes", "notes"], folder.path());
    assert!(listed, "{routes}");
    assert_eq!(
        routes.lines().last(),
        Some("GET   /api/notes/{id:int}  app.php:49  < Surus\\Middleware\\SecurityHeaders")
    );
    let env = fs::read_to_string(folder.path().join("notes/.env")).expect("settings");
    fs::write(
        folder.path().join("notes/.env"),
        env.replace("APP_SECRET", "# APP_SECRET"),
    )
    .expect("settings");
    let (_, text) = surus(&["routes", "notes"], folder.path());
    assert!(text.contains("The setting APP_SECRET is missing"), "{text}");
}
