//! Values that contain others: objects, lists, maps.

use super::{parameter, Checker, Step};
use crate::input::Kind;
use crate::schema::{Class, Field, Lists, Node};

impl<'a> Checker<'a> {
    pub(super) fn object(&mut self, node: &Node, class: u16, at: usize) {
        let tree = self.tree;
        let cell = &tree.cells[at];
        let Class::Object { fields, strict } = &self.schema.classes[usize::from(class)] else {
            return;
        };
        if cell.kind != Kind::Map {
            return self.wrong_type(node, "object", cell);
        }
        if cell.len as usize == fields.len() && self.is_in_order(fields, at + 1) {
            self.open(class, fields);
            let mut key = at + 1;
            for field in fields {
                self.path.push(Step::Name(&field.name));
                self.check(&field.node, key + 1);
                self.path.pop();
                key = tree.after(key + 1);
            }
            return;
        }
        let base = self.places.len();
        self.places.resize(base + fields.len(), 0);
        let end = tree.after(at);
        let mut key = at + 1;
        // Most clients send properties in a fixed order, which is often that of the declaration.
        let mut expected = 0;
        while key < end {
            let name = &tree.cells[key];
            let value = key + 1;
            let bytes = name.bytes(self.body, &tree.arena);
            match position(fields, bytes, expected) {
                Some(field) => {
                    expected = field + 1;
                    if self.places[base + field] != 0 {
                        self.path.push(Step::Name(self.text(name)));
                        self.violate(None, "duplicate", Vec::new());
                        self.path.pop();
                    }
                    self.places[base + field] = u32::try_from(value).unwrap_or(0);
                }
                // Files that the class does not declare are available from the request.
                None if *strict && tree.cells[value].kind != Kind::File => {
                    self.path.push(Step::Name(self.text(name)));
                    self.violate(None, "additionalProperties", Vec::new());
                    self.path.pop();
                }
                None => {}
            }
            key = tree.after(value);
        }
        self.open(class, fields);
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

    fn open(&mut self, class: u16, fields: &[Field]) {
        let count = u32::try_from(fields.len()).unwrap_or(0);
        self.push(Kind::Object, class, count, 0);
    }

    /// Whether the members are in the order of the properties, as many clients send them. `key` is that of the first
    /// one.
    fn is_in_order(&self, fields: &[Field], key: usize) -> bool {
        let tree = self.tree;
        let mut key = key;
        fields.iter().all(|field| {
            let name = tree.cells[key].bytes(self.body, &tree.arena);
            key = tree.after(key + 1);
            name == field.name.as_bytes()
        })
    }

    pub(super) fn list(&mut self, node: &'a Node, rules: &'a Lists, at: usize) {
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
            // A single value of a name that may be sent several times. An empty one does not count.
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

    pub(super) fn count(&mut self, node: &Node, rules: &Lists, count: usize) {
        if count < rules.min {
            let parameters = vec![parameter("min", rules.min), parameter("actual", count)];
            self.violate(Some(node), "minItems", parameters);
        }
        if count > rules.max {
            let parameters = vec![parameter("max", rules.max), parameter("actual", count)];
            self.violate(Some(node), "maxItems", parameters);
        }
    }

    pub(super) fn unique(&mut self, node: &Node, at: usize) {
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

    pub(super) fn map(&mut self, node: &'a Node, rules: &'a Lists, at: usize) {
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

    /// A value without a declared type: it is copied, unless it contains files.
    pub(super) fn anything(&mut self, node: &Node, at: usize) {
        let cells = &self.tree.cells[at..self.tree.after(at)];
        if cells.iter().any(|cell| cell.kind == Kind::File) {
            self.refuse_files(node, at);
        } else {
            self.copy(at);
        }
    }

    /// Refuses the files in the value: no type is declared for them.
    fn refuse_files(&mut self, node: &Node, at: usize) {
        let tree = self.tree;
        let cell = &tree.cells[at];
        let end = tree.after(at);
        let mut next = at + 1;
        match cell.kind {
            Kind::File => self.wrong_type(node, "string", cell),
            Kind::List | Kind::Many => {
                for index in 0..cell.len as usize {
                    self.path.push(Step::Index(index));
                    self.refuse_files(node, next);
                    self.path.pop();
                    next = tree.after(next);
                }
            }
            Kind::Map => {
                while next < end {
                    self.path.push(Step::Name(self.text(&tree.cells[next])));
                    self.refuse_files(node, next + 1);
                    self.path.pop();
                    next = tree.after(next + 1);
                }
            }
            _ => {}
        }
    }

    /// Copies a value without files. Returns the index after it.
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

fn position(fields: &[Field], name: &[u8], expected: usize) -> Option<usize> {
    let is_named = |field: &Field| field.name.as_bytes() == name;
    let begin = expected.min(fields.len());
    let (before, from) = fields.split_at(begin);
    from.iter()
        .position(is_named)
        .map(|i| begin + i)
        .or_else(|| before.iter().position(is_named))
}
