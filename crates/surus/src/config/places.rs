//! Where the value of each key was set, for error messages.

use std::collections::BTreeMap;

use serde::Serialize;
use toml::de::{DeTable, DeValue};
use toml::Table;

use super::layers::Layer;

/// The line of each key of a file, by names such as `server.listen`, `app.isolates.max` and `php.post_max_size`.
pub(super) type Lines = BTreeMap<String, usize>;

/// The lines of a surus.toml with one application.
pub(super) fn lines(text: &str) -> Lines {
    let mut lines = Lines::new();
    if let Ok(table) = DeTable::parse(text) {
        for (name, value) in table.get_ref() {
            let Some(inner) = value.get_ref().as_table() else {
                continue;
            };
            let name = name.get_ref();
            if name != "app" {
                note(&mut lines, text, name, inner);
                continue;
            }
            for app in inner.values().filter_map(|app| app.get_ref().as_table()) {
                note(&mut lines, text, name, app);
            }
        }
    }
    lines
}

fn note(lines: &mut Lines, text: &str, name: &str, table: &DeTable<'_>) {
    for (key, value) in table {
        let name = format!("{name}.{}", key.get_ref());
        let before = &text[..key.span().start];
        if let DeValue::Table(inner) = value.get_ref() {
            note(lines, text, &name, inner);
        }
        lines.insert(name, before.matches('\n').count() + 1);
    }
}

/// Where each key was set, by the same names.
#[derive(Debug, Default)]
pub(super) struct Places(BTreeMap<String, String>);

impl Places {
    pub(super) fn of(layers: &[Layer]) -> Self {
        let mut places = Places::default();
        for layer in layers {
            places.add(layer, "server", &layer.server);
            places.add(layer, "app", &layer.app);
            places.add(layer, "app.isolates", &layer.app.isolates);
            places.add(layer, "php", &layer.php);
            places.add(layer, "env", &layer.env);
            places.add_named(layer, "process", &layer.process);
            places.add_named(layer, "channel", &layer.channel);
            places.add_named(layer, "pusher", &layer.pusher);
        }
        places
    }

    fn add(&mut self, layer: &Layer, table: &str, values: &impl Serialize) {
        let values = Table::try_from(values).unwrap_or_default();
        for (key, _) in values {
            self.add_key(layer, format!("{table}.{key}"));
        }
    }

    /// Tables by their names: also the place of each, for errors about keys that it lacks.
    fn add_named<T: Serialize>(&mut self, layer: &Layer, of: &str, tables: &BTreeMap<String, T>) {
        for (name, values) in tables {
            let table = format!("{of}.{name}");
            self.add(layer, &table, values);
            self.add_key(layer, table);
        }
    }

    fn add_key(&mut self, layer: &Layer, key: String) {
        let place = match layer.lines.get(&key) {
            Some(line) => format!("{}, line {line}", layer.name),
            None => layer.name.clone(),
        };
        self.0.entry(key).or_insert(place);
    }

    /// Whether this key was set anywhere.
    pub(super) fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// The message, after the place of this key, or else of its table, if it has one.
    pub(super) fn say(&self, key: &str, message: &str) -> String {
        let of_table = || self.0.get(key.rsplit_once('.')?.0);
        match self.0.get(key).or_else(of_table) {
            Some(place) => format!("{place}: {message}"),
            None => message.to_owned(),
        }
    }
}
