//! Checks a parsed tree against a schema.
//!
//! Valid values are written out in the order of the constructors' parameters; invalid ones become violations. All
//! violations are found, up to a bound.

mod containers;
mod union;
mod values;

use std::borrow::Cow;

use serde_json::Value;

use crate::formats;
use crate::input::{Cell, Kind};
use crate::schema::{Node, Rules, Schema};
use crate::tree::Tree;
use crate::violation::{push_segment, Rejected, Violation, MAX_VIOLATIONS};

pub(crate) struct Checker<'a> {
    schema: &'a Schema,
    body: &'a [u8],
    tree: &'a Tree,
    out: Vec<Cell>,
    violations: Vec<Violation>,
    truncated: bool,
    path: Vec<Step<'a>>,
    /// The index of the value of each property, for all enclosing objects; 0, which is the root's index, is none.
    places: Vec<u32>,
    /// The number of values that may still be checked: otherwise nested alternatives would multiply.
    budget: usize,
}

/// The most checks per value, on average.
const CHECKS_PER_VALUE: usize = 16;

#[derive(Clone, Copy)]
enum Step<'a> {
    Name(&'a str),
    Index(usize),
}

type Parameters = Vec<(Cow<'static, str>, Value)>;

#[cold]
#[inline(never)]
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

    // ---- violations

    #[cold]
    #[inline(never)]
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

    #[cold]
    #[inline(never)]
    fn wrong_type(&mut self, node: &Node, expected: impl Into<Value>, cell: &Cell) {
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
            // If a form has a name several times, the last value counts, as in PHP; files and texts are separate.
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
            // An empty field of a form is null, except where "" is a valid value.
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
            Rules::Mixed => self.anything(node, at),
        }
    }
}
