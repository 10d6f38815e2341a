//! A server's status for people.

use std::fmt::Write;

use serde_json::Value;

/// A headline and a line for each worker.
pub(crate) fn status(status: &Value) -> String {
    let mut text = String::new();
    let string = |key: &str| status[key].as_str().unwrap_or_default();
    let _ = writeln!(
        text,
        "surus {} (pid {}), up {}, {} {}",
        string("version"),
        status["pid"],
        duration(status["uptime_s"].as_f64()),
        string("mode"),
        string("path"),
    );
    let listen: Vec<&str> = status["listen"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let _ = writeln!(text, "on {}", listen.join(", "));
    let reloads = &status["reloads"];
    let _ = write!(
        text,
        "{} reloads, {} failed",
        reloads["done"], reloads["failed"]
    );
    match reloads["last"]["error"].as_str() {
        Some(error) => _ = writeln!(text, "; the last one: {error}"),
        None => text.push('\n'),
    }
    text.push('\n');
    let mut rows = vec![COLUMNS.map(|(name, _)| name.to_owned())];
    for worker in status["workers"].as_array().into_iter().flatten() {
        rows.push(COLUMNS.map(|(_, cell)| cell(worker)));
    }
    for row in &rows {
        for (column, cell) in row.iter().enumerate() {
            let width = rows.iter().map(|row| row[column].chars().count()).max();
            let width = width.unwrap_or(0);
            let _ = match column {
                0 | 2 => write!(text, "{cell:<width$}  "),
                _ => write!(text, "{cell:>width$}  "),
            };
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

type Cell = fn(&Value) -> String;

const COLUMNS: [(&str, Cell); 9] = [
    ("worker", |worker| plain(&worker["worker"])),
    ("pid", |worker| plain(&worker["pid"])),
    ("state", |worker| plain(&worker["state"])),
    ("up", |worker| duration(worker["uptime_s"].as_f64())),
    ("in flight", |worker| plain(&worker["in_flight"])),
    ("rss", |worker| bytes(&worker["rss_bytes"])),
    ("php", |worker| bytes(&worker["php_memory_bytes"])),
    ("restarts", |worker| plain(&worker["restarts"])),
    ("last", |worker| plain(&worker["last_restart"])),
];

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

pub(crate) fn bytes(value: &Value) -> String {
    match value.as_u64() {
        Some(bytes) => format!("{:.1} MB", bytes as f64 / 1e6),
        None => "-".to_owned(),
    }
}

pub(crate) fn duration(seconds: Option<f64>) -> String {
    let Some(seconds) = seconds else {
        return "-".to_owned();
    };
    let whole = seconds as u64;
    match whole {
        0..=59 => format!("{seconds:.0}s"),
        60..=3599 => format!("{}m{:02}s", whole / 60, whole % 60),
        3600..=86399 => format!("{}h{:02}m", whole / 3600, whole / 60 % 60),
        _ => format!("{}d{:02}h", whole / 86400, whole / 3600 % 24),
    }
}
