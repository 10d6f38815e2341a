//! Development: the response to every request while the code does not boot. A page with the source for browsers, a
//! problem document for programs.

use std::fs;

use bytes::Bytes;
use http::header::{HeaderMap, HeaderValue, ACCEPT, CONTENT_TYPE, VARY};
use http::{Response, StatusCode};
use surus_schema::weighted;

/// Lines of the source that are shown before and after the one with the error.
const AROUND: usize = 6;

const TITLE: &str = "The application does not boot";

const STYLE: &str =
    "body{font:16px/1.5 system-ui,sans-serif;margin:2rem;color:#222;background:#f6f5f3}\
    pre{background:#fff;border:1px solid #ddd;padding:.5rem 1rem;overflow:auto;font-size:14px}\
    pre.error{white-space:pre-wrap}.here{background:#fde8e8}";

pub(crate) fn response(error: &str, headers: &HeaderMap) -> Response<Bytes> {
    let accept: Vec<&str> = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .collect();
    let (kind, text) = match wants_json(&accept.join(",")) {
        true => ("application/problem+json", problem(error)),
        false => ("text/html; charset=utf-8", page(error)),
    };
    let mut response = Response::new(Bytes::from(text));
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    response
}

/// Whether the client prefers JSON: one that accepts anything gets the page; one that names JSON, and does not prefer
/// HTML, gets JSON.
fn wants_json(accept: &str) -> bool {
    let likes = |types: &[&str]| {
        let ranges = weighted(accept).filter_map(|(range, weight)| {
            let place = types.iter().position(|it| range.eq_ignore_ascii_case(it));
            place.map(|place| (std::cmp::Reverse(place), weight))
        });
        // The most specific range decides.
        ranges
            .max()
            .map_or((0, usize::MAX), |(place, weight)| (weight, place.0))
    };
    let problem = likes(&["application/problem+json"]);
    let json = likes(&["application/json", "application/*", "*/*"]).max(problem);
    let html = likes(&["text/html", "text/*", "*/*"]);
    json.0 > html.0 || (json.0 == html.0 && json.0 > 0 && json.1 < html.1)
}

fn problem(error: &str) -> String {
    let status = StatusCode::INTERNAL_SERVER_ERROR;
    let mut document = serde_json::json!({
        "title": status.canonical_reason(),
        "status": status.as_u16(),
        "detail": error,
    });
    if let Some((file, line)) = place(error) {
        document["file"] = file.into();
        document["line"] = line.into();
    }
    document.to_string()
}

/// The page reloads itself, and so notices the fix.
fn page(error: &str) -> String {
    let source = place(error).and_then(|(file, line)| source(file, line));
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"1\">\
         <title>{TITLE}</title><style>{STYLE}</style><h1>{TITLE}</h1><pre class=\"error\">{}</pre>{}\
         <p>This page goes away with the error: the next change is looked at when it is saved.</html>",
        escape(error),
        source.unwrap_or_default()
    )
}

/// The first file of the application that the error names, and the line.
fn place(error: &str) -> Option<(&str, usize)> {
    let mut rest = error;
    while let Some(at) = rest.find(".php") {
        let (before, after) = (&rest[..at + 4], &rest[at + 4..]);
        rest = after;
        let number = after
            .strip_prefix(':')
            .or_else(|| after.strip_prefix(" on line "));
        let digits = number.map(|text| text.split(|c: char| !c.is_ascii_digit()).next());
        let Some(Ok(line)) = digits.flatten().map(str::parse) else {
            continue;
        };
        // A path may contain spaces: use the longest text that is a file.
        let starts = before.match_indices('/').map(|(start, _)| &before[start..]);
        for file in starts {
            if fs::metadata(file).is_ok_and(|it| it.is_file()) {
                return Some((file, line));
            }
        }
    }
    None
}

fn source(file: &str, line: usize) -> Option<String> {
    let text = fs::read(file).ok()?;
    let text = String::from_utf8_lossy(&text);
    let rows = text.lines().enumerate().map(|(at, row)| (at + 1, row));
    let shown: Vec<String> = rows
        .filter(|(number, _)| number.abs_diff(line) <= AROUND)
        .map(|(number, row)| {
            let row = format!("{number:4}  {}", escape(row));
            match number == line {
                true => format!("<span class=\"here\">{row}</span>\n"),
                false => format!("{row}\n"),
            }
        })
        .collect();
    Some(format!(
        "<p>{}:{line}</p><pre>{}</pre>",
        escape(file),
        shown.concat()
    ))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_get_json() {
        for (accept, json) in [
            ("", false),
            ("*/*", false),
            ("application/json", true),
            ("application/problem+json", true),
            ("application/json, text/plain, */*", true),
            ("text/html,application/xhtml+xml,*/*;q=0.8", false),
            ("text/html, application/json;q=0.9", false),
            ("text/html;q=0.5, application/json", true),
            ("application/json;q=0, */*", false),
        ] {
            assert_eq!(wants_json(accept), json, "{accept}");
        }
    }

    #[test]
    fn the_place_is_a_file_that_is_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a b.php");
        fs::write(&file, "<?php\n<broken>\n").expect("a file");
        let file = file.to_str().expect("a path");
        for error in [
            format!("{file}:2: wrong"),
            format!("PHP Uncaught Error: no /x.php:7 in {file}:2\nStack trace"),
            format!("Fatal error: twice() in {file} on line 2"),
        ] {
            assert_eq!(place(&error), Some((file, 2)), "{error}");
            assert!(page(&error).contains("<span class=\"here\">   2  &lt;broken&gt;</span>"));
        }
        assert_eq!(place("surus:App.php:12: nothing"), None);
    }
}
