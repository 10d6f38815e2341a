//! Parsed input: one flat vector of cells in document order.
//!
//! A container's cell is followed by the cells of its contents. Its `bits` are the index after the last of them, so
//! that it can be skipped; its `len` counts elements or members. A member is a key (a string) and its value.

use crate::input::{Cell, Kind};

/// Values of [`Cell::source`]: where the bytes of a text are.
pub(crate) const IN_BODY: u8 = 0;
pub(crate) const IN_ARENA: u8 = 1;

/// The number of cells of an uploaded file: content, name and type.
pub(crate) const FILE_CELLS: usize = 3;

/// Parsed input. Its texts are in the body that it was parsed from, or in the arena if they had to be decoded.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) cells: Vec<Cell>,
    pub(crate) arena: Vec<u8>,
}

/// The conversion cannot fail: bodies and the arena are shorter than 4 GB.
fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

impl Tree {
    pub(crate) fn clear(&mut self) {
        self.cells.clear();
        self.arena.clear();
    }

    pub(crate) fn scalar(&mut self, kind: Kind, bits: u64) {
        self.cells.push(Cell {
            kind,
            source: 0,
            class: 0,
            len: 0,
            bits,
        });
    }

    /// A text in the body.
    pub(crate) fn slice(&mut self, kind: Kind, at: usize, len: usize) {
        self.cells.push(Cell {
            kind,
            source: IN_BODY,
            class: 0,
            len: offset(len),
            bits: at as u64,
        });
    }

    /// A text that was appended to the arena from `at` on.
    pub(crate) fn decoded(&mut self, kind: Kind, at: usize) {
        self.cells.push(Cell {
            kind,
            source: IN_ARENA,
            class: 0,
            len: offset(self.arena.len() - at),
            bits: at as u64,
        });
    }

    /// Opens a container; [`Tree::close`] takes the returned index.
    pub(crate) fn open(&mut self, kind: Kind) -> usize {
        self.scalar(kind, 0);
        self.cells.len() - 1
    }

    pub(crate) fn close(&mut self, container: usize, count: usize) {
        let end = self.cells.len() as u64;
        let cell = &mut self.cells[container];
        cell.len = offset(count);
        cell.bits = end;
    }

    /// The index after the value at `at`.
    pub(crate) fn after(&self, at: usize) -> usize {
        let cell = &self.cells[at];
        if cell.kind.is_container() {
            usize::try_from(cell.bits).unwrap_or(usize::MAX)
        } else if cell.kind == Kind::File {
            at + FILE_CELLS
        } else {
            at + 1
        }
    }

    /// The text of a cell that has one.
    pub(crate) fn text<'a>(&'a self, body: &'a [u8], cell: &Cell) -> &'a str {
        cell.text(body, &self.arena)
    }
}

impl Tree {
    /// Appends the canonical form of the value at `at`, which is the same for equal values: 1 and 1.0 are equal, and so
    /// are objects whose members have a different order.
    pub(crate) fn canonical(&self, body: &[u8], at: usize, form: &mut Vec<u8>) {
        let cell = &self.cells[at];
        match cell.kind {
            Kind::Number => {
                let number = f64::from_bits(cell.bits);
                #[allow(clippy::cast_possible_truncation)]
                let integer = number as i64;
                #[allow(clippy::cast_precision_loss)]
                if integer as f64 == number {
                    form.push(b'i');
                    form.extend_from_slice(&integer.to_le_bytes());
                } else {
                    form.push(b'n');
                    form.extend_from_slice(&cell.bits.to_le_bytes());
                }
            }
            Kind::Integer => {
                form.push(b'i');
                form.extend_from_slice(&cell.bits.to_le_bytes());
            }
            Kind::String | Kind::Text => {
                form.push(b's');
                form.extend_from_slice(&cell.len.to_le_bytes());
                form.extend_from_slice(self.text(body, cell).as_bytes());
            }
            Kind::List | Kind::Many => {
                form.push(b'[');
                form.extend_from_slice(&cell.len.to_le_bytes());
                let end = self.after(at);
                let mut item = at + 1;
                while item < end {
                    self.canonical(body, item, form);
                    item = self.after(item);
                }
            }
            Kind::Map => {
                form.push(b'{');
                form.extend_from_slice(&cell.len.to_le_bytes());
                let end = self.after(at);
                let mut members = Vec::new();
                let mut key = at + 1;
                while key < end {
                    let mut member = Vec::new();
                    self.canonical(body, key, &mut member);
                    self.canonical(body, key + 1, &mut member);
                    members.push(member);
                    key = self.after(key + 1);
                }
                members.sort();
                form.extend(members.into_iter().flatten());
            }
            Kind::File => {
                form.push(b'f');
                let start = usize::try_from(cell.bits).unwrap_or(usize::MAX);
                let content = body.get(start..start.saturating_add(cell.len as usize));
                form.extend_from_slice(&cell.len.to_le_bytes());
                form.extend_from_slice(content.unwrap_or_default());
            }
            other => form.push(other as u8),
        }
    }
}
