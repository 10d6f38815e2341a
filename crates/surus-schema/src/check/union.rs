//! Values with several alternatives.

use serde_json::Value;

use super::Checker;
use crate::input::Kind;
use crate::schema::{Node, Rules};
use crate::violation::Violation;

impl<'a> Checker<'a> {
    /// Takes the first alternative that the value fits. If there is none, reports the violations of the alternative
    /// that is most likely meant, since they are more helpful than "none fits".
    pub(super) fn union(&mut self, node: &'a Node, any: &'a [Node], at: usize) {
        let kind = self.tree.cells[at].kind;
        // 1.0 is an integer, unless there is an alternative for numbers.
        let as_number =
            kind == Kind::Number && any.iter().any(|n| matches!(n.rules, Rules::Number(_)));
        let (out, before, truncated) = (self.out.len(), self.violations.len(), self.truncated);
        let depth = self.path.len();
        let mut types: Vec<Value> = Vec::new();
        let mut close: Vec<Vec<Violation>> = Vec::new();
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
            match found.first() {
                Some(first) if first.rule == "type" && level(first) == depth => {
                    let expected = first.parameters.iter().find(|(name, _)| name == "expected");
                    types.extend(expected.map(|(_, value)| value.clone()));
                }
                _ => close.push(found),
            }
        }
        if close.is_empty() {
            if node.nullable {
                types.push("null".into());
            }
            types.dedup();
            return self.wrong_type(node, types, &self.tree.cells[at]);
        }
        let far = |found: &[Violation]| found.iter().filter(|v| is_other(v, depth)).count();
        let least = close.iter().map(|found| far(found)).min();
        close.retain(|found| Some(far(found)) == least);
        close.dedup();
        match close.as_mut_slice() {
            [found] if !found.is_empty() => self.violations.append(found),
            _ => self.violate(Some(node), "anyOf", Vec::new()),
        }
    }
}

/// The depth of a violation's value.
fn level(violation: &Violation) -> usize {
    violation.pointer.matches('/').count()
}

/// Whether a violation indicates that the object is not of this class at all.
fn is_other(violation: &Violation, depth: usize) -> bool {
    level(violation) == depth + 1
        && matches!(
            &*violation.rule,
            "required" | "additionalProperties" | "enum" | "type"
        )
}
