//! The format of the server's own lines.

use std::fmt::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::clock;

/// Lines for people, or for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Plain text.
    Text,
    /// A JSON object: `time`, `level`, `target`, `message`.
    Json,
}

static JSON: AtomicBool = AtomicBool::new(false);

/// Sets the format of the lines of the error log.
pub fn set_format(format: Format) {
    JSON.store(format == Format::Json, Relaxed);
}

/// Formats a line of the server. The time is only for files: on a terminal it would be distracting, and service
/// managers add it themselves.
pub(crate) fn own(message: &fmt::Arguments<'_>, is_file: bool) -> String {
    if JSON.load(Relaxed) {
        return object(message);
    }
    let mut line = String::new();
    if is_file {
        let _ = write!(line, "{}  ", clock::now());
    }
    let _ = writeln!(line, "surus: {message}");
    line
}

pub(crate) fn announced(message: &fmt::Arguments<'_>, format: Format) -> String {
    match format {
        Format::Text => format!("{message}\n"),
        Format::Json => object(message),
    }
}

fn object(message: &fmt::Arguments<'_>) -> String {
    let mut line = format!(
        "{{\"time\":\"{}\",\"level\":\"info\",\"target\":\"surus\",\"message\":",
        clock::now()
    );
    quote(&mut line, message.to_string().as_bytes());
    line.push_str("}\n");
    line
}

/// Adds a JSON string. Bytes that are not UTF-8 are read as Latin-1, so that nothing is lost. Control characters are
/// escaped, so that none can end the line or control a terminal.
pub fn quote(line: &mut String, bytes: &[u8]) {
    line.push('"');
    match std::str::from_utf8(bytes) {
        Ok(text) => text.chars().for_each(|each| add(line, each)),
        Err(_) => bytes.iter().for_each(|&byte| add(line, char::from(byte))),
    }
    line.push('"');
}

fn add(line: &mut String, each: char) {
    match each {
        '"' => line.push_str("\\\""),
        '\\' => line.push_str("\\\\"),
        each if each.is_control() || matches!(each, '\u{2028}' | '\u{2029}') => {
            let _ = write!(line, "\\u{:04x}", u32::from(each));
        }
        each => line.push(each),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_ends_a_line_but_its_end() {
        let mut line = String::new();
        quote(&mut line, b"a\"\\\r\n\x1b[2J\x7f");
        assert_eq!(line, r#""a\"\\\u000d\u000a\u001b[2J\u007f""#);
        line.clear();
        quote(&mut line, "\u{9b}\u{2028}é".as_bytes());
        assert_eq!(line, "\"\\u009b\\u2028é\"");
        line.clear();
        quote(&mut line, b"\xff\x9b");
        assert_eq!(line, "\"ÿ\\u009b\"");
    }
}
