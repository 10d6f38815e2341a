//! Dependencies between folders point one way: no folder uses another one that uses it, over however many steps.
//!
//! What is a folder's is what lies in it at any depth. Tests are not looked at: they may use anything.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// From a folder to those that it uses, with a line that says so.
type Uses = BTreeMap<String, BTreeMap<String, String>>;

/// How a language names what a file uses.
trait Language {
    const EXTENSIONS: &'static [&'static str];

    /// Whether this file is a test's.
    fn is_test(path: &Path) -> bool;

    /// The folders that a line of a file uses, of all that there are.
    fn used(&self, line: &str, folders: &BTreeSet<String>) -> Vec<String>;
}

/// `crate::folder::…`, also inside of braces, and `crate::Name` where `lib.rs` has it from a folder.
struct Rust {
    /// From a name to its folder.
    exported: BTreeMap<String, String>,
}

impl Rust {
    fn new(source: &Path) -> Self {
        let root = fs::read_to_string(source.join("lib.rs")).expect("lib.rs");
        let mut exported = BTreeMap::new();
        for statement in root.split(';') {
            let Some((_, path)) = statement.rsplit_once("pub use ") else {
                continue;
            };
            let folder = first_word(path);
            let names = path.rsplit_once("::").map_or("", |(_, names)| names);
            for name in words(names) {
                exported.insert(name.to_owned(), folder.to_owned());
            }
        }
        Rust { exported }
    }
}

impl Language for Rust {
    const EXTENSIONS: &'static [&'static str] = &["rs"];

    fn is_test(path: &Path) -> bool {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        name == "tests" || name == "fuzz" || name.ends_with("_tests")
    }

    fn used(&self, line: &str, folders: &BTreeSet<String>) -> Vec<String> {
        let mut used = Vec::new();
        for (at, _) in line.match_indices("crate::") {
            let rest = &line[at + "crate::".len()..];
            let names = match rest.strip_prefix('{') {
                Some(list) => top_level(list),
                None => vec![first_word(rest)],
            };
            used.extend(names.into_iter().filter_map(|name| {
                let is_folder = folders.contains(name).then(|| name.to_owned());
                is_folder.or_else(|| self.exported.get(name).cloned())
            }));
        }
        used
    }
}

/// `#include "folder/file.h"`.
struct C;

impl Language for C {
    const EXTENSIONS: &'static [&'static str] = &["c", "h", "S"];

    fn is_test(_: &Path) -> bool {
        false
    }

    fn used(&self, statement: &str, folders: &BTreeSet<String>) -> Vec<String> {
        // A comment may stand above the first one.
        let paths = statement
            .lines()
            .filter_map(|line| line.strip_prefix("#include \""));
        paths
            .filter_map(|path| Some(path.split_once('/')?.0.to_owned()))
            .filter(|folder| folders.contains(folder))
            .collect()
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
}

fn first_word(text: &str) -> &str {
    words(text).next().unwrap_or_default()
}

/// The first word of each element of a list in braces.
fn top_level(list: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut found) = (0, 0, Vec::new());
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                found.push(first_word(&list[begin..at]));
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(first_word(&list[begin..at]));
                begin = at + 1;
            }
            _ => {}
        }
    }
    found
}

fn files(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path, extensions));
        } else if extensions
            .iter()
            .any(|it| path.extension().is_some_and(|own| own == *it))
        {
            found.push(path);
        }
    }
    found
}

/// What is code, on one line for each statement: neither comments nor unit tests.
fn statements(text: &str) -> Vec<String> {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let code = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let mut all = vec![String::new()];
    for line in code {
        if let Some(last) = all.last_mut() {
            last.push_str(line);
            last.push('\n');
        }
        if line.ends_with(';') || line.starts_with('#') {
            all.push(String::new());
        }
    }
    all
}

fn uses<L: Language>(source: &Path, language: &L) -> Uses {
    let folders: BTreeSet<_> = fs::read_dir(source)
        .expect("a folder of sources")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_dir())
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
        .collect();
    let mut uses = Uses::new();
    for folder in &folders {
        for file in files(&source.join(folder), L::EXTENSIONS) {
            if L::is_test(&file) {
                continue;
            }
            let text = fs::read_to_string(&file).expect("a source");
            for statement in statements(&text) {
                for used in language.used(&statement, &folders) {
                    if used != *folder {
                        let name = file.strip_prefix(source).unwrap_or(&file).display();
                        let why = format!(
                            "{name}: {}",
                            statement.split_whitespace().collect::<Vec<_>>().join(" ")
                        );
                        uses.entry(folder.clone())
                            .or_default()
                            .entry(used)
                            .or_insert(why);
                    }
                }
            }
        }
    }
    uses
}

/// The folders of a circle, if there is one, each of which uses the next.
fn circle(uses: &Uses) -> Option<Vec<String>> {
    fn visit(at: &str, uses: &Uses, path: &mut Vec<String>, done: &mut BTreeSet<String>) -> bool {
        if let Some(begin) = path.iter().position(|each| each == at) {
            path.drain(..begin);
            path.push(at.to_owned());
            return true;
        }
        if done.contains(at) {
            return false;
        }
        path.push(at.to_owned());
        for used in uses.get(at).into_iter().flat_map(BTreeMap::keys) {
            if visit(used, uses, path, done) {
                return true;
            }
        }
        path.pop();
        done.insert(at.to_owned());
        false
    }
    let mut done = BTreeSet::new();
    uses.keys().find_map(|folder| {
        let mut path = Vec::new();
        visit(folder, uses, &mut path, &mut done).then_some(path)
    })
}

fn has_no_circle<L: Language>(source: &Path, language: &L) {
    let uses = uses(source, language);
    assert!(!uses.is_empty(), "{}: nothing was read", source.display());
    if let Some(circle) = circle(&uses) {
        let steps = circle
            .windows(2)
            .map(|pair| format!("  {} -> {}: {}", pair[0], pair[1], uses[&pair[0]][&pair[1]]));
        let steps: Vec<_> = steps.collect();
        panic!(
            "{}: a circle of folders\n{}",
            source.display(),
            steps.join("\n")
        );
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[test]
fn folders_of_the_edge_have_no_circle() {
    let source = repository().join("crates/surus-edge/src");
    has_no_circle(&source, &Rust::new(&source));
    let flat = files(&source, &["rs"]);
    let flat = flat.iter().filter(|file| file.parent() == Some(&source));
    let mut names: Vec<_> = flat.filter_map(|file| file.file_name()?.to_str()).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        ["fuzz.rs", "lib.rs", "testing.rs"],
        "each file has a folder"
    );
}

#[test]
fn folders_of_the_engine_have_no_circle() {
    let source = repository().join("crates/surus-zend/src");
    has_no_circle(&source, &Rust::new(&source));
}

#[test]
fn folders_of_the_bridge_have_no_circle() {
    let source = repository().join("crates/surus-zend/csrc");
    has_no_circle(&source, &C);
    for file in files(&source, &["c", "S"]) {
        assert_ne!(
            file.parent(),
            Some(source.as_path()),
            "{file:?}: each file has a folder"
        );
    }
}

#[test]
fn circles_are_found() {
    let rust = Rust {
        exported: [("Name".to_owned(), "c".to_owned())].into(),
    };
    let folders = ["a", "b", "c"].map(str::to_owned).into();
    for (line, expected) in [
        ("use crate::a::x;", vec!["a"]),
        ("use crate::{a::{self, b}, c};", vec!["a", "c"]),
        ("use crate::{\n    Name,\n    Other,\n};", vec!["c"]),
        ("    crate::b::call(crate::Name::new());", vec!["b", "c"]),
        ("use crate::d::a;", vec![]),
        ("use std::a;", vec![]),
    ] {
        assert_eq!(rust.used(line, &folders), expected, "{line}");
    }
    assert_eq!(C.used("#include \"b/task.h\"\n", &folders), ["b"]);
    assert_eq!(
        C.used("/* Above. */\n#include \"b/task.h\"\n", &folders),
        ["b"]
    );
    assert!(C.used("#include \"task.h\"\n", &folders).is_empty());
    let graph = |edges: &[(&str, &str)]| {
        let mut uses = Uses::new();
        for (from, to) in edges {
            let of = uses.entry((*from).to_owned()).or_default();
            of.insert((*to).to_owned(), String::new());
        }
        uses
    };
    assert_eq!(circle(&graph(&[("a", "b"), ("a", "c"), ("b", "c")])), None);
    let found = circle(&graph(&[("a", "b"), ("b", "c"), ("c", "b")])).expect("one");
    assert_eq!(found, ["b", "c", "b"]);
    let text = "use crate::a;\n// crate::b\n#[cfg(test)]\nmod tests {\n    use crate::c;\n}\n";
    assert_eq!(statements(text).concat().trim(), "use crate::a;");
}
