//! Forms and query strings: pairs of names and texts, nested by brackets as in PHP.
//!
//! `a[b]=1` is a member of an object, `a[]=1` an element of a list. A name that is sent several times has several
//! values: the schema decides whether they are a list, or the last one counts. The schema also decides the type of a
//! text.

use crate::input::{Cell, Kind};
use crate::tree::{Tree, FILE_CELLS, IN_ARENA, IN_BODY};
use crate::violation::Rejected;

/// The most fields of a form, as PHP's `max_input_vars`: nobody fills in more by hand.
pub(crate) const MAX_FIELDS: usize = 1000;

/// Parses `application/x-www-form-urlencoded` into `tree`, which is empty.
pub(crate) fn parse(text: &[u8], max_depth: usize, tree: &mut Tree) -> Result<(), Rejected> {
    let mut fields = Fields::new(max_depth);
    let mut at = 0;
    for pair in text.split(|&b| b == b'&') {
        let offset = at;
        at += pair.len() + 1;
        if pair.is_empty() {
            continue;
        }
        let equals = pair.iter().position(|&b| b == b'=').unwrap_or(pair.len());
        let name = decode(&pair[..equals]);
        let start = tree.arena.len();
        decode_into(pair.get(equals + 1..).unwrap_or_default(), &mut tree.arena);
        fields.add(&name, start, offset, tree)?;
    }
    fields.finish(tree);
    Ok(())
}

fn decode(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    decode_into(text, &mut out);
    out
}

/// A percent sign without two hexadecimal digits is kept, as in the URL standard.
fn decode_into(text: &[u8], out: &mut Vec<u8>) {
    let hex = |b: Option<&u8>| b.and_then(|&b| (b as char).to_digit(16));
    let mut i = 0;
    while i < text.len() {
        match text[i] {
            b'+' => out.push(b' '),
            b'%' => match (hex(text.get(i + 1)), hex(text.get(i + 2))) {
                (Some(high), Some(low)) => {
                    #[allow(clippy::cast_possible_truncation)]
                    out.push((high * 16 + low) as u8);
                    i += 2;
                }
                _ => out.push(b'%'),
            },
            other => out.push(other),
        }
        i += 1;
    }
}

enum Value {
    Text(Cell),
    File([Cell; FILE_CELLS]),
    Many(Vec<Value>),
    List(Vec<Value>),
    Map(Vec<(String, Value)>),
}

/// The fields so far, nested. Their texts are in the tree's arena.
pub(crate) struct Fields {
    members: Vec<(String, Value)>,
    count: usize,
    max_depth: usize,
}

impl Fields {
    pub(crate) fn new(max_depth: usize) -> Self {
        Fields {
            members: Vec::new(),
            count: 0,
            max_depth,
        }
    }

    /// Adds a field whose text is in the arena from `start` on. `offset` is its place in the input.
    pub(crate) fn add(
        &mut self,
        name: &[u8],
        start: usize,
        offset: usize,
        tree: &Tree,
    ) -> Result<(), Rejected> {
        let text = std::str::from_utf8(&tree.arena[start..]).map_err(|_| Rejected::Malformed {
            offset,
            reason: "invalid UTF-8",
        })?;
        let value = Value::Text(cell(Kind::Text, IN_ARENA, start, text.len()));
        self.insert(name, offset, value)
    }

    /// Adds an uploaded file: `size` bytes from `offset` on in the body.
    pub(crate) fn add_file(
        &mut self,
        name: &str,
        file_name: &str,
        media_type: &str,
        (offset, size): (usize, usize),
        tree: &mut Tree,
    ) -> Result<(), Rejected> {
        let mut text = |text: &str| {
            let start = tree.arena.len();
            tree.arena.extend_from_slice(text.as_bytes());
            cell(Kind::String, IN_ARENA, start, text.len())
        };
        let cells = [
            cell(Kind::File, IN_BODY, offset, size),
            text(file_name),
            text(media_type),
        ];
        self.insert(name.as_bytes(), offset, Value::File(cells))
    }

    fn insert(&mut self, name: &[u8], offset: usize, value: Value) -> Result<(), Rejected> {
        self.count += 1;
        if self.count > MAX_FIELDS {
            return Err(Rejected::TooManyFields);
        }
        let name = std::str::from_utf8(name).map_err(|_| Rejected::Malformed {
            offset,
            reason: "invalid UTF-8",
        })?;
        let path = split_name(name);
        if path.len() > self.max_depth {
            return Err(Rejected::TooDeep { offset });
        }
        insert_member(&mut self.members, path[0], &path[1..], value);
        Ok(())
    }

    pub(crate) fn finish(self, tree: &mut Tree) {
        write_map(self.members, tree);
    }
}

fn cell(kind: Kind, source: u8, start: usize, len: usize) -> Cell {
    Cell {
        kind,
        source,
        class: 0,
        len: u32::try_from(len).unwrap_or(0),
        bits: start as u64,
    }
}

/// `a[b][]` is `["a", "b", ""]`. A malformed name is taken as a plain name.
fn split_name(name: &str) -> Vec<&str> {
    let Some((first, mut rest)) = name.split_once('[').filter(|(first, _)| !first.is_empty())
    else {
        return vec![name];
    };
    let mut path = vec![first];
    loop {
        let Some((segment, after)) = rest.split_once(']') else {
            return vec![name];
        };
        path.push(segment);
        if after.is_empty() {
            return path;
        }
        match after.strip_prefix('[') {
            Some(next) => rest = next,
            None => return vec![name],
        }
    }
}

fn insert_member(members: &mut Vec<(String, Value)>, name: &str, rest: &[&str], value: Value) {
    match members.iter_mut().find(|(each, _)| each == name) {
        Some((_, had)) => insert(had, rest, value),
        None => members.push((name.to_owned(), fresh(rest, value))),
    }
}

fn fresh(path: &[&str], value: Value) -> Value {
    match path.split_first() {
        None => value,
        Some((&"", rest)) => Value::List(vec![fresh(rest, value)]),
        Some((name, rest)) => Value::Map(vec![((*name).to_owned(), fresh(rest, value))]),
    }
}

fn insert(had: &mut Value, path: &[&str], value: Value) {
    match (had, path.split_first()) {
        (Value::Many(all), None) => all.push(value),
        (had @ (Value::Text(_) | Value::File(_)), None) => {
            let first = std::mem::replace(had, Value::List(Vec::new()));
            *had = Value::Many(vec![first, value]);
        }
        (Value::List(all), Some((&"", rest))) => all.push(fresh(rest, value)),
        (Value::Map(members), Some((&"", rest))) => {
            let name = members.len().to_string();
            insert_member(members, &name, rest, value);
        }
        (Value::Map(members), Some((name, rest))) => insert_member(members, name, rest, value),
        (had @ Value::List(_), Some((name, rest))) => {
            if let Value::List(all) = std::mem::replace(had, Value::List(Vec::new())) {
                let mut members: Vec<_> = all
                    .into_iter()
                    .enumerate()
                    .map(|(i, each)| (i.to_string(), each))
                    .collect();
                insert_member(&mut members, name, rest, value);
                *had = Value::Map(members);
            }
        }
        // A text and an object have the same name: the last one counts.
        (had, _) => *had = fresh(path, value),
    }
}

fn write(value: Value, tree: &mut Tree) {
    match value {
        Value::Text(cell) => tree.cells.push(cell),
        Value::File(cells) => tree.cells.extend(cells),
        Value::Many(all) => write_list(Kind::Many, all, tree),
        Value::List(all) => write_list(Kind::List, all, tree),
        Value::Map(members) => {
            let numbered = members
                .iter()
                .enumerate()
                .all(|(i, (name, _))| *name == i.to_string());
            if numbered {
                let all = members.into_iter().map(|(_, each)| each).collect();
                write_list(Kind::List, all, tree);
            } else {
                write_map(members, tree);
            }
        }
    }
}

fn write_list(kind: Kind, all: Vec<Value>, tree: &mut Tree) {
    let container = tree.open(kind);
    let count = all.len();
    for each in all {
        write(each, tree);
    }
    tree.close(container, count);
}

fn write_map(members: Vec<(String, Value)>, tree: &mut Tree) {
    let container = tree.open(Kind::Map);
    let count = members.len();
    for (name, value) in members {
        let start = tree.arena.len();
        tree.arena.extend_from_slice(name.as_bytes());
        tree.decoded(Kind::String, start);
        write(value, tree);
    }
    tree.close(container, count);
}
