//! Rejected input as problem details (RFC 9457).

use serde_json::{json, Map, Value};

use crate::violation::{Rejected, Violation, MAX_VIOLATIONS};
use crate::Messages;

/// Where the input came from, as OpenAPI calls it: "body" or "query".
pub type InputSource = &'static str;

/// The status and the JSON text of the answer to input from one or more sources: all violations, or the error because
/// of which a source could not be read.
#[must_use]
pub fn answer(
    rejected: &[(Rejected, InputSource)],
    messages: &Messages,
    accept_language: Option<&str>,
) -> (u16, String) {
    let language = messages.language(accept_language);
    let mut errors = Vec::new();
    let mut more = false;
    for (one, place) in rejected {
        let (status, title, detail) = match one {
            Rejected::Invalid {
                violations,
                truncated,
            } => {
                more |= truncated;
                let each = violations.iter();
                errors.extend(each.map(|violation| error(violation, place, messages, language)));
                continue;
            }
            Rejected::Malformed { offset, reason } => {
                let detail = format!("{reason}, at byte {offset} of the {place}");
                return malformed(&detail, *offset);
            }
            Rejected::TooDeep { offset } => {
                let detail = format!("nested too deep, at byte {offset} of the {place}");
                return malformed(&detail, *offset);
            }
            Rejected::TooManyFields => (400, "Bad Request", "too many fields".to_owned()),
            Rejected::TooLarge { limit } => (
                413,
                "Content Too Large",
                format!("the {place} may have at most {limit} bytes"),
            ),
            Rejected::WrongType { accepted } => (
                415,
                "Unsupported Media Type",
                format!("the body must be {accepted}"),
            ),
        };
        let text = json!({"title": title, "status": status, "detail": detail}).to_string();
        return (status, text);
    }
    more |= errors.len() > MAX_VIOLATIONS;
    errors.truncate(MAX_VIOLATIONS);
    invalid(errors, more)
}

fn malformed(detail: &str, offset: usize) -> (u16, String) {
    let text = json!({"title": "Bad Request", "status": 400, "detail": detail, "offset": offset});
    (400, text.to_string())
}

fn invalid(errors: Vec<Value>, truncated: bool) -> (u16, String) {
    let detail = match (errors.len(), truncated) {
        (1, false) => "1 error".to_owned(),
        (count, false) => format!("{count} errors"),
        (count, true) => format!("the first {count} errors"),
    };
    let text = json!({
        "title": "Unprocessable Content",
        "status": 422,
        "detail": detail,
        "errors": errors,
    });
    (422, text.to_string())
}

fn error(violation: &Violation, place: InputSource, messages: &Messages, language: &str) -> Value {
    let mut error = Map::new();
    error.insert("in".into(), place.into());
    error.insert("pointer".into(), violation.pointer.as_str().into());
    error.insert("rule".into(), violation.rule.as_ref().into());
    error.insert("message".into(), messages.text(language, violation).into());
    if !violation.parameters.is_empty() {
        let parameters: Map<String, Value> = violation
            .parameters
            .iter()
            .map(|(name, value)| (name.as_ref().to_owned(), value.clone()))
            .collect();
        error.insert("parameters".into(), Value::Object(parameters));
    }
    Value::Object(error)
}
