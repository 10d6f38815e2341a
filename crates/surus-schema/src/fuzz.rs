//! Parsers of this crate for the fuzzer (`fuzz/`) and its replay in the tests: no input causes a panic, and the
//! assertions hold for every input.

use bytes::Bytes;
use serde_json::Value;

use crate::description::Format;
use crate::input::{Input, Kind};
use crate::media::{Accepts, Media};
use crate::messages::Messages;
use crate::schema::Class;
use crate::tree::{Tree, FILE_CELLS};
use crate::{form, formats, json, multipart, openapi, problem, Schema};

/// A depth that an application may allow.
const DEPTH: usize = 64;

/// A class of every kind of rule: strings, numbers, enums, lists, maps, objects, unions, dates.
const DESCRIPTION: &str = include_str!("../../../fuzz/seeds/description/everything.json");

thread_local! {
    static SCHEMA: Schema = Schema::compile(DESCRIPTION).expect("the description");
}

/// Our parser accepts the same JSON as another parser, where both have the same bounds.
pub fn json(data: &[u8]) {
    let mut tree = Tree::default();
    let ours = json::parse(data, DEPTH, &mut tree).is_ok();
    let theirs = serde_json::from_slice::<Value>(data);
    match theirs {
        Ok(value) if depth(&value) < DEPTH => assert!(ours, "it is JSON"),
        Ok(_) => {}
        // That parser rejects numbers out of the range of f64.
        Err(error) => assert!(
            !ours || error.to_string().contains("out of range"),
            "{error}"
        ),
    }
    if ours {
        walk_tree(&tree, data, 0);
    }
}

fn depth(value: &Value) -> usize {
    let deepest = match value {
        Value::Array(all) => all.iter().map(depth).max(),
        Value::Object(members) => members.values().map(depth).max(),
        _ => return 0,
    };
    1 + deepest.unwrap_or(0)
}

/// Checks that every container ends at its `bits`; returns the index after the value at `at`.
fn walk_tree(tree: &Tree, body: &[u8], at: usize) -> usize {
    let cell = &tree.cells[at];
    let mut next = at + 1;
    match cell.kind {
        Kind::List | Kind::Many => {
            for _ in 0..cell.len {
                next = walk_tree(tree, body, next);
            }
        }
        Kind::Map => {
            for _ in 0..cell.len {
                assert_eq!(tree.cells[next].kind, Kind::String);
                next = walk_tree(tree, body, next);
                next = walk_tree(tree, body, next);
            }
        }
        Kind::String | Kind::Text => {
            assert_eq!(tree.text(body, cell).len(), cell.len as usize);
        }
        Kind::File => {
            let start = usize::try_from(cell.bits).expect("an offset");
            assert!(start + cell.len as usize <= body.len());
            // Its name and its type.
            for _ in 1..FILE_CELLS {
                assert_eq!(tree.cells[next].kind, Kind::String);
                next = walk_tree(tree, body, next);
            }
        }
        _ => {}
    }
    assert_eq!(next, tree.after(at));
    next
}

/// A form stays within its bounds.
pub fn form(data: &[u8]) {
    let mut tree = Tree::default();
    if form::parse(data, DEPTH, &mut tree).is_ok() {
        assert_eq!(walk_tree(&tree, data, 0), tree.cells.len());
    }
}

/// The first line is the boundary.
pub fn multipart(data: &[u8]) {
    let Some(end) = data.iter().position(|&byte| byte == b'\n') else {
        return;
    };
    let (boundary, body) = (&data[..end], &data[end + 1..]);
    let content_type = format!(
        "multipart/form-data; boundary=\"{}\"",
        String::from_utf8_lossy(boundary)
    );
    let accepts = Accepts {
        json: true,
        form: true,
    };
    let Some(Media::Multipart { boundary }) = accepts.media(Some(&content_type)) else {
        return;
    };
    let mut tree = Tree::default();
    if multipart::parse(body, &boundary, DEPTH, &mut tree).is_ok() {
        assert_eq!(walk_tree(&tree, body, 0), tree.cells.len());
    }
}

/// The first byte selects the format. Valid input conforms to the schema, and errors can be written.
pub fn validate(data: &[u8]) {
    let Some((&choice, body)) = data.split_first() else {
        return;
    };
    let media = match choice {
        b'f' => Media::Form,
        b'm' => Media::Multipart {
            boundary: "b".to_owned(),
        },
        _ => Media::Json,
    };
    SCHEMA.with(
        |schema| match schema.read(&media, Bytes::copy_from_slice(body)) {
            Ok(input) => {
                assert_eq!(walk_input(schema, &input, 0), input.cells().len());
            }
            Err(rejected) => {
                let messages = Messages::default();
                let (status, text) = problem::answer(&[(rejected, "body")], &messages, Some("en"));
                assert!((400..500).contains(&status));
                assert!(serde_json::from_str::<Value>(&text).is_ok(), "{text}");
            }
        },
    );
}

/// Reads input like the code that builds objects; returns the index after the value at `at`.
fn walk_input(schema: &Schema, input: &Input, at: usize) -> usize {
    let cell = &input.cells()[at];
    let class = || &schema.classes[usize::from(cell.class)];
    let text = |at: usize| assert_eq!(input.cells()[at].kind, Kind::String);
    let mut next = at + 1;
    match cell.kind {
        Kind::String | Kind::Parsed => assert_eq!(input.text(cell).len(), cell.len as usize),
        Kind::List => {
            for _ in 0..cell.len {
                next = walk_input(schema, input, next);
            }
        }
        Kind::Map => {
            for _ in 0..cell.len {
                text(next);
                next = walk_input(schema, input, walk_input(schema, input, next));
            }
        }
        Kind::Object => {
            assert!(
                matches!(class(), Class::Object { fields, .. } if fields.len() == cell.len as usize)
            );
            for _ in 0..cell.len {
                next = walk_input(schema, input, next);
            }
        }
        Kind::Enum => assert!(matches!(class(), Class::Enum(_))),
        Kind::File => {
            assert!(matches!(class(), Class::File));
            for _ in 1..FILE_CELLS {
                text(next);
                next = walk_input(schema, input, next);
            }
        }
        Kind::Text | Kind::Many => panic!("{:?} is for parsing only", cell.kind),
        Kind::Null | Kind::False | Kind::True | Kind::Integer | Kind::Number | Kind::Default => {}
    }
    next
}

/// Descriptions come from PHP, but their contents from classes of an application.
pub fn description(data: &[u8]) {
    let Some(text) = text(data) else { return };
    if let Ok(schema) = Schema::compile(text) {
        for body in ["{}", "[]", "null", "{\"a\":1}"] {
            let _ = schema.read(&Media::Json, Bytes::from_static(body.as_bytes()));
        }
        let _ = schema.read_query("a=1&b[]=2");
    }
    let _ = openapi::build(text);
}

/// `Content-Type`, `Accept-Language` and texts of messages, one per line.
pub fn media(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let mut lines = text.split('\n');
    for (json, form) in [(true, false), (false, true), (true, true)] {
        let media = Accepts { json, form }.media(lines.clone().next());
        if let Some(Media::Multipart { boundary }) = &media {
            assert!(!boundary.is_empty() && boundary.len() <= 70 && form);
        }
        assert!(json || media != Some(Media::Json));
    }
    let mut messages = Messages::default();
    let accept = lines.nth(1);
    let _ = messages.add(&lines.collect::<Vec<_>>().join("\n"));
    let _ = messages.language(accept);
}

/// Formats are checked without a panic.
pub fn formats(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let schemes = ["https".to_owned()];
    for format in [
        Format::Email,
        Format::Uuid,
        Format::Uri,
        Format::Date,
        Format::DateTime,
        Format::Time,
    ] {
        formats::is(format, text, &[]);
        formats::is(format, text, &schemes);
    }
}

fn text(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok()
}

#[cfg(test)]
mod tests {
    use surus_replay::replay;

    #[test]
    fn seeds_and_mutations() {
        replay("json", super::json);
        replay("form", super::form);
        replay("multipart", super::multipart);
        replay("validate", super::validate);
        replay("description", super::description);
        replay("media", super::media);
        replay("formats", super::formats);
    }
}
