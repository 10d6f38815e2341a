//! Collects all errors of a configuration, and not only the first one, so that they can be fixed at once.

use std::fmt;
use std::time::Duration;

use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue};
use toml::Spanned;

use super::nearest::suggest;
use super::places::Places;

/// At most this number of errors of one file is reported.
const MOST: usize = 20;

/// One error or several, each with a line or an excerpt.
#[derive(Debug)]
pub(crate) struct ConfigError(Vec<String>);

impl ConfigError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        ConfigError(vec![message.into()])
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\nsurus: "))
    }
}

/// The errors so far.
#[derive(Debug, Default)]
pub(super) struct Wrong {
    told: Vec<String>,
    places: Places,
}

impl Wrong {
    /// From here on, errors about a key name the place of its value.
    pub(super) fn with(places: Places) -> Self {
        Wrong {
            places,
            ..Wrong::default()
        }
    }

    /// The value, or `None`; then the error is stored.
    pub(super) fn take<T>(&mut self, result: Result<T, ConfigError>) -> Option<T> {
        result.map_err(|error| self.told.extend(error.0)).ok()
    }

    /// The same for the value of `key`.
    pub(super) fn take_of<T>(&mut self, key: &str, result: Result<T, ConfigError>) -> Option<T> {
        let keep = |error: ConfigError| error.0.iter().for_each(|each| self.note(key, each));
        result.map_err(keep).ok()
    }

    /// Adds an error about a key such as `server.listen`.
    pub(super) fn note(&mut self, key: &str, message: impl AsRef<str>) {
        let message = self.places.say(key, message.as_ref());
        self.told.push(message);
    }

    /// Checks times that must not be zero.
    pub(super) fn positive(&mut self, times: &[(&str, Duration)]) {
        for (key, _) in times.iter().filter(|(_, time)| time.is_zero()) {
            let short = key.split_once('.').map_or(*key, |(_, short)| short);
            self.note(
                key,
                format!("{short} must be more than 0: it cannot be switched off"),
            );
        }
    }

    /// # Errors
    /// If there were any.
    pub(super) fn end(self) -> Result<(), ConfigError> {
        if self.told.is_empty() {
            Ok(())
        } else {
            Err(ConfigError(self.told))
        }
    }
}

/// Parses a file. Wrong entries are removed one by one, so that the rest is checked, too.
///
/// # Errors
/// All of its errors, or a syntax error.
pub(super) fn parse<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, ConfigError> {
    let mut left = text.to_owned();
    let mut wrong = Vec::new();
    loop {
        let error = match toml::from_str(&left) {
            Ok(parsed) if wrong.is_empty() => return Ok(parsed),
            Ok(_) => return Err(in_order(wrong)),
            Err(error) => error,
        };
        let shown = with_lines_of(text, &error.to_string());
        let at = error.span().map(|span| span.start);
        wrong.push((at, format!("{name}: {}", suggest(shown.trim_end()))));
        match at.and_then(|at| without(&left, at)) {
            Some(rest) if wrong.len() < MOST => left = rest,
            _ => return Err(in_order(wrong)),
        }
    }
}

/// Sorts errors by their position in the file.
fn in_order(mut wrong: Vec<(Option<usize>, String)>) -> ConfigError {
    wrong.sort_by_key(|(at, _)| *at);
    ConfigError(wrong.into_iter().map(|(_, message)| message).collect())
}

/// Restores the original lines in an error, which shows the line that it is in.
fn with_lines_of(text: &str, error: &str) -> String {
    let lines = error.lines().map(|line| {
        let number = line.split_once(" | ").map(|(number, _)| number);
        let number: Option<usize> = number.and_then(|number| number.trim().parse().ok());
        match number.and_then(|number| text.lines().nth(number - 1).map(|it| (number, it))) {
            Some((number, line)) => format!("{number} | {line}"),
            None => line.to_owned(),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The text with spaces in place of the entry whose key or value is `at` this byte. `None`: there is no such entry, or
/// the rest would not be valid TOML.
fn without(text: &str, at: usize) -> Option<String> {
    let table = DeTable::parse(text).ok()?;
    let (begin, end) = entry(text, table.get_ref(), at)?;
    let blank: String = text[begin..end]
        .chars()
        .map(|each| if each == '\n' { '\n' } else { ' ' })
        .collect();
    let rest = format!("{}{blank}{}", &text[..begin], &text[end..]);
    DeTable::parse(&rest).is_ok().then_some(rest)
}

/// The begin and end of the innermost entry that contains this byte.
fn entry(text: &str, table: &DeTable<'_>, at: usize) -> Option<(usize, usize)> {
    for (key, value) in table {
        let tables: Vec<&DeTable<'_>> = match value.get_ref() {
            DeValue::Table(inner) => vec![inner],
            DeValue::Array(items) => {
                let tables = items.iter().filter_map(|item| item.get_ref().as_table());
                tables.collect()
            }
            _ => Vec::new(),
        };
        let inner = tables.iter().find_map(|inner| entry(text, inner, at));
        if inner.is_some() {
            return inner;
        }
        if key.span().contains(&at) || value.span().contains(&at) {
            return Some(bounds(text, key.span().start, value));
        }
    }
    None
}

fn bounds(text: &str, key: usize, value: &Spanned<DeValue<'_>>) -> (usize, usize) {
    let line = text[..key].rfind('\n').map_or(0, |at| at + 1);
    let before = text[line..key].trim_start();
    if before.starts_with('[') {
        // A table with a header: up to the next one.
        let next = text[key..].find("\n[").map(|length| key + length + 1);
        return (line, next.unwrap_or(text.len()));
    }
    let end = value.span().end;
    if !before.contains('{') {
        return (line, end);
    }
    // In braces: remove a comma, too.
    let behind = text[end..].trim_start();
    if behind.starts_with(',') {
        return (key, text.len() - behind.len() + 1);
    }
    let begin = text[..key].trim_end();
    let begin = begin.strip_suffix(',').map_or(key, str::len);
    (begin, end)
}

#[cfg(test)]
mod tests {
    use super::super::tables::File;
    use super::*;

    #[test]
    fn all_errors_of_a_file_are_told() {
        let text = "[server]\nlistn = \"1\"\nworkers = 3\ndrain_timeout = \"5 parsecs\"\n\n\
            [app.a]\nisolates = { mx = 3, max = 4, mn = 1 }\nscrpt = 1 # not this\nmode = \"fast\"\n\
            [phpp]\nx = 1\n[app.a.isolates2]\ny = 2\n";
        let error = parse::<File>("surus.toml", text).unwrap_err().to_string();
        for part in [
            "surus.toml: TOML parse error at line 2",
            "2 | listn = \"1\"",
            "unknown field `listn`; is `listen` meant?",
            "at line 4",
            "at line 7",
            "7 | isolates = { mx = 3, max = 4, mn = 1 }",
            "unknown field `mx`; is `ma",
            "unknown field `mn`",
            "unknown field `scrpt`; is `script` meant?",
            "9 | mode = \"fast\"",
            "unknown field `phpp`; is `php` meant?",
            "unknown field `isolates2`; is `isolates` meant?",
        ] {
            assert!(error.contains(part), "no {part:?} in\n{error}");
        }
        assert_eq!(error.matches("TOML parse error").count(), 8, "{error}");
        assert!(error.find("`listn`") < error.find("`mx`"), "{error}");
        let syntax = parse::<File>("a", "[server\nlistn = 1").unwrap_err();
        assert_eq!(syntax.to_string().matches("TOML parse error").count(), 1);
        let many =
            "x = 1\n".to_owned() + &(0..99).map(|i| format!("x{i} = 1\n")).collect::<String>();
        let many = parse::<File>("a", &many).unwrap_err().to_string();
        assert_eq!(many.matches("TOML parse error").count(), MOST);
    }
}
