//! docs/configuration.md has a row for each key, made of the tables in `tables.rs` and of the defaults. A test compares
//! them; `UPDATE_DOCS=1 cargo test -p surus reference` writes them.

use std::fmt::Write;

use toml::{Table, Value};

use super::super::tables::{App, Channel, Isolates, Keys, Process, Pusher, Server};
use super::*;

const BEGIN: &str = "<!-- keys -->\n";
const END: &str = "<!-- /keys -->";

/// Defaults that depend on what is served, or on the machine.
const DEPENDS: [(&str, &str); 5] = [
    ("mode", "by what is found"),
    ("script", "by what is found"),
    ("root", "by what is found"),
    ("spool_folder", "`$TMPDIR`, else `\"/tmp\"`"),
    (
        "cancel_on_disconnect",
        "`true` in coroutine mode, else `false`",
    ),
];

/// How values of a type are written. A new type needs a row here.
fn written(of: &str) -> &'static str {
    match of {
        "Listen" => "address, or list",
        "Workers" => "number or `\"auto\"`",
        "PerAddress" => "number or `\"auto\"`",
        "Log" => "boolean or text",
        "PathBuf" => "path",
        "List<String>" | "Words" => "list of text",
        "List<PathBuf>" => "list of paths",
        "bool" => "boolean",
        "String" | "SaidIn" | "Mode" | "Reset" | "Restart" => "text",
        "usize" | "u64" => "number",
        "Size" => "size",
        "Share" => "size or share",
        "Memory" => "size or `\"-1\"`",
        "Span" => "duration",
        "Isolates" => "table",
        other => panic!("no words for the type {other}"),
    }
}

fn default(key: &str, values: &Table) -> String {
    if let Some((_, text)) = DEPENDS.iter().find(|(name, _)| *name == key) {
        return (*text).to_owned();
    }
    match values.get(key) {
        None | Some(Value::Table(_)) => "–".to_owned(),
        Some(value) => format!("`{value}`"),
    }
}

fn rows<T: Keys>(text: &mut String, values: &Table) {
    text.push_str("| key | type | default | |\n|---|---|---|---|\n");
    for (key, (of, description)) in T::KEYS.iter().zip(T::DESCRIPTIONS) {
        let (of, default) = (written(of), default(key, values));
        let description = description.trim();
        assert!(
            description.ends_with('.'),
            "{key}: a description is a sentence"
        );
        let _ = writeln!(text, "| `{key}` | {of} | {default} | {description} |");
    }
}

/// All tables, with the values of a server without configuration.
fn reference() -> String {
    let with = "[process.x]\ncommand = [\"x\"]\n[channel.x]\n[pusher.x]\nkey = \"x\"\nsecret = \"xxxxxxxx\"\n";
    let folder = Folder::with(&[("app.php", "<?php"), ("surus.toml", with)]);
    let config = folder.serve("{}", &[]).expect("a configuration");
    let printed = config.to_toml();
    let values: Table = printed.parse().expect("a surus.toml");
    let table = |value: &Value| value.as_table().cloned().unwrap_or_default();
    let server = table(&values["server"]);
    let app = table(values["app"].as_table().unwrap().values().next().unwrap());
    let isolates = table(&app["isolates"]);
    let mut process = table(&values["process"]["x"]);
    process.remove("command");
    process.remove("folder");
    let mut pusher = table(&values["pusher"]["x"]);
    for given in ["id", "key", "secret"] {
        pusher.remove(given);
    }
    let mut text = String::from("### `[server]`\n\n");
    rows::<Server>(&mut text, &server);
    text.push_str("\n### `[app.NAME]`\n\n");
    rows::<App>(&mut text, &app);
    text.push_str("\n### `[app.NAME.isolates]`\n\n");
    rows::<Isolates>(&mut text, &isolates);
    text.push_str("\n### `[process.NAME]`\n\n");
    rows::<Process>(&mut text, &process);
    text.push_str("\n### `[channel.PATTERN]`\n\n");
    rows::<Channel>(&mut text, &table(&values["channel"]["x"]));
    text.push_str("\n### `[pusher.NAME]`\n\n");
    rows::<Pusher>(&mut text, &pusher);
    text
}

#[test]
fn the_reference_is_that_of_the_code() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    let page = fs::read_to_string(path).expect("the page");
    let (before, rest) = page.split_once(BEGIN).expect("where keys begin");
    let (written, after) = rest.split_once(END).expect("where keys end");
    let reference = format!("\n{}\n", reference());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(path, format!("{before}{BEGIN}{reference}{END}{after}")).expect("to write it");
        return;
    }
    assert!(
        written == reference,
        "docs/configuration.md is not what the code says: run UPDATE_DOCS=1 cargo test -p surus reference"
    );
}

/// The examples of documents are tables that a surus.toml may have, or keys of one of them.
#[test]
fn examples_in_documents_are_configurations() {
    use super::super::tables::File;
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
    let mut examples = 0;
    for folder in [docs.to_owned(), format!("{docs}/internals")] {
        for entry in fs::read_dir(folder).expect("the documents") {
            let path = entry.expect("an entry").path();
            if path.extension().is_none_or(|ending| ending != "md") {
                continue;
            }
            let text = fs::read_to_string(&path).expect("a document");
            for rest in text.split("```toml\n").skip(1) {
                let example: String = rest.lines().take_while(|line| line.trim() != "```").fold(
                    String::new(),
                    |mut all, line| {
                        let _ = writeln!(all, "{}", line.trim());
                        all
                    },
                );
                let is_valid = ["", "[server]\n", "[app.it]\n"]
                    .iter()
                    .any(|table| toml::from_str::<File>(&format!("{table}{example}")).is_ok());
                assert!(is_valid, "{}:\n{example}", path.display());
                examples += 1;
            }
        }
    }
    assert!(examples > 3, "{examples}");
}
