//! Errors in input.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value};

/// The most violations in an answer, so that it is not much longer than the request.
pub const MAX_VIOLATIONS: usize = 100;

/// A rule that a value violates.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// JSON pointer (RFC 6901) to the value; "" is all of the input.
    pub pointer: String,
    /// The keyword of JSON Schema if there is one: "minLength", "required", "type".
    pub rule: Cow<'static, str>,
    /// Values that a message may refer to, as `{min}`.
    pub parameters: Vec<(Cow<'static, str>, Value)>,
    /// The application's own message, not translated.
    pub message: Option<Arc<str>>,
}

/// Why input was rejected.
#[derive(Debug, PartialEq)]
pub enum Rejected {
    /// Not the format it claims to be. 400.
    Malformed {
        /// Bytes before the place.
        offset: usize,
        /// The error.
        reason: &'static str,
    },
    /// More levels than the schema allows. 400.
    TooDeep {
        /// Bytes before the place.
        offset: usize,
    },
    /// More fields than a form may have. 400.
    TooManyFields,
    /// Longer than the schema allows. 413.
    TooLarge {
        /// The most bytes.
        limit: usize,
    },
    /// A media type that is not accepted here. 415.
    WrongType {
        /// Accepted media types, separated by commas.
        accepted: &'static str,
    },
    /// Well-formed, but violates the schema. 422.
    Invalid {
        /// In the order of the input.
        violations: Vec<Violation>,
        /// Whether there are more than [`MAX_VIOLATIONS`].
        truncated: bool,
    },
}

impl Rejected {
    /// Violations of rules written in PHP: a JSON list of `{"pointer", "rule", "message"?, "parameters"?}`.
    ///
    /// # Errors
    /// If it is not such a list.
    pub fn by_rules(json: &str) -> Result<Rejected, String> {
        #[derive(serde::Deserialize)]
        struct Found {
            pointer: String,
            rule: String,
            message: Option<String>,
            #[serde(default)]
            parameters: Map<String, Value>,
        }
        let found: Vec<Found> =
            serde_json::from_str(json).map_err(|error| format!("violations: {error}"))?;
        let violations = found.into_iter().map(|each| Violation {
            pointer: each.pointer,
            rule: each.rule.into(),
            message: each.message.map(Into::into),
            parameters: each
                .parameters
                .into_iter()
                .map(|(name, value)| (name.into(), value))
                .collect(),
        });
        Ok(Rejected::Invalid {
            violations: violations.collect(),
            truncated: false,
        })
    }
}

/// Appends `segment` as one step of a JSON pointer.
pub(crate) fn push_segment(pointer: &mut String, segment: &str) {
    pointer.push('/');
    for character in segment.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}
