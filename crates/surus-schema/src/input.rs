//! Valid input, for the code that builds objects.

use crate::tree::IN_BODY;
use bytes::Bytes;

/// The kind of a [`Cell`]. The numbers are part of the contract with C (`surus_cell` in bridge.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// No value.
    Null = 0,
    /// The boolean.
    False = 1,
    /// The boolean.
    True = 2,
    /// `bits` is an `i64`.
    Integer = 3,
    /// `bits` are those of an `f64`.
    Number = 4,
    /// `len` bytes of UTF-8 that begin at `bits` in the body (`source` 0) or in the arena (1).
    String = 5,
    /// `len` values follow.
    List = 6,
    /// `len` pairs of a key (a string) and a value follow.
    Map = 7,
    /// An object of `class`: a value for each parameter of its constructor follows.
    Object = 8,
    /// Case number `bits` of the enum `class`.
    Enum = 9,
    /// The parameter was not given: its default.
    Default = 10,
    /// A text, as [`Kind::String`], that the constructor of `class` takes: a date.
    Parsed = 11,
    /// Only in a tree: text of a form, whose type the schema decides.
    Text = 12,
    /// Only in a tree: the values of a name that a form has several times.
    Many = 13,
    /// An uploaded file, of `class`: `len` bytes that begin at `bits` in the body. Two strings follow, the name and the
    /// media type, as sent by the client.
    File = 14,
}

impl Kind {
    pub(crate) fn is_container(self) -> bool {
        matches!(self, Kind::List | Kind::Map | Kind::Many)
    }
}

/// One value, or the head of a value whose parts follow.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Cell {
    /// Its kind; [`Kind`] defines the other fields.
    pub kind: Kind,
    /// Where a text is: 0 for the body, 1 for the arena.
    pub source: u8,
    /// Index in [`Description::classes`](crate::description::Description::classes).
    pub class: u16,
    /// The number of bytes, or of values that follow.
    pub len: u32,
    /// A number, an offset in bytes, or the index of a case.
    pub bits: u64,
}

/// Input that has passed its schema.
#[derive(Debug)]
pub struct Input {
    cells: Vec<Cell>,
    body: Bytes,
    arena: Vec<u8>,
}

impl Input {
    pub(crate) fn new(cells: Vec<Cell>, body: Bytes, arena: Vec<u8>) -> Self {
        Input { cells, body, arena }
    }

    /// The values, in the order of the schema: never empty.
    #[must_use]
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// The bytes of texts with `source` 0.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// The bytes of texts with `source` 1.
    #[must_use]
    pub fn arena(&self) -> &[u8] {
        &self.arena
    }

    /// The text of a cell that has one.
    #[must_use]
    pub fn text(&self, cell: &Cell) -> &str {
        cell.text(&self.body, &self.arena)
    }
}

impl Cell {
    /// Its text, which is in the body, or in the arena if it had to be decoded. Parsers accept valid UTF-8 only.
    pub(crate) fn text<'a>(&self, body: &'a [u8], arena: &'a [u8]) -> &'a str {
        std::str::from_utf8(self.bytes(body, arena)).unwrap_or("")
    }

    /// The bytes of its text.
    pub(crate) fn bytes<'a>(&self, body: &'a [u8], arena: &'a [u8]) -> &'a [u8] {
        let from = if self.source == IN_BODY { body } else { arena };
        let start = usize::try_from(self.bits).unwrap_or(usize::MAX);
        from.get(start..start.saturating_add(self.len as usize))
            .unwrap_or_default()
    }
}
