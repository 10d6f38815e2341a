//! Prints the configuration: a surus.toml with every key, in which each line names the source of its value.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;
use toml::{Table, Value};

use super::layers::Layer;
use super::nearest::{holds_secret, is_secret};
use super::tables::{App, Channel, IniValue, Isolates, Keys, Process, Pusher, Server};

/// Shorter lines are padded to this column before the comment.
const COMMENT: usize = 40;

#[derive(Clone, Debug)]
pub(super) struct Printed {
    pub(super) server: Server,
    pub(super) name: String,
    pub(super) app: App,
    pub(super) php: BTreeMap<String, IniValue>,
    pub(super) env: BTreeMap<String, IniValue>,
    pub(super) processes: BTreeMap<String, Process>,
    pub(super) channels: BTreeMap<String, Channel>,
    pub(super) pushers: BTreeMap<String, Pusher>,
    pub(super) sources: Sources,
}

/// The source of each key's value, by the tables of a configuration.
#[derive(Clone, Debug, Default)]
pub(super) struct Sources {
    server: BTreeMap<String, String>,
    app: BTreeMap<String, String>,
    isolates: BTreeMap<String, String>,
    php: BTreeMap<String, String>,
    env: BTreeMap<String, String>,
}

impl Sources {
    pub(super) fn of(layers: &[Layer]) -> Self {
        let mut sources = Sources::default();
        let note = |into: &mut BTreeMap<String, String>, table: Table, name: &str| {
            for key in table.into_iter().map(|(key, _)| key) {
                into.entry(key).or_insert_with(|| name.to_owned());
            }
        };
        for layer in layers {
            note(&mut sources.server, table(&layer.server), &layer.name);
            note(&mut sources.app, table(&layer.app), &layer.name);
            note(
                &mut sources.isolates,
                table(&layer.app.isolates),
                &layer.name,
            );
            note(&mut sources.php, table(&layer.php), &layer.name);
            note(&mut sources.env, table(&layer.env), &layer.name);
        }
        sources
    }

    /// Sets the source of a key of the application, whatever the layers say.
    pub(super) fn set_app(&mut self, key: &str, name: &str) {
        self.app.insert(key.to_owned(), name.to_owned());
    }

    /// The same, if no layer has the key.
    pub(super) fn default_app(&mut self, key: &str, name: &str) {
        self.app
            .entry(key.to_owned())
            .or_insert_with(|| name.to_owned());
    }

    /// The same for a key of the server.
    pub(super) fn default_server(&mut self, key: &str, name: &str) {
        self.server
            .entry(key.to_owned())
            .or_insert_with(|| name.to_owned());
    }

    pub(super) fn default_php(&mut self, key: &str, name: &str) {
        self.php
            .entry(key.to_owned())
            .or_insert_with(|| name.to_owned());
    }

    pub(super) fn has_php(&self, key: &str) -> bool {
        self.php.contains_key(key)
    }
}

/// Converts values to a table; empty if there are none.
fn table(values: &impl Serialize) -> Table {
    Table::try_from(values).unwrap_or_default()
}

impl Printed {
    pub(super) fn to_toml(&self) -> String {
        let mut text = String::new();
        let (sources, mut app) = (&self.sources, table(&self.app));
        for (_, value) in &mut app {
            if value.as_str().is_some_and(holds_secret) {
                *value = Value::String("(not shown)".to_owned());
            }
        }
        text.push_str("[server]\n");
        let server = without_secrets(table(&self.server));
        lines(&mut text, Server::KEYS, &server, &sources.server);
        // The name is quoted if necessary.
        let name = Table::from_iter([(self.name.clone(), Value::Table(Table::new()))]);
        let header = Table::from_iter([("app".to_owned(), Value::Table(name))]);
        let header = toml::to_string(&header).unwrap_or_default();
        let header = header.trim().trim_end_matches(']');
        let _ = writeln!(text, "\n{header}]");
        let keys: Vec<&str> = App::KEYS
            .iter()
            .copied()
            .filter(|key| *key != "isolates")
            .collect();
        lines(&mut text, &keys, &app, &sources.app);
        if let Some(Value::Table(isolates)) = app.get("isolates") {
            let _ = writeln!(text, "\n{header}.isolates]");
            lines(&mut text, Isolates::KEYS, isolates, &sources.isolates);
        }
        for (name, values, sources) in [
            ("php", &self.php, &sources.php),
            ("env", &self.env, &sources.env),
        ] {
            if values.is_empty() {
                continue;
            }
            let _ = writeln!(text, "\n[{name}]");
            let mut shown = table(values);
            for (name, value) in &mut shown {
                // Printed values end up in logs and bug reports.
                let text = value.as_str().unwrap_or_default();
                if is_secret(name) || holds_secret(text) {
                    *value = Value::String("(not shown)".to_owned());
                }
            }
            let names: Vec<&str> = values.keys().map(String::as_str).collect();
            lines(&mut text, &names, &shown, sources);
        }
        for (name, process) in &self.processes {
            let _ = writeln!(text, "\n[process.{name}]");
            lines(&mut text, Process::KEYS, &table(process), &BTreeMap::new());
        }
        for (pattern, channel) in &self.channels {
            let _ = writeln!(text, "\n[channel.{}]", Value::String(pattern.clone()));
            lines(&mut text, Channel::KEYS, &table(channel), &BTreeMap::new());
        }
        for (name, pusher) in &self.pushers {
            let _ = writeln!(text, "\n[pusher.{name}]");
            let shown = without_secrets(table(pusher));
            lines(&mut text, Pusher::KEYS, &shown, &BTreeMap::new());
        }
        text
    }
}

fn without_secrets(mut values: Table) -> Table {
    for (name, value) in &mut values {
        if is_secret(name) {
            *value = Value::String("(not shown)".to_owned());
        }
    }
    values
}

fn lines(text: &mut String, keys: &[&str], values: &Table, sources: &BTreeMap<String, String>) {
    for key in keys {
        let Some(value) = values.get(*key) else {
            let _ = writeln!(text, "{:<COMMENT$} # not set", format!("# {key} ="));
            continue;
        };
        let line = Table::from_iter([((*key).to_owned(), value.clone())]);
        // Strings, numbers, booleans and lists of them always serialise.
        let line = toml::to_string(&line).unwrap_or_default();
        let source = sources.get(*key).map_or("default", String::as_str);
        let source = source.replace(char::is_control, " ");
        let _ = writeln!(text, "{:<COMMENT$} # {source}", line.trim_end());
    }
}
