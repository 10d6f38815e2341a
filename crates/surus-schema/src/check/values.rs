//! Values that contain no others.

use serde_json::{json, Value};

use super::{parameter, Checker};
use crate::description::Range;
use crate::formats;
use crate::input::{Cell, Kind};
use crate::json_schema::plain;
use crate::schema::{Cases, Class, Files, Integers, Node, Strings};
use crate::tree::FILE_CELLS;

impl Checker<'_> {
    pub(super) fn file(&mut self, node: &Node, rules: &Files, at: usize) {
        let cells = &self.tree.cells;
        let cell = &cells[at];
        if cell.kind != Kind::File {
            return self.wrong_type(node, "file", cell);
        }
        let size = cell.len as usize;
        if size < rules.min {
            let parameters = vec![parameter("min", rules.min), parameter("actual", size)];
            return self.violate(Some(node), "minBytes", parameters);
        }
        if size > rules.max {
            let parameters = vec![parameter("max", rules.max), parameter("actual", size)];
            return self.violate(Some(node), "maxBytes", parameters);
        }
        self.push_text(Kind::File, rules.class, cell);
        self.out.extend_from_slice(&cells[at + 1..at + FILE_CELLS]);
    }

    pub(super) fn wrong_format(&mut self, node: &Node, format: &'static str) {
        self.violate(Some(node), "format", vec![parameter("format", format)]);
    }

    pub(super) fn string(&mut self, node: &Node, rules: &Strings, cell: &Cell) {
        if !matches!(cell.kind, Kind::String | Kind::Text) {
            return self.wrong_type(node, "string", cell);
        }
        let before = self.violations.len();
        // A character has one to four bytes: for most texts no characters must be counted.
        let length = cell.len as usize;
        if length > rules.max || length < rules.min.saturating_mul(4) {
            let count = characters(cell.bytes(self.body, &self.tree.arena));
            if count < rules.min {
                let parameters = vec![parameter("min", rules.min), parameter("actual", count)];
                self.violate(Some(node), "minLength", parameters);
            }
            if count > rules.max {
                let parameters = vec![parameter("max", rules.max), parameter("actual", count)];
                self.violate(Some(node), "maxLength", parameters);
            }
        }
        if let Some(format) = rules.format {
            if !formats::is(format, self.text(cell), &rules.schemes) {
                self.wrong_format(node, format.name());
            }
        }
        if let Some(pattern) = &rules.pattern {
            if !pattern.is_match(self.text(cell)) {
                let parameters = vec![parameter("pattern", pattern.as_str())];
                self.violate(Some(node), "pattern", parameters);
            }
        }
        if self.violations.len() == before {
            self.push_text(Kind::String, 0, cell);
        }
    }

    pub(super) fn integer(&mut self, node: &Node, rules: &Integers, cell: &Cell) {
        let Some(value) = self.as_integer(cell) else {
            return self.wrong_type(node, "integer", cell);
        };
        let before = self.violations.len();
        if let Some(min) = rules.minimum.filter(|min| value < *min) {
            self.violate(Some(node), "minimum", vec![parameter("min", min)]);
        }
        if let Some(max) = rules.maximum.filter(|max| value > *max) {
            self.violate(Some(node), "maximum", vec![parameter("max", max)]);
        }
        if let Some(step) = rules.multiple_of.filter(|step| value % *step != 0) {
            self.violate(Some(node), "multipleOf", vec![parameter("step", step)]);
        }
        if self.violations.len() == before {
            self.push(Kind::Integer, 0, 0, value as u64);
        }
    }

    /// 1.0 is an integer to JSON Schema.
    #[allow(clippy::cast_possible_truncation)]
    pub(super) fn as_integer(&self, cell: &Cell) -> Option<i64> {
        const END: f64 = 9_223_372_036_854_775_808.0;
        match cell.kind {
            Kind::Integer => Some(cell.bits as i64),
            Kind::Number => {
                let value = f64::from_bits(cell.bits);
                (value.fract() == 0.0 && (-END..END).contains(&value)).then_some(value as i64)
            }
            Kind::Text => {
                let text = self.text(cell);
                let digits = text.strip_prefix('-').unwrap_or(text);
                let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
                plain.then(|| text.parse().ok()).flatten()
            }
            _ => None,
        }
    }

    pub(super) fn number(&mut self, node: &Node, range: &Range, cell: &Cell) {
        let value = match cell.kind {
            #[allow(clippy::cast_precision_loss)]
            Kind::Integer => Some(cell.bits as i64 as f64),
            Kind::Number => Some(f64::from_bits(cell.bits)),
            Kind::Text => as_number(self.text(cell)),
            _ => None,
        };
        let Some(value) = value else {
            return self.wrong_type(node, "number", cell);
        };
        let before = self.violations.len();
        if let Some(min) = range.minimum.filter(|min| value < *min) {
            self.violate(Some(node), "minimum", vec![parameter("min", plain(min))]);
        }
        if let Some(min) = range.exclusive_minimum.filter(|min| value <= *min) {
            self.violate(
                Some(node),
                "exclusiveMinimum",
                vec![parameter("min", plain(min))],
            );
        }
        if let Some(max) = range.maximum.filter(|max| value > *max) {
            self.violate(Some(node), "maximum", vec![parameter("max", plain(max))]);
        }
        if let Some(max) = range.exclusive_maximum.filter(|max| value >= *max) {
            self.violate(
                Some(node),
                "exclusiveMaximum",
                vec![parameter("max", plain(max))],
            );
        }
        if let Some(step) = range.multiple_of {
            // Decimal fractions have no exact binary form: 0.3 is a multiple of 0.1.
            let steps = value / step;
            if (steps - steps.round()).abs() > 1e-9 * steps.abs().max(1.0) {
                self.violate(
                    Some(node),
                    "multipleOf",
                    vec![parameter("step", plain(step))],
                );
            }
        }
        if self.violations.len() == before {
            self.push(Kind::Number, 0, 0, value.to_bits());
        }
    }

    pub(super) fn boolean(&mut self, node: &Node, cell: &Cell) {
        let value = match cell.kind {
            Kind::True => Some(true),
            Kind::False => Some(false),
            Kind::Text => match self.text(cell) {
                "1" | "true" | "on" | "yes" => Some(true),
                "0" | "false" | "off" | "no" | "" => Some(false),
                _ => None,
            },
            _ => None,
        };
        match value {
            Some(true) => self.push(Kind::True, 0, 0, 0),
            Some(false) => self.push(Kind::False, 0, 0, 0),
            None => self.wrong_type(node, "boolean", cell),
        }
    }

    pub(super) fn case(&mut self, node: &Node, class: u16, cell: &Cell) {
        let Class::Enum(cases) = &self.schema.classes[usize::from(class)] else {
            return;
        };
        let found = match cases {
            Cases::Strings(values) => match cell.kind {
                Kind::String | Kind::Text => {
                    let text = self.text(cell);
                    values.iter().position(|value| value == text)
                }
                _ => return self.wrong_type(node, "string", cell),
            },
            Cases::Integers(values) => match self.as_integer(cell) {
                Some(value) => values.iter().position(|each| *each == value),
                None => return self.wrong_type(node, "integer", cell),
            },
        };
        match found {
            Some(case) => self.push(Kind::Enum, class, 0, case as u64),
            None => {
                let allowed: Value = match cases {
                    Cases::Strings(values) => json!(values),
                    Cases::Integers(values) => json!(values),
                };
                self.violate(Some(node), "enum", vec![parameter("allowed", allowed)]);
            }
        }
    }
}

/// Counts the bytes that begin a character.
fn characters(text: &[u8]) -> usize {
    text.iter().filter(|&&byte| byte & 0xc0 != 0x80).count()
}

/// A decimal number as JSON and HTML write it: no "inf", no "nan", no hexadecimal.
fn as_number(text: &str) -> Option<f64> {
    let allowed = |b: u8| b.is_ascii_digit() || matches!(b, b'-' | b'+' | b'.' | b'e' | b'E');
    if text.is_empty() || text.starts_with('+') || !text.bytes().all(allowed) {
        return None;
    }
    text.parse::<f64>().ok().filter(|value| value.is_finite())
}
