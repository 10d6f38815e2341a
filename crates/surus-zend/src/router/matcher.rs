//! Matches one segment of a path.

use std::borrow::Cow;

use regex::Regex;

/// A segment with at least one parameter; matches decoded text.
#[derive(Debug)]
pub(super) struct Matcher {
    /// The pattern without its names: equal shapes match the same segments, so they share a node of the tree.
    pub(super) shape: String,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Any,
    Int,
    Slug,
    Uuid,
    /// A regular expression of the application.
    Whole(Regex),
    /// Text and parameters in one segment, with a group for each parameter.
    Mixed(Regex),
}

/// A part of a segment of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Parameter(Option<String>),
}

impl Matcher {
    pub(super) fn new(pieces: &[Piece]) -> Result<Matcher, String> {
        let shape = pieces.iter().map(shape).collect();
        let kind = match pieces {
            [Piece::Parameter(constraint)] => match constraint.as_deref() {
                None => Kind::Any,
                Some("int") => Kind::Int,
                Some("slug") => Kind::Slug,
                Some("uuid") => Kind::Uuid,
                Some(text) => Kind::Whole(compile(&expression(text)?)?),
            },
            _ => {
                let mut text = String::new();
                for piece in pieces {
                    match piece {
                        Piece::Text(literal) => text.push_str(&regex::escape(literal)),
                        Piece::Parameter(None) => text.push_str("(.+?)"),
                        Piece::Parameter(Some(constraint)) => {
                            text.push_str(&format!("({})", expression(constraint)?));
                        }
                    }
                }
                Kind::Mixed(compile(&text)?)
            }
        };
        Ok(Matcher { shape, kind })
    }

    /// Nodes are tried in this order: the most specific first.
    pub(super) fn rank(&self) -> u8 {
        match self.kind {
            Kind::Int | Kind::Uuid => 0,
            Kind::Mixed(_) | Kind::Whole(_) => 1,
            Kind::Slug => 2,
            Kind::Any => 3,
        }
    }

    /// Adds the parameters' values; leaves `values` as it was if the segment does not match.
    pub(super) fn take<'p>(&self, segment: Cow<'p, str>, values: &mut Vec<Cow<'p, str>>) -> bool {
        if segment.is_empty() {
            return false;
        }
        let matches = match &self.kind {
            Kind::Any => true,
            Kind::Int => is_integer(&segment),
            Kind::Slug => is_slug(&segment),
            Kind::Uuid => is_uuid(&segment),
            Kind::Whole(regex) => regex.is_match(&segment),
            Kind::Mixed(regex) => {
                let Some(groups) = regex.captures(&segment) else {
                    return false;
                };
                let found = groups.iter().skip(1).flatten();
                values.extend(found.map(|group| Cow::Owned(group.as_str().to_owned())));
                return true;
            }
        };
        if matches {
            values.push(segment);
        }
        matches
    }
}

pub(super) fn shape(piece: &Piece) -> String {
    match piece {
        Piece::Text(text) => text.replace('{', "{{"),
        Piece::Parameter(constraint) => format!("{{:{}}}", constraint.as_deref().unwrap_or("")),
    }
}

/// A constraint as a regular expression without capture groups.
pub(super) fn expression(constraint: &str) -> Result<String, String> {
    Ok(match constraint {
        "int" => "-?[0-9]{1,19}".to_owned(),
        "slug" => "[a-z0-9]+(?:-[a-z0-9]+)*".to_owned(),
        "uuid" => "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}".to_owned(),
        name if name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_') => {
            return Err(format!(
                "unknown constraint {name:?}; there is \"int\", \"slug\", \"uuid\", or a regular expression"
            ))
        }
        text => {
            let regex = Regex::new(text).map_err(|error| error.to_string())?;
            if regex.captures_len() > 1 {
                return Err(format!("{text:?}: write (?:…) for a group"));
            }
            format!("(?:{text})")
        }
    })
}

/// The expression must match the whole text. Takes linear time, whatever the expression.
pub(super) fn compile(expression: &str) -> Result<Regex, String> {
    Regex::new(&format!("^(?s:{expression})$")).map_err(|error| error.to_string())
}

fn is_integer(text: &str) -> bool {
    !text.starts_with('+') && text.parse::<i64>().is_ok()
}

fn is_slug(text: &str) -> bool {
    text.split('-').all(|word| {
        !word.is_empty()
            && word
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    })
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(i, b)| match i {
            8 | 13 | 18 | 23 => b == b'-',
            _ => b.is_ascii_hexdigit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(constraint: &str, segment: &str) -> Option<Vec<String>> {
        let pieces = [Piece::Parameter(
            (!constraint.is_empty()).then(|| constraint.to_owned()),
        )];
        let matcher = Matcher::new(&pieces).unwrap();
        let mut values = Vec::new();
        matcher
            .take(Cow::Borrowed(segment), &mut values)
            .then(|| values.into_iter().map(Cow::into_owned).collect())
    }

    #[test]
    fn constraints_take_the_whole_segment() {
        for (constraint, good, bad) in [
            ("int", "-42", "4x"),
            ("int", "9223372036854775807", "9223372036854775808"),
            ("int", "0", "+1"),
            ("slug", "a-b-9", "a--b"),
            ("slug", "x", "X"),
            (
                "uuid",
                "0b31d2c8-5d5c-4e0a-9a3e-000000000000",
                "0b31d2c8-5d5c-4e0a-9a3e-00000000000",
            ),
            ("[a-z]+", "abc", "abc1"),
            ("a|bc", "bc", "abc"),
            ("", "ä/b", ""),
        ] {
            assert_eq!(
                values(constraint, good),
                Some(vec![good.to_owned()]),
                "{constraint}"
            );
            assert_eq!(values(constraint, bad), None, "{constraint} {bad}");
        }
        assert_eq!(values("[a-z]+", "a\nb"), None);
    }

    #[test]
    fn what_is_no_constraint_is_named() {
        for text in ["number", "[a", "(a)(b)"] {
            let error = Matcher::new(&[Piece::Parameter(Some(text.to_owned()))]).unwrap_err();
            assert!(error.contains(text.trim_end_matches("(b)")), "{error}");
        }
    }
}
