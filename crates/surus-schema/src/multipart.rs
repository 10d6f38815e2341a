//! `multipart/form-data` (RFC 7578): the fields of a form. Files are not input of a schema; their parts are passed over.

use crate::form::Fields;
use crate::media::parameter;
use crate::tree::Tree;
use crate::violation::Rejected;

/// Of the head of a part; bytes.
const MAX_HEAD: usize = 8 * 1024;

/// Parses into `tree`, which is empty.
pub(crate) fn parse(
    body: &[u8],
    boundary: &str,
    max_depth: usize,
    tree: &mut Tree,
) -> Result<(), Rejected> {
    let wrong = |offset, reason| Rejected::Malformed { offset, reason };
    let mut fields = Fields::new(max_depth);
    let delimiter = format!("\r\n--{boundary}");
    let delimiter = delimiter.as_bytes();
    // The first delimiter may stand at the very beginning, without a line break before it.
    let mut at = if body.starts_with(&delimiter[2..]) {
        delimiter.len() - 2
    } else {
        find(body, 0, delimiter).ok_or(wrong(0, "the boundary is missing"))? + delimiter.len()
    };
    loop {
        let rest = &body[at..];
        if rest.starts_with(b"--") {
            fields.finish(tree);
            return Ok(());
        }
        let padding = rest
            .iter()
            .take_while(|b| matches!(b, b' ' | b'\t'))
            .count();
        if !rest[padding..].starts_with(b"\r\n") {
            return Err(wrong(at, "the boundary's line does not end"));
        }
        // A part without a head begins with the empty line that ends it.
        let head_start = at + padding;
        let head_end = find(body, head_start, b"\r\n\r\n")
            .filter(|end| end - head_start <= MAX_HEAD)
            .ok_or(wrong(head_start, "the head of a part does not end"))?;
        let content = head_end + 4;
        let end = find(body, content.saturating_sub(2), delimiter)
            .ok_or(wrong(content, "a part does not end"))?;
        if let Some(name) = field_name(&body[head_start..head_end]) {
            let start = tree.arena.len();
            tree.arena
                .extend_from_slice(body.get(content..end).unwrap_or_default());
            fields.add(name.as_bytes(), start, content, tree)?;
        }
        at = end + delimiter.len();
    }
}

/// The name of a part that is a field: of a `Content-Disposition` without a file name.
fn field_name(head: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(head);
    let value = head.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim()
            .eq_ignore_ascii_case("content-disposition")
            .then_some(value)
    })?;
    let (kind, parameters) = value.split_once(';')?;
    let is_file =
        parameter(parameters, "filename").is_some() || parameter(parameters, "filename*").is_some();
    (kind.trim().eq_ignore_ascii_case("form-data") && !is_file)
        .then(|| parameter(parameters, "name"))
        .flatten()
}

/// Where `wanted` begins, from `at` on.
fn find(body: &[u8], at: usize, wanted: &[u8]) -> Option<usize> {
    let first = *wanted.first()?;
    let mut at = at;
    loop {
        at += body.get(at..)?.iter().position(|&b| b == first)?;
        if body[at..].starts_with(wanted) {
            return Some(at);
        }
        at += 1;
    }
}
