//! Formats a server's status for people.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use serde_json::Value;

/// Places that block the event loop which are listed.
const BLOCKING_CALLS: usize = 5;

/// A headline, a line for each worker, and the places that block their event loops.
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
    let lost = &status["log_lines_dropped"];
    let lost = lost["error"].as_u64().unwrap_or(0) + lost["access"].as_u64().unwrap_or(0);
    if lost > 0 {
        let _ = writeln!(text, "{lost} lines of logs were dropped");
    }
    shared_memory(&mut text, &status["shared_memory"]);
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
    jobs(&mut text, status);
    timers(&mut text, status);
    pools(&mut text, status);
    blocking_calls(&mut text, status);
    text
}

/// If the application uses it.
fn shared_memory(text: &mut String, shared: &Value) {
    let number = |key: &str| shared[key].as_u64().unwrap_or(0);
    if number("entries") == 0 {
        return;
    }
    let megabytes = |key| number(key) as f64 / f64::from(1 << 20);
    let _ = writeln!(
        text,
        "shared memory: {} values, {:.1} of {:.0} MB, {} hits, {} misses, {} evictions",
        number("entries"),
        megabytes("used_bytes"),
        megabytes("bytes"),
        number("hits"),
        number("misses"),
        number("evictions")
    );
}

/// Of queues, if there are any.
fn jobs(text: &mut String, status: &Value) {
    let count = |key: &str| status["jobs"][key].as_u64().unwrap_or(0);
    let keys = ["waiting", "delayed", "running", "failed", "done"];
    if keys.iter().any(|key| count(key) > 0) {
        let counts: Vec<String> = keys.map(|key| format!("{} {key}", count(key))).to_vec();
        let _ = writeln!(text, "\njobs: {}", counts.join(", "));
    }
    for queue in status["queues"].as_array().into_iter().flatten() {
        let name = queue["queue"].as_str().unwrap_or_default();
        let counts = keys.map(|key| format!("{} {key}", queue[key].as_u64().unwrap_or(0)));
        let _ = writeln!(text, "queue {name}: {}", counts.join(", "));
    }
    for process in status["processes"].as_array().into_iter().flatten() {
        let name = process["process"].as_str().unwrap_or_default();
        if name != "queue" || process["restarts"] != 0 {
            let state = process["state"].as_str().unwrap_or_default();
            let last = process["last_restart"].as_str();
            let last = last.map_or_else(String::new, |why| format!(", the last one {why}"));
            let restarts = &process["restarts"];
            let _ = writeln!(text, "process {name}: {state}, {restarts} restarts{last}");
        }
    }
}

/// Those of the application: one worker runs them.
fn timers(text: &mut String, status: &Value) {
    let workers = status["workers"].as_array().into_iter().flatten();
    let timers = workers.filter_map(|worker| worker["timers"].as_array());
    let timers: Vec<_> = timers.flatten().collect();
    if timers.is_empty() {
        return;
    }
    text.push_str("\ntimers:\n");
    for timer in timers {
        let next = match (timer["running"].as_bool(), timer["next_s"].as_f64()) {
            (Some(true), _) => "runs now".to_owned(),
            (_, Some(next)) => format!("in {next:.1} s"),
            (_, None) => "has run".to_owned(),
        };
        let _ = writeln!(
            text,
            "{next:>14}  {:>7} runs  {}",
            timer["runs"].as_u64().unwrap_or(0),
            timer["timer"].as_str().unwrap_or_default(),
        );
    }
}

/// Of connections, by address; those of all workers together.
fn pools(text: &mut String, status: &Value) {
    let workers = status["workers"].as_array().into_iter().flatten();
    let pools = workers.filter_map(|worker| worker["pools"].as_array());
    const KEYS: [&str; 7] = [
        "open", "in_use", "idle", "waiting", "resets", "dropped", "closed",
    ];
    let mut found = BTreeMap::<(&str, &str), [u64; 7]>::new();
    for pool in pools.flatten() {
        let name = |key: &str| pool[key].as_str().unwrap_or_default();
        let counts = found.entry((name("address"), name("kind"))).or_default();
        for (count, key) in counts.iter_mut().zip(KEYS) {
            *count += pool[key].as_u64().unwrap_or(0);
        }
    }
    if found.is_empty() {
        return;
    }
    text.push_str("\npools of connections, of all workers:\n");
    for ((address, kind), counts) in found {
        let [open, in_use, idle, waiting, resets, dropped, closed] = counts;
        let _ = writeln!(
            text,
            "{kind} {address}: {open} open ({in_use} in use, {idle} idle), {waiting} waiting; \
             {resets} resets, {dropped} dropped, {closed} closed unused or old",
        );
    }
}

/// Those of all workers that took most time.
fn blocking_calls(text: &mut String, status: &Value) {
    let workers = status["workers"].as_array().into_iter().flatten();
    let calls = workers.filter_map(|worker| worker["blocking_calls"].as_array());
    let mut places = BTreeMap::<&str, (u64, f64, f64, &Value)>::new();
    for call in calls.flatten() {
        let seconds = |key: &str| call[key].as_f64().unwrap_or(0.0);
        let place = call["place"].as_str().unwrap_or_default();
        let (count, total, longest, last) = places.entry(place).or_insert((0, 0.0, 0.0, call));
        *count += call["count"].as_u64().unwrap_or(0);
        *total += seconds("total_s");
        if seconds("longest_s") >= *longest {
            (*longest, *last) = (seconds("longest_s"), call);
        }
    }
    if places.is_empty() {
        return;
    }
    let mut places: Vec<_> = places.into_iter().collect();
    places.sort_by(|(_, (_, a, ..)), (_, (_, b, ..))| b.total_cmp(a));
    text.push_str("\ncalls that blocked an event loop (docs/debugging.md):\n");
    for (place, (count, total, longest, last)) in places.into_iter().take(BLOCKING_CALLS) {
        let string = |key: &str| last[key].as_str().unwrap_or_default();
        let (total, longest) = (total * 1e3, longest * 1e3);
        let _ = writeln!(
            text,
            "{count:>7}×  {total:>8.0} ms, longest {longest:>6.0} ms  {place}, {}  {}",
            string("call"),
            string("request"),
        );
    }
}

type Cell = fn(&Value) -> String;

/// As [`status`], with the requests per second since an earlier one, and the requests in flight.
pub(crate) fn top(now: &Value, before: Option<(&Value, Duration)>) -> String {
    let mut text = status(now);
    if let Some((before, time)) = before {
        let rate = total(now).saturating_sub(total(before)) as f64 / time.as_secs_f64();
        let _ = write!(text, "\n{rate:.0} requests/s");
        let done = |status: &Value| status["jobs"]["done"].as_u64().unwrap_or(0);
        let jobs = done(now).saturating_sub(done(before)) as f64 / time.as_secs_f64();
        match done(now) {
            0 => text.push('\n'),
            _ => _ = writeln!(text, ", {jobs:.0} jobs/s"),
        }
    }
    for worker in now["workers"].as_array().into_iter().flatten() {
        for request in worker["requests_in_flight"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let string = |key: &str| request[key].as_str().unwrap_or_default();
            let _ = writeln!(
                text,
                "{:>8}  {} {}  {}",
                format!("{:.1}s", request["age_s"].as_f64().unwrap_or(0.0)),
                string("method"),
                string("uri"),
                string("waits_for"),
            );
        }
    }
    text
}

/// Requests since the server was started. Processes of one seat share its counter.
fn total(status: &Value) -> u64 {
    let mut seats = BTreeMap::new();
    for worker in status["workers"].as_array().into_iter().flatten() {
        let requests = worker["requests_total"].as_u64().unwrap_or(0);
        seats.insert(worker["worker"].as_u64(), requests);
    }
    seats.values().sum()
}

fn latency(worker: &Value, key: &str) -> String {
    match worker["latency_us"][key].as_u64() {
        Some(micros) => format!("{:.1} ms", micros as f64 / 1e3),
        None => "-".to_owned(),
    }
}

const COLUMNS: [(&str, Cell); 13] = [
    ("worker", |worker| plain(&worker["worker"])),
    ("pid", |worker| plain(&worker["pid"])),
    ("state", |worker| plain(&worker["state"])),
    ("up", |worker| duration(worker["uptime_s"].as_f64())),
    ("requests", |worker| plain(&worker["requests_total"])),
    ("in flight", |worker| plain(&worker["in_flight"])),
    ("parked", |worker| plain(&worker["parked"])),
    ("p50", |worker| latency(worker, "p50")),
    ("p99", |worker| latency(worker, "p99")),
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
