//! The format of log lines, which go to the error log (`surus-log`).

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt;
use std::io::IsTerminal;

use serde_json::{Map, Value};
use surus_log::{ErrorLog, Format};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::levels;

/// `SURUS_LOG` filters, by level or by target: `warn`, `php=debug`. Without it everything from `info` up is logged,
/// except errors that clients cause in HTTP/2: every client could fill the log with them. `SURUS_LOG_FORMAT=json` makes
/// each line an object. `is_file`: lines go to a file and not to standard error.
pub(crate) fn start(is_file: bool) {
    let (filter, wrong) = levels::filter(&std::env::var("SURUS_LOG").unwrap_or_default());
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| ErrorLog)
        .with_ansi(!is_file && std::io::stderr().is_terminal());
    surus_log::set_format(format());
    match format() {
        Format::Json => lines.event_format(Json).init(),
        Format::Text => lines.init(),
    }
    for why in wrong {
        surus_log::say!("SURUS_LOG: {why}");
    }
    let asked_for = std::env::var("SURUS_LOG_FORMAT").unwrap_or_default();
    if !matches!(asked_for.as_str(), "" | "text" | "json") {
        tracing::warn!("SURUS_LOG_FORMAT is text or json, not {asked_for:?}");
    }
}

/// The format of lines of the error log.
pub(crate) fn format() -> Format {
    match std::env::var("SURUS_LOG_FORMAT").as_deref() {
        Ok("json") => Format::Json,
        _ => Format::Text,
    }
}

/// Writes panics to the log: standard error may be a pipe that nobody reads.
pub(crate) fn of_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let trace = Backtrace::capture();
        if trace.status() == BacktraceStatus::Captured {
            surus_log::say!("{panic}\n{trace}");
        } else {
            surus_log::say!("{panic}");
        }
    }));
}

/// A line is an object: `time`, `level`, `target`, `message`, and further fields. In lines of the application, `level`
/// is that of PSR-3, and `context` is an object.
struct Json;

impl<S, N> FormatEvent<S, N> for Json
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let level = event.metadata().level().as_str().to_ascii_lowercase();
        let mut line = Map::new();
        line.insert("time".to_owned(), time.into());
        line.insert("level".to_owned(), level.into());
        line.insert("target".to_owned(), event.metadata().target().into());
        event.record(&mut Fields(&mut line));
        writeln!(writer, "{}", Value::Object(line))
    }
}

struct Fields<'a>(&'a mut Map<String, Value>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        let value = match field.name() {
            "context" => serde_json::from_str(&text).unwrap_or(Value::String(text)),
            _ => Value::String(text),
        };
        self.0.insert(field.name().to_owned(), value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}
