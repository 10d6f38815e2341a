//! The notation of paths: `/users/{id:int}`, `/{lang:[a-z]{2}}/{page?}`, `/files/{rest*}`, `/{name}.{extension}`.

use std::rc::Rc;

use super::matcher::{self, Matcher, Piece};

/// A path without optional parts.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) segments: Vec<Segment>,
}

#[derive(Debug)]
pub(super) enum Segment {
    Text(Box<str>),
    Dynamic(Matcher),
    /// All remaining segments.
    Rest(Matcher),
}

/// A parsed pattern.
#[derive(Debug)]
pub(super) struct Parsed {
    /// The longest one first; each omits one more optional segment.
    pub(super) variants: Vec<Pattern>,
    /// The names of the parameters, in order. A shorter variant has the first ones.
    pub(super) names: Vec<Rc<str>>,
    /// The path without its names: two with the same shape match the same requests.
    pub(super) shape: String,
}

struct Draft {
    pieces: Vec<Piece>,
    optional: bool,
    rest: bool,
}

impl Draft {
    fn shape(&self) -> String {
        let pieces: String = self.pieces.iter().map(matcher::shape).collect();
        let mark = match (self.optional, self.rest) {
            (false, false) => "",
            (true, false) => "?",
            (false, true) => "*",
            (true, true) => "?*",
        };
        format!("/{pieces}{mark}")
    }
}

pub(super) fn parse(pattern: &str) -> Result<Parsed, String> {
    let named = |error: String| format!("route {pattern:?}: {error}");
    let Some(path) = pattern.strip_prefix('/') else {
        return Err(named("it must start with a slash".to_owned()));
    };
    check_text(path).map_err(named)?;
    let mut names: Vec<Rc<str>> = Vec::new();
    let mut drafts = Vec::new();
    for text in split(path).map_err(named)? {
        drafts.push(segment(text, &mut names).map_err(named)?);
    }
    let required = drafts
        .iter()
        .position(|d| d.optional)
        .unwrap_or(drafts.len());
    if drafts[required..].iter().any(|d| !d.optional) {
        return Err(named("nothing may follow an optional part".to_owned()));
    }
    if drafts.iter().rev().skip(1).any(|d| d.rest) {
        return Err(named("nothing may follow a rest".to_owned()));
    }
    let mut variants = Vec::new();
    for length in (required..=drafts.len()).rev() {
        let segments: Result<Vec<Segment>, String> = drafts[..length].iter().map(build).collect();
        let mut segments = segments.map_err(named)?;
        if segments.is_empty() {
            segments.push(Segment::Text("".into()));
        }
        variants.push(Pattern { segments });
    }
    let shape = drafts.iter().map(Draft::shape).collect();
    Ok(Parsed {
        variants,
        names,
        shape,
    })
}

/// Finds mistakes that would make a pattern match nothing: it is compared with the decoded path.
fn check_text(path: &str) -> Result<(), String> {
    let mut depth = 0usize;
    let bytes = path.as_bytes();
    for (i, byte) in bytes.iter().enumerate() {
        let hex = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_hexdigit);
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            b'?' | b'#' => {
                return Err(format!(
                    "a path has no {:?}: a parameter marked #[Query] takes what follows a question mark",
                    char::from(*byte)
                ))
            }
            b'%' if hex(i + 1) && hex(i + 2) => {
                return Err("write characters as they are, not percent-encoded".to_owned())
            }
            b'/' if i == 0 || bytes.get(i + 1) == Some(&b'/') => {
                return Err("it has two slashes in a row".to_owned())
            }
            _ => {}
        }
    }
    Ok(())
}

/// Splits at slashes that are not inside braces.
fn split(path: &str) -> Result<Vec<&str>, String> {
    let (mut depth, mut begin) = (0usize, 0);
    let mut parts = Vec::new();
    for (i, byte) in path.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.checked_sub(1).ok_or("a } without its {")?,
            b'/' if depth == 0 => {
                parts.push(&path[begin..i]);
                begin = i + 1;
            }
            _ => {}
        }
    }
    if depth > 0 {
        return Err("a { without its }".to_owned());
    }
    parts.push(&path[begin..]);
    Ok(parts)
}

/// The end of the parameter whose brace is at the start of `text`. The braces are balanced.
fn closing(text: &str) -> usize {
    let mut depth = 0;
    for (i, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 1 => return i,
            b'}' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

fn segment(text: &str, names: &mut Vec<Rc<str>>) -> Result<Draft, String> {
    let mut draft = Draft {
        pieces: Vec::new(),
        optional: false,
        rest: false,
    };
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        if open > 0 {
            draft.pieces.push(Piece::Text(rest[..open].to_owned()));
        }
        let close = open + closing(&rest[open..]);
        parameter(&rest[open + 1..close], &mut draft, names)?;
        rest = &rest[close + 1..];
    }
    if !rest.is_empty() {
        draft.pieces.push(Piece::Text(rest.to_owned()));
    }
    if (draft.optional || draft.rest) && draft.pieces.len() > 1 {
        return Err(format!(
            "{text:?}: an optional part or a rest is a whole segment"
        ));
    }
    Ok(draft)
}

/// `name`, `name?` or `name*`, optionally with a constraint after a colon.
fn parameter(inside: &str, draft: &mut Draft, names: &mut Vec<Rc<str>>) -> Result<(), String> {
    let (name, constraint) = inside
        .split_once(':')
        .map_or((inside, None), |(name, text)| (name, Some(text.to_owned())));
    let plain = name.trim_end_matches(['?', '*']);
    match &name[plain.len()..] {
        "" => {}
        "?" => draft.optional = true,
        "*" => draft.rest = true,
        "?*" | "*?" => (draft.optional, draft.rest) = (true, true),
        _ => return Err(format!("{inside:?} is not a parameter")),
    }
    let valid = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    if plain.is_empty() || !plain.bytes().all(valid) || constraint.as_deref() == Some("") {
        return Err(format!("{inside:?} is not a parameter"));
    }
    names.push(plain.into());
    draft.pieces.push(Piece::Parameter(constraint));
    Ok(())
}

fn build(draft: &Draft) -> Result<Segment, String> {
    Ok(match draft.pieces.as_slice() {
        [] => Segment::Text("".into()),
        [Piece::Text(text)] => Segment::Text(text.as_str().into()),
        pieces if draft.rest => Segment::Rest(Matcher::new(pieces)?),
        pieces => Segment::Dynamic(Matcher::new(pieces)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(pattern: &str) -> Vec<String> {
        let names = parse(pattern).unwrap().names;
        names.iter().map(|name| name.to_string()).collect()
    }

    #[test]
    fn parameters_are_found() {
        assert_eq!(names("/a/b"), [""; 0]);
        assert_eq!(
            names("/{lang:[a-z]{2}}/{page?}/{n?:int}"),
            ["lang", "page", "n"]
        );
        assert_eq!(names("/{name}.{extension:[^/]+}"), ["name", "extension"]);
        assert_eq!(parse("/x/{a?}/{b?}").unwrap().variants.len(), 3);
        assert_eq!(
            parse("/{a?}").unwrap().variants[1].segments.len(),
            1,
            "the root"
        );
    }

    #[test]
    fn wrong_patterns_are_named() {
        for pattern in [
            "users",
            "/a/{",
            "/a/}",
            "/a/{b:what}",
            "/a/{b c}",
            "/{a?}/b",
            "/{a*}/b",
            "/a//b",
            "//",
            "/a?b=1",
            "/a%20b",
            "/x{a?}",
            "/{a:[}",
            "/{a:}",
            "/{}",
        ] {
            let error = parse(pattern).expect_err(pattern);
            assert!(error.contains(&format!("{pattern:?}")), "{error}");
        }
    }
}
