//! The tests that docs/ names for its promises exist.
#![forbid(unsafe_code)]

use std::collections::HashSet;
use std::fs;
use std::path::Path;

/// Everything below a folder of this crate's repository that ends like this, as one text.
fn sources(folder: &str, ending: &str) -> String {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    let mut text = String::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                text += &fs::read_to_string(path).expect("a source");
            }
        }
    }
    text
}

/// Each row of the inventory of state names a test first, or has a dash in its place.
#[test]
fn the_inventory_names_tests_that_exist() {
    let inventory = sources("../docs", "isolates.md");
    let tests = sources("tests", ".rs") + &sources("../crates/surus-zend/tests", ".rs");
    let settings = sources("fixtures/isolation", "rows.php");
    let exists = |name: &str| {
        let function = name.rsplit("::").next().unwrap_or(name);
        settings.contains(&format!("'{name}' => new Row"))
            || tests.contains(&format!("fn {function}("))
            || tests.contains(&format!("\n    {name}\n"))
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
#[test]
fn the_promises_name_tests_that_exist() {
    let promises = sources("../docs", "reliability.md");
    let tests = sources("tests", ".rs") + &sources("../crates/surus-zend/tests", ".rs");
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
    let mut promised = 0;
    for row in promises.lines().filter(|line| line.starts_with("| ")) {
        let Some((_, test)) = row.trim_end_matches(" |").rsplit_once(" | ") else {
            continue;
        };
        if test == "test" || row.contains("MB") || !test.contains('`') {
            continue;
        }
        for name in test.split('`').skip(1).step_by(2) {
            let function = name.rsplit("::").next().unwrap_or(name);
            assert!(exists(function), "no test {name:?}: {row}");
            promised += 1;
        }
    }
    assert!(promised > 60, "{promised} names");
}

/// What is between the tables.
#[test]
fn the_text_names_tests_that_exist() {
    let promises = sources("../docs", "reliability.md");
    let tests = sources("tests", ".rs") + &sources("../crates/surus-zend/tests", ".rs");
    let text = promises.lines().filter(|line| !line.starts_with('|'));
    let text: String = text.collect::<Vec<_>>().join(" ");
    let paths = text.split('`').skip(1).step_by(2);
    let named: Vec<&str> = paths
        .filter(|name| name.contains("::") && !name.contains(['*', '…']))
        .collect();
    for name in &named {
        let function = name.rsplit("::").next().unwrap_or(name);
        assert!(
            tests.contains(&format!("fn {function}("))
                || tests.contains(&format!("    {function}: "))
                || tests.contains(&format!("mod {function};")),
            "no test {name:?}"
        );
    }
    assert!(named.len() > 5, "{named:?}");
}
