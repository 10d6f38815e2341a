//! Messages of violations, in the client's language.

use std::cmp::Reverse;
use std::collections::HashMap;

use serde_json::Value;

use crate::violation::Violation;
use crate::weights::weighted;

/// The built-in English messages. `{name}` is a parameter of the violation.
const ENGLISH: [(&str, &str); 26] = [
    ("type", "must be of type {expected}, not {actual}"),
    ("required", "is required"),
    ("additionalProperties", "is not a known property"),
    ("duplicate", "is given more than once"),
    (
        "minLength",
        "must have at least {min} characters, has {actual}",
    ),
    (
        "maxLength",
        "must have at most {max} characters, has {actual}",
    ),
    ("pattern", "must match the pattern {pattern}"),
    ("format.email", "must be an e-mail address"),
    ("format.uuid", "must be a UUID"),
    ("format.uri", "must be a URL"),
    ("format.date", "must be a date as in 2024-12-31"),
    (
        "format.date-time",
        "must be a date and time as in 2024-12-31T23:59:59Z",
    ),
    ("format.time", "must be a time as in 23:59:59Z"),
    ("format", "must have the format {format}"),
    ("minimum", "must be at least {min}"),
    ("maximum", "must be at most {max}"),
    ("exclusiveMinimum", "must be greater than {min}"),
    ("exclusiveMaximum", "must be less than {max}"),
    ("multipleOf", "must be a multiple of {step}"),
    ("minItems", "must have at least {min} items, has {actual}"),
    ("maxItems", "must have at most {max} items, has {actual}"),
    ("minBytes", "must have at least {min} bytes, has {actual}"),
    ("maxBytes", "must have at most {max} bytes, has {actual}"),
    ("uniqueItems", "must not have equal items"),
    ("enum", "must be one of {allowed}"),
    ("anyOf", "is none of what is allowed here"),
];

/// Messages by language (a lower-case language tag) and rule. A rule may be followed by a dot and its format.
#[derive(Debug, Default)]
pub struct Messages {
    languages: HashMap<String, HashMap<String, String>>,
}

impl Messages {
    /// Adds messages of the application: `{"de": {"required": "fehlt"}}`.
    pub fn add(&mut self, json: &str) -> Result<(), String> {
        let added: HashMap<String, HashMap<String, String>> =
            serde_json::from_str(json).map_err(|error| format!("messages: {error}"))?;
        for (language, rules) in added {
            let known = self.languages.entry(language.to_ascii_lowercase());
            known.or_default().extend(rules);
        }
        Ok(())
    }

    /// The best language with messages for an `Accept-Language` header; "en" if there is none.
    #[must_use]
    pub fn language(&self, accept: Option<&str>) -> &str {
        let mut wanted: Vec<(&str, u16)> = weighted(accept.unwrap_or(""))
            .filter(|(_, weight)| *weight > 0)
            .collect();
        wanted.sort_by_key(|(_, weight)| Reverse(*weight));
        for (tag, _) in wanted {
            let tag = tag.to_ascii_lowercase();
            let mut part = tag.as_str();
            loop {
                if let Some((known, _)) = self.languages.get_key_value(part) {
                    return known;
                }
                // English has all messages, and "*" accepts any language.
                if part == "en" || part == "*" {
                    return "en";
                }
                // Fall back from de-at to de.
                match part.rsplit_once('-') {
                    Some((shorter, _)) => part = shorter,
                    None => break,
                }
            }
        }
        "en"
    }

    /// The message of `violation` in `language`.
    #[must_use]
    pub fn text(&self, language: &str, violation: &Violation) -> String {
        if let Some(message) = &violation.message {
            return fill(message, violation);
        }
        let format = violation
            .parameters
            .iter()
            .find(|(name, _)| name == "format")
            .and_then(|(_, value)| value.as_str());
        let special = format.map(|format| format!("{}.{format}", violation.rule));
        let keys = special.as_deref().into_iter().chain([&*violation.rule]);
        let translated = self.languages.get(language);
        let template = keys
            .clone()
            .find_map(|key| translated?.get(key).map(String::as_str))
            .or_else(|| {
                keys.clone().find_map(|key| {
                    let found = ENGLISH.iter().find(|(rule, _)| *rule == key);
                    found.map(|(_, text)| *text)
                })
            })
            .unwrap_or("is not valid");
        fill(template, violation)
    }
}

fn fill(template: &str, violation: &Violation) -> String {
    let mut text = String::with_capacity(template.len() + 16);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let Some((name, behind)) = after.split_once('}') else {
            text.push('{');
            rest = after;
            continue;
        };
        match violation.parameters.iter().find(|(each, _)| each == name) {
            Some((_, value)) => text.push_str(&show(value)),
            None => {
                text.push('{');
                text.push_str(name);
                text.push('}');
            }
        }
        rest = behind;
    }
    text.push_str(rest);
    text
}

fn show(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(all) => all.iter().map(show).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
