//! A parsed tree against a schema.
//!
//! What is valid is written out in the order of the constructors' parameters; what is not becomes violations. All of
//! them are found, up to a bound.

use std::borrow::Cow;

use serde_json::{json, Value};

use crate::description::Range;
use crate::formats;
use crate::input::{Cell, Kind};
use crate::json_schema::plain;
use crate::schema::{Cases, Class, Field, Files, Integers, Lists, Node, Rules, Schema, Strings};
use crate::tree::{Tree, FILE_CELLS};
use crate::violation::{push_segment, Rejected, Violation, MAX_VIOLATIONS};

pub(crate) struct Checker<'a> {
    schema: &'a Schema,
    body: &'a [u8],
    tree: &'a Tree,
    out: Vec<Cell>,
    violations: Vec<Violation>,
    truncated: bool,
    path: Vec<Step<'a>>,
    /// Where the value of each property of the objects around is; 0 is none, which no property can have.
    places: Vec<u32>,
    /// Values that may still be checked: alternatives within alternatives would else multiply.
    budget: usize,
}

/// How often a value is checked on average, at most.
const CHECKS_PER_VALUE: usize = 16;

#[derive(Clone, Copy)]
enum Step<'a> {
    Name(&'a str),
    Index(usize),
}

type Parameters = Vec<(Cow<'static, str>, Value)>;

fn parameter(name: &'static str, value: impl Into<Value>) -> (Cow<'static, str>, Value) {
    (Cow::Borrowed(name), value.into())
}

impl<'a> Checker<'a> {
    pub(crate) fn new(schema: &'a Schema, body: &'a [u8], tree: &'a Tree) -> Self {
        Checker {
            schema,
            body,
            tree,
            out: Vec::with_capacity(tree.cells.len() / 2 + 8),
            violations: Vec::new(),
            truncated: false,
            path: Vec::new(),
            places: Vec::new(),
            budget: tree.cells.len() * CHECKS_PER_VALUE + 1000,
        }
    }

    pub(crate) fn root(&mut self) {
        self.check(&self.schema.root, 0);
    }

    pub(crate) fn result(self) -> Result<Vec<Cell>, Rejected> {
        if self.violations.is_empty() {
            return Ok(self.out);
        }
        Err(Rejected::Invalid {
            violations: self.violations,
            truncated: self.truncated,
        })
    }

    fn text(&self, cell: &Cell) -> &'a str {
        self.tree.text(self.body, cell)
    }

    fn push(&mut self, kind: Kind, class: u16, len: u32, bits: u64) {
        self.out.push(Cell {
            kind,
            source: 0,
            class,
            len,
            bits,
        });
    }

    fn push_text(&mut self, kind: Kind, class: u16, cell: &Cell) {
        self.out.push(Cell {
            kind,
            class,
            ..*cell
        });
    }

    // ---- what is wrong

    fn violate(&mut self, node: Option<&Node>, rule: &'static str, parameters: Parameters) {
        if self.violations.len() >= MAX_VIOLATIONS {
            self.truncated = true;
            return;
        }
        let mut pointer = String::new();
        for step in &self.path {
            match step {
                Step::Name(name) => push_segment(&mut pointer, name),
                Step::Index(index) => push_segment(&mut pointer, &index.to_string()),
            }
        }
        let messages = node.and_then(|node| node.messages.as_ref());
        self.violations.push(Violation {
            pointer,
            rule: Cow::Borrowed(rule),
            parameters,
            message: messages.and_then(|all| all.get(rule).or_else(|| all.get("*")).cloned()),
        });
    }

    fn wrong_type(&mut self, node: &Node, expected: &'static str, cell: &Cell) {
        let actual = match cell.kind {
            Kind::Null => "null",
            Kind::False | Kind::True => "boolean",
            Kind::Integer => "integer",
            Kind::Number => "number",
            Kind::List | Kind::Many => "array",
            Kind::Map => "object",
            Kind::File => "file",
            _ => "string",
        };
        self.violate(
            Some(node),
            "type",
            vec![parameter("expected", expected), parameter("actual", actual)],
        );
    }

    // ---- values

    fn check(&mut self, node: &'a Node, at: usize) {
        let Some(budget) = self.budget.checked_sub(1) else {
            return self.violate(Some(node), "anyOf", Vec::new());
        };
        self.budget = budget;
        let tree = self.tree;
        let mut at = at;
        let mut cell = &tree.cells[at];
        if cell.kind == Kind::Many && !matches!(node.rules, Rules::List(_) | Rules::Union(_)) {
            // A name that a form has several times means its last value, as in PHP, where files are apart from texts.
            let is_file = matches!(node.rules, Rules::File(_));
            let end = tree.after(at);
            at += 1;
            let mut next = at;
            while next < end {
                if (tree.cells[next].kind == Kind::File) == is_file {
                    at = next;
                }
                next = tree.after(next);
            }
            cell = &tree.cells[at];
        }
        if node.nullable {
            // What is left empty in a form is no value, except where "" is one.
            let empty = cell.kind == Kind::Text
                && cell.len == 0
                && !matches!(
                    node.rules,
                    Rules::String(_) | Rules::Union(_) | Rules::Mixed
                );
            if cell.kind == Kind::Null || empty {
                self.push(Kind::Null, 0, 0, 0);
                return;
            }
        }
        match &node.rules {
            Rules::String(rules) => self.string(node, rules, cell),
            Rules::Integer(rules) => self.integer(node, rules, cell),
            Rules::Object(class) => self.object(node, *class, at),
            Rules::List(rules) => self.list(node, rules, at),
            Rules::Number(range) => self.number(node, range, cell),
            Rules::Boolean => self.boolean(node, cell),
            Rules::Enum(class) => self.case(node, *class, cell),
            Rules::Date(class, format) => match cell.kind {
                Kind::String | Kind::Text if formats::is(*format, self.text(cell), &[]) => {
                    self.push_text(Kind::Parsed, *class, cell);
                }
                Kind::String | Kind::Text => self.wrong_format(node, format.name()),
                _ => self.wrong_type(node, "string", cell),
            },
            Rules::Map(rules) => self.map(node, rules, at),
            Rules::Union(any) => self.union(node, any, at),
            Rules::Null => match cell.kind {
                Kind::Null => self.push(Kind::Null, 0, 0, 0),
                Kind::Text if cell.len == 0 => self.push(Kind::Null, 0, 0, 0),
                _ => self.wrong_type(node, "null", cell),
            },
            Rules::File(rules) => self.file(node, rules, at),
            // Nobody has said what would become of a file.
            Rules::Mixed if cell.kind == Kind::File => self.wrong_type(node, "string", cell),
            Rules::Mixed => {
                self.copy(at);
            }
        }
    }

    fn file(&mut self, node: &Node, rules: &Files, at: usize) {
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

    fn wrong_format(&mut self, node: &Node, format: &'static str) {
        self.violate(Some(node), "format", vec![parameter("format", format)]);
    }

    fn string(&mut self, node: &Node, rules: &Strings, cell: &Cell) {
        if !matches!(cell.kind, Kind::String | Kind::Text) {
            return self.wrong_type(node, "string", cell);
        }
        let before = self.violations.len();
        let text = self.text(cell);
        // A character has one to four bytes: most texts need not be counted.
        if text.len() > rules.max || text.len() < rules.min.saturating_mul(4) {
            let count = text.chars().count();
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
            if !formats::is(format, text, &rules.schemes) {
                self.wrong_format(node, format.name());
            }
        }
        if let Some(pattern) = &rules.pattern {
            if !pattern.is_match(text) {
                let parameters = vec![parameter("pattern", pattern.as_str())];
                self.violate(Some(node), "pattern", parameters);
            }
        }
        if self.violations.len() == before {
            self.push_text(Kind::String, 0, cell);
        }
    }

    fn integer(&mut self, node: &Node, rules: &Integers, cell: &Cell) {
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
    fn as_integer(&self, cell: &Cell) -> Option<i64> {
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

    fn number(&mut self, node: &Node, range: &Range, cell: &Cell) {
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

    fn boolean(&mut self, node: &Node, cell: &Cell) {
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

    fn case(&mut self, node: &Node, class: u16, cell: &Cell) {
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

    // ---- what holds others

    fn object(&mut self, node: &Node, class: u16, at: usize) {
        let tree = self.tree;
        let cell = &tree.cells[at];
        let Class::Object { fields, strict } = &self.schema.classes[usize::from(class)] else {
            return;
        };
        if cell.kind != Kind::Map {
            return self.wrong_type(node, "object", cell);
        }
        let base = self.places.len();
        self.places.resize(base + fields.len(), 0);
        let end = tree.after(at);
        let mut key = at + 1;
        // Most clients send properties in one order, and it is often that of the declaration.
        let mut expected = 0;
        while key < end {
            let name = self.text(&tree.cells[key]);
            let value = key + 1;
            match position(fields, name, expected) {
                Some(field) => {
                    expected = field + 1;
                    if self.places[base + field] != 0 {
                        self.path.push(Step::Name(name));
                        self.violate(None, "duplicate", Vec::new());
                        self.path.pop();
                    }
                    self.places[base + field] = u32::try_from(value).unwrap_or(0);
                }
                // A file that the class does not declare is the request's.
                None if *strict && tree.cells[value].kind != Kind::File => {
                    self.path.push(Step::Name(name));
                    self.violate(None, "additionalProperties", Vec::new());
                    self.path.pop();
                }
                None => {}
            }
            key = tree.after(value);
        }
        self.push(
            Kind::Object,
            class,
            u32::try_from(fields.len()).unwrap_or(0),
            0,
        );
        for (i, field) in fields.iter().enumerate() {
            let place = self.places[base + i] as usize;
            if place == 0 && !field.required {
                self.push(Kind::Default, 0, 0, 0);
                continue;
            }
            self.path.push(Step::Name(&field.name));
            if place == 0 {
                self.violate(Some(&field.node), "required", Vec::new());
            } else {
                self.check(&field.node, place);
            }
            self.path.pop();
        }
        self.places.truncate(base);
    }

    fn list(&mut self, node: &'a Node, rules: &'a Lists, at: usize) {
        let tree = self.tree;
        let cell = &tree.cells[at];
        match cell.kind {
            Kind::List | Kind::Many => {
                let head = self.out.len();
                self.push(Kind::List, 0, cell.len, 0);
                let end = tree.after(at);
                let mut item = at + 1;
                let mut index = 0;
                self.count(node, rules, cell.len as usize);
                while item < end && !self.truncated {
                    self.path.push(Step::Index(index));
                    self.check(&rules.items, item);
                    self.path.pop();
                    item = tree.after(item);
                    index += 1;
                }
                debug_assert!(self.truncated || self.out[head].len as usize == index);
                if rules.unique {
                    self.unique(node, at);
                }
            }
            // One value of a name that may come several times. An empty one is none.
            Kind::Text => {
                let given = u32::from(cell.len > 0);
                self.push(Kind::List, 0, given, 0);
                self.count(node, rules, given as usize);
                if given > 0 {
                    self.path.push(Step::Index(0));
                    self.check(&rules.items, at);
                    self.path.pop();
                }
            }
            _ => self.wrong_type(node, "array", cell),
        }
    }

    fn count(&mut self, node: &Node, rules: &Lists, count: usize) {
        if count < rules.min {
            let parameters = vec![parameter("min", rules.min), parameter("actual", count)];
            self.violate(Some(node), "minItems", parameters);
        }
        if count > rules.max {
            let parameters = vec![parameter("max", rules.max), parameter("actual", count)];
            self.violate(Some(node), "maxItems", parameters);
        }
    }

    fn unique(&mut self, node: &Node, at: usize) {
        let tree = self.tree;
        let mut seen = std::collections::HashSet::new();
        let end = tree.after(at);
        let mut item = at + 1;
        while item < end {
            let mut form = Vec::new();
            tree.canonical(self.body, item, &mut form);
            if !seen.insert(form) {
                return self.violate(Some(node), "uniqueItems", Vec::new());
            }
            item = tree.after(item);
        }
    }

    fn map(&mut self, node: &'a Node, rules: &'a Lists, at: usize) {
        let tree = self.tree;
        let cell = &tree.cells[at];
        if cell.kind != Kind::Map {
            return self.wrong_type(node, "object", cell);
        }
        self.push(Kind::Map, 0, cell.len, 0);
        self.count(node, rules, cell.len as usize);
        let end = tree.after(at);
        let mut key = at + 1;
        while key < end && !self.truncated {
            let name = &tree.cells[key];
            self.push_text(Kind::String, 0, name);
            self.path.push(Step::Name(self.text(name)));
            self.check(&rules.items, key + 1);
            self.path.pop();
            key = tree.after(key + 1);
        }
    }

    fn union(&mut self, node: &'a Node, any: &'a [Node], at: usize) {
        let kind = self.tree.cells[at].kind;
        // 1.0 is an integer, unless it may stay a number.
        let as_number =
            kind == Kind::Number && any.iter().any(|n| matches!(n.rules, Rules::Number(_)));
        let (out, before, truncated) = (self.out.len(), self.violations.len(), self.truncated);
        let mut only: Option<Vec<Violation>> = None;
        let mut fitting = 0;
        for alternative in any {
            if as_number && matches!(alternative.rules, Rules::Integer(_)) {
                continue;
            }
            self.check(alternative, at);
            if self.violations.len() == before && self.truncated == truncated {
                return;
            }
            self.out.truncate(out);
            self.truncated = truncated;
            let found = self.violations.split_off(before.min(self.violations.len()));
            let depth = self.path.len();
            let wrong_type = found
                .first()
                .is_some_and(|v| v.rule == "type" && v.pointer.matches('/').count() == depth);
            if !wrong_type {
                fitting += 1;
                only = Some(found);
            }
        }
        match only {
            // The value has the type of one alternative: what is wrong with it says more than that none fits.
            Some(found) if fitting == 1 && !found.is_empty() => self.violations.extend(found),
            _ => self.violate(Some(node), "anyOf", Vec::new()),
        }
    }

    /// A value of which nothing is declared, as it is. Returns the index behind it.
    fn copy(&mut self, at: usize) -> usize {
        let tree = self.tree;
        let cell = &tree.cells[at];
        match cell.kind {
            Kind::Text => self.push_text(Kind::String, 0, cell),
            Kind::List | Kind::Many | Kind::Map => {
                let kind = if cell.kind == Kind::Map {
                    Kind::Map
                } else {
                    Kind::List
                };
                self.push(kind, 0, cell.len, 0);
                let end = tree.after(at);
                let mut next = at + 1;
                while next < end {
                    next = self.copy(next);
                }
                return end;
            }
            _ => self.out.push(*cell),
        }
        at + 1
    }
}

fn position(fields: &[Field], name: &str, expected: usize) -> Option<usize> {
    let begin = expected.min(fields.len());
    let (before, from) = fields.split_at(begin);
    from.iter()
        .position(|field| field.name == name)
        .map(|i| begin + i)
        .or_else(|| before.iter().position(|field| field.name == name))
}

/// A decimal number as JSON and HTML write it: no "inf", no "nan", no hexadecimal.
fn as_number(text: &str) -> Option<f64> {
    let allowed = |b: u8| b.is_ascii_digit() || matches!(b, b'-' | b'+' | b'.' | b'e' | b'E');
    if text.is_empty() || text.starts_with('+') || !text.bytes().all(allowed) {
        return None;
    }
    text.parse::<f64>().ok().filter(|value| value.is_finite())
}
