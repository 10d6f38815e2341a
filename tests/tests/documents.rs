//! What README.md and docs/ name exists: the tests of their promises, files, pages, commands. Documents for users have no
//! evidence in them.
#![forbid(unsafe_code)]

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use surus_tests::http::Request;
use surus_tests::surus::{binary, Surus};
use surus_tests::temp::TempDir;

/// Not of the project, or not only text.
const NOT_READ: [&str; 5] = [".git", ".cache", "raw", "target", "node_modules"];

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    root.expect("the crate is in the repository").to_owned()
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let entry = entry.expect("an entry");
            if NOT_READ.iter().any(|name| entry.file_name() == *name) {
                continue;
            }
            if entry.file_type().expect("its type").is_dir() {
                folders.push(entry.path());
            } else {
                files.push(entry.path());
            }
        }
    }
    files
}

/// Everything below a folder of this crate that ends like this, as one text.
fn sources(folder: &str, ending: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let files = files(&folder).into_iter();
    files
        .filter(|path| path.to_string_lossy().ends_with(ending))
        .map(|path| fs::read_to_string(path).expect("a source"))
        .collect()
}

/// All documents, each with its text.
fn documents() -> Vec<(PathBuf, String)> {
    let files = files(&root()).into_iter();
    files
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
        .map(|path| {
            let text = fs::read_to_string(&path).expect("a document");
            (path, text)
        })
        .collect()
}

/// What stands in backticks within a line.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// Each row of the inventory of state names a test first, or has a dash in its place.
#[test]
fn the_inventory_names_tests_that_exist() {
    let inventory = sources("../docs", "internals/isolates.md");
    let tests = sources("tests", ".rs") + &sources("../crates/surus-zend/tests", ".rs");
    let settings = sources("fixtures/isolation", "rows.php");
    let exists = |name: &str| {
        let function = name.rsplit("::").next().unwrap_or(name);
        settings.contains(&format!("'{name}' => new Row"))
            || tests.contains(&format!("fn {function}("))
            || tests.contains(&format!("\n    {name}\n"))
            || tests.contains(&format!("\n    {name}: |mode|"))
    };
    let (_, state) = inventory.split_once("\n## State\n").expect("a heading");
    let (state, _) = state.split_once("\n## ").expect("the next heading");
    let mut rows = 0;
    for row in state.lines().filter(|line| line.starts_with("| ")) {
        let test = row.trim_end_matches(" |").rsplit(" | ").next();
        let test = test.expect("the last cell");
        if test == "–" || test == "test" || row.matches(" | ").count() < 3 {
            continue;
        }
        let name = test.split('`').nth(1).unwrap_or_default();
        assert!(exists(name), "no test {name:?}: {row}");
        rows += 1;
    }
    assert!(rows > 40, "{rows} rows");
}

/// Each promise names its tests: by their names, or by how those begin (`exit_in_*`) or end (`…_to_files`).
fn promised(document: &str) -> usize {
    let promises = sources("../docs", document);
    let tests = sources("tests", ".rs") + &sources("../crates", ".rs");
    let names: HashSet<&str> = tests
        .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .collect();
    let exists = |name: &str| {
        let (begins, ends) = match name.split_once(['*', '…']) {
            Some((begin, end)) => (begin, end.trim_start_matches('_')),
            None => return names.contains(name),
        };
        names
            .iter()
            .any(|other| other.starts_with(begins) && other.ends_with(ends))
    };
    let lines: Vec<&str> = promises.lines().collect();
    let mut promised = 0;
    for (at, row) in lines.iter().enumerate() {
        let is_heading = lines.get(at + 1).is_some_and(|next| next.starts_with("|-"));
        if is_heading || !row.starts_with("| ") {
            continue;
        }
        let cells = row.trim_end_matches(" |").rsplit_once(" | ");
        for name in cells.into_iter().flat_map(|(_, test)| quoted(test)) {
            let function = name.rsplit("::").next().unwrap_or(name);
            assert!(exists(function), "no test {name:?}: {row}");
            promised += 1;
        }
    }
    promised
}

#[test]
fn the_promises_name_tests_that_exist() {
    let documents = [
        ("reliability.md", 60),
        ("edge.md", 30),
        ("websockets.md", 30),
        ("waits.md", 20),
        ("channels.md", 10),
    ];
    for (document, least) in documents {
        let names = promised(&format!("internals/{document}"));
        assert!(names > least, "{document}: {names} names");
    }
}

/// Whether this group of tests has a test, or a row of its table, of this name; `*` is any.
fn group_has(group: &str, name: &str) -> bool {
    let tests = sources("tests", &format!("/{group}.rs")) + &sources_in(&format!("tests/{group}"));
    let rows = sources_in(&format!("fixtures/{group}"));
    // In the list of a macro.
    let is_listed = |line: &str| {
        let rest = line.trim().strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', ';']))
    };
    match name {
        "*" => tests.contains("#[test]"),
        name => {
            tests.contains(&format!("fn {name}("))
                || tests.lines().any(is_listed)
                || rows.contains(&format!("\n        '{name}' => new Row("))
        }
    }
}

/// All that is below a folder of this crate, if there is one.
fn sources_in(folder: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    match path.is_dir() {
        true => sources(folder, ""),
        false => String::new(),
    }
}

/// Each function that Swoole or TrueAsync names has a row, and each row has a test of the group that it says.
#[test]
fn functions_that_others_hook_have_tests() {
    const FLAGS: &str = "ALL TCP UDP UNIX UDG SSL TLS STREAM_FUNCTION STREAM_SELECT FILE STDIO SLEEP PROC CURL NATIVE_CURL \
        BLOCKING_FUNCTION SOCKETS PDO_PGSQL PDO_ODBC PDO_ORACLE PDO_SQLITE PDO_FIREBIRD NET_FUNCTION MONGODB";
    let page = sources("../docs", "internals/hooked-functions.md");
    let mut named = HashSet::new();
    for row in page.lines().filter(|line| line.ends_with(" |")) {
        let cells: Vec<&str> = row.trim_matches(['|', ' ']).split(" | ").collect();
        let [functions, here, tests] = cells[..] else {
            continue;
        };
        named.extend(quoted(functions));
        let tests: Vec<&str> = quoted(tests).collect();
        let is_heading = here == "here";
        assert!(
            is_heading || !tests.is_empty() || here == "not in Debian",
            "no test: {row}"
        );
        for test in tests.iter().filter(|test| test.contains("::")) {
            let group = test.split("::").next().unwrap_or_default();
            let name = test.rsplit("::").next().unwrap_or_default();
            assert!(group_has(group, name), "no test {test:?}: {row}");
        }
    }
    for flag in FLAGS.split_whitespace() {
        let flag = format!("SWOOLE_HOOK_{flag}");
        assert!(named.contains(flag.as_str()), "no row of {flag}");
    }
    let functions = named.iter().filter(|name| name.ends_with("()"));
    assert!(functions.count() >= 98, "{named:?}");
    assert!(!group_has("hooks", "not_there") && !group_has("not_there", "fread"));
}

/// What is between the tables of docs/internals.
#[test]
fn the_text_names_tests_that_exist() {
    let tests = sources("tests", ".rs") + &sources("../crates", ".rs");
    let mut named = 0;
    for (document, promises) in documents() {
        if !document.to_string_lossy().contains("/docs/internals/") {
            continue;
        }
        let text = promises.lines().filter(|line| !line.starts_with('|'));
        let text: String = text.collect::<Vec<_>>().join(" ");
        let paths = text.split('`').skip(1).step_by(2);
        for name in paths.filter(|name| name.contains("::") && !name.contains(['*', '…', '{', '(']))
        {
            let function = name.rsplit("::").next().unwrap_or(name);
            assert!(
                tests.contains(&format!("fn {function}("))
                    || tests.contains(&format!("    {function}: "))
                    || tests.contains(&format!("mod {function};")),
                "{}: no test {name:?}",
                document.display()
            );
            named += 1;
        }
    }
    assert!(named > 20, "{named}");
}

/// Which test shows what is for engineers: docs/internals. README.md and the other pages are for users.
#[test]
fn documents_for_users_name_no_tests() {
    let tests = sources("tests", ".rs");
    let internals = ["/docs/internals/", "/docs/architecture.md"];
    for (document, text) in documents() {
        let path = document.to_string_lossy().into_owned();
        let is_for_users = path.contains("/docs/") || path.ends_with("/README.md");
        let is_for_engineers = internals.iter().any(|part| path.contains(part));
        if !is_for_users || is_for_engineers {
            continue;
        }
        for name in quoted(&text).filter(|name| name.contains("::")) {
            let function = name.rsplit("::").next().unwrap_or(name);
            assert!(
                !tests.contains(&format!("fn {function}()")),
                "{path}: {name} is evidence"
            );
        }
    }
}

/// The first page is short.
#[test]
fn the_readme_has_at_most_150_lines() {
    let readme = fs::read_to_string(root().join("README.md")).expect("the page");
    assert!(readme.lines().count() <= 150);
}

/// Links lead to files, and to headings of theirs.
#[test]
fn links_lead_somewhere() {
    let mut links = 0;
    for (document, text) in documents() {
        let targets = text.split("](").skip(1);
        let targets = targets.filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
        for target in targets.filter(|target| !target.contains("://")) {
            let (path, heading) = target.split_once('#').unwrap_or((target, ""));
            let page = match path {
                "" => document.clone(),
                path => document.with_file_name(path),
            };
            let place = document.display();
            let found =
                fs::read(&page).unwrap_or_else(|error| panic!("{place}: {target}: {error}"));
            let found = String::from_utf8_lossy(&found);
            let mut headings = found
                .lines()
                .filter(|line| line.starts_with('#'))
                .map(anchor);
            assert!(
                heading.is_empty() || headings.any(|other| other == heading),
                "{place}: no heading of {target}"
            );
            links += 1;
        }
    }
    assert!(links > 30, "{links}");
}

/// What a heading is called in links.
fn anchor(heading: &str) -> String {
    let letters = heading.trim_start_matches('#').trim().chars();
    let letters = letters.filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    letters.collect::<String>().to_lowercase().replace(' ', "-")
}

/// Whether `file` is what is meant: the path is whole (`crates/surus`) or the end of one (`state/mod.rs`, `hidden*.c`).
fn is_meant(file: &str, path: &str) -> bool {
    let (begins, ends) = path.split_once('*').unwrap_or((path, ""));
    let begins = format!("/{begins}");
    file.match_indices(&begins).any(|(at, _)| {
        let rest = &file[at + begins.len()..];
        let name = rest.split('/').next().unwrap_or_default();
        name.ends_with(ends) && (path.contains('*') || name.is_empty())
    })
}

/// Those that begin with one of the repository's folders, and Rust's sources.
#[test]
fn paths_are_there() {
    let root = root();
    let files: Vec<String> = files(&root)
        .iter()
        .filter_map(|path| path.strip_prefix(&root).ok())
        .map(|path| format!("/{}", path.display()))
        .collect();
    let folders = [
        "bench",
        "bin",
        "crates",
        "docs",
        "examples",
        "fuzz",
        "packaging",
        "php",
        "tests",
    ];
    let mut named = 0;
    for (document, text) in documents() {
        for quoted in quoted(&text) {
            let path = quoted.split(' ').next().unwrap_or_default();
            let is_source = path == quoted && path.ends_with(".rs");
            let is_ours = path
                .split_once('/')
                .is_some_and(|(first, _)| folders.contains(&first));
            if (is_ours || is_source) && !path.contains(['<', '…']) {
                let path = path.trim_end_matches('/');
                assert!(
                    files.iter().any(|file| is_meant(file, path)),
                    "{}: no {path}",
                    document.display()
                );
                named += 1;
            }
        }
    }
    assert!(named > 40, "{named}");
}

/// `make TARGET` and `surus COMMAND`, quoted or in a block of commands.
#[test]
fn commands_are_there() {
    let makefile = fs::read_to_string(root().join("Makefile")).expect("a Makefile");
    let help = Command::new(binary()).arg("--help").output().expect("help");
    let help = String::from_utf8(help.stdout).expect("text");
    let mut named = 0;
    for (document, text) in documents() {
        let lines = text.lines().map(str::trim);
        for command in lines.chain(quoted(&text)) {
            let mut words = command.split_whitespace();
            let (program, word) = (words.next(), words.next().unwrap_or_default());
            let is_word = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
            let is_there = match program {
                Some("make") if is_word => makefile.contains(&format!("\n{word}:")),
                Some("surus") if is_word => help.contains(&format!("\n  {word} ")),
                _ => continue,
            };
            assert!(is_there, "{}: {command}", document.display());
            named += 1;
        }
    }
    assert!(named > 40, "{named}");
}

/// Whatever else a machine has: see .cargo/config.toml. What the list names is what a server has, and comes from packages
/// that `bin/setup` installs, or from those that they depend on.
#[test]
fn tests_have_the_extensions_of_their_list() {
    let list = fs::read_to_string(root().join("tests/php.d/extensions.ini")).expect("the list");
    let names: HashSet<String> = list
        .lines()
        .filter_map(|line| line.split_once("extension=")?.1.strip_suffix(".so"))
        .map(str::to_owned)
        .collect();
    let folder = TempDir::new("extensions");
    folder.file("index.php", "<?php echo php_ini_scanned_files();");
    let server = Surus::serve(folder.path()).start();
    let files = Request::get("/").send(server.address()).expect(200).text();
    let files: Vec<&str> = files.split(',').map(str::trim).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    assert!(
        files[0].ends_with("tests/php.d/extensions.ini"),
        "{files:?}"
    );
    let log = server.log();
    assert!(!log.contains("Unable to load"), "{log}");

    let setup = fs::read_to_string(root().join("bin/setup")).expect("the packages");
    for name in &names {
        let output = Command::new("dpkg")
            .args(["-S", &format!("/usr/lib/php/*/{name}.so")])
            .output()
            .expect("dpkg");
        let text = String::from_utf8_lossy(&output.stdout);
        let package = text.split(':').next().unwrap_or_default();
        // Of php8.2-cli, php8.2-memcached, libphp8.2-embed.
        let comes_along = ["-common", "-msgpack", "-opcache"];
        assert!(
            setup.contains(&format!("{package} "))
                || setup.contains(&format!("{package}\n"))
                || comes_along.iter().any(|with| package.ends_with(with)),
            "{name} is of {package:?}, which bin/setup does not install"
        );
    }
}
