//! `multipart/form-data` (RFC 7578): the fields of a form, and its files, which stay where they are in the body.

use memchr::memmem::Finder;

use crate::form::Fields;
use crate::media::parameter;
use crate::tree::Tree;
use crate::violation::Rejected;

/// The most bytes of the head of a part.
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
    let delimiter = Finder::new(&delimiter);
    let end_of_head = Finder::new(b"\r\n\r\n");
    // The first delimiter may be at the very beginning, without a line break before it.
    let mut at = if body.starts_with(&delimiter.needle()[2..]) {
        delimiter.needle().len() - 2
    } else {
        find(body, 0, &delimiter).ok_or(wrong(0, "the boundary is missing"))?
            + delimiter.needle().len()
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
        let head_end = find(body, head_start, &end_of_head)
            .filter(|end| end - head_start <= MAX_HEAD)
            .ok_or(wrong(head_start, "the head of a part does not end"))?;
        let content = head_end + 4;
        let end = find(body, content.saturating_sub(2), &delimiter)
            .ok_or(wrong(content, "a part does not end"))?;
        let text = body.get(content..end).unwrap_or_default();
        if let Some(part) = Part::of(&body[head_start..head_end]) {
            match &part.file {
                None => {
                    let start = tree.arena.len();
                    tree.arena.extend_from_slice(text);
                    fields.add(part.name.as_bytes(), start, content, tree)?;
                }
                // Browsers send this if no file was chosen.
                Some((file, _)) if file.is_empty() && text.is_empty() => {}
                Some((file, media_type)) => {
                    let place = (content, text.len());
                    fields.add_file(&part.name, file, media_type, place, tree)?;
                }
            }
        }
        at = end + delimiter.needle().len();
    }
}

/// The parsed head of a part.
struct Part {
    name: String,
    /// Its name on the client's disk, without folders, and its media type, as sent by the client.
    file: Option<(String, String)>,
}

impl Part {
    fn of(head: &[u8]) -> Option<Part> {
        let head = String::from_utf8_lossy(head);
        let header = |wanted: &str| {
            head.split("\r\n").find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.trim().eq_ignore_ascii_case(wanted).then_some(value)
            })
        };
        let (kind, parameters) = header("content-disposition")?.split_once(';')?;
        if !kind.trim().eq_ignore_ascii_case("form-data") {
            return None;
        }
        // RFC 7578 forbids the other notation, "filename*".
        let file = parameter(parameters, "filename").map(|path| {
            let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
            let media_type = header("content-type").unwrap_or("").trim();
            (name.to_owned(), media_type.to_owned())
        });
        Some(Part {
            name: parameter(parameters, "name")?,
            file,
        })
    }
}

/// The position of the first `wanted`, which is not empty, from `at` on.
fn find(body: &[u8], at: usize, wanted: &Finder) -> Option<usize> {
    Some(at + wanted.find(body.get(at..)?)?)
}
