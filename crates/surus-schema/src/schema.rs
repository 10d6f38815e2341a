//! A description, compiled to a form that is quick to check.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use regex::Regex;

use crate::check::Checker;
use crate::description::{self, Description, Format};
use crate::input::{Cell, Input};
use crate::tree::Tree;
use crate::violation::Rejected;
use crate::{form, json, multipart, Media};

/// Bounds of one input.
#[derive(Clone, Copy, Debug)]
pub struct InputLimits {
    /// Length of the body or the query string.
    pub bytes: usize,
    /// Levels of lists and objects.
    pub depth: usize,
}

/// The schema of one input.
#[derive(Debug)]
pub struct Schema {
    pub(crate) description: Description,
    pub(crate) classes: Vec<Class>,
    pub(crate) root: Node,
    pub(crate) limits: InputLimits,
}

#[derive(Debug)]
pub(crate) enum Class {
    Object { fields: Vec<Field>, strict: bool },
    Enum(Cases),
    Date,
    File,
}

#[derive(Debug)]
pub(crate) enum Cases {
    Strings(Vec<String>),
    Integers(Vec<i64>),
}

#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) required: bool,
    pub(crate) node: Node,
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) rules: Rules,
    pub(crate) nullable: bool,
    pub(crate) messages: Option<HashMap<String, Arc<str>>>,
}

#[derive(Debug)]
pub(crate) enum Rules {
    Mixed,
    Null,
    Boolean,
    Integer(Integers),
    Number(description::Range),
    String(Box<Strings>),
    Enum(u16),
    Date(u16, Format),
    Object(u16),
    File(Files),
    List(Box<Lists>),
    Map(Box<Lists>),
    Union(Vec<Node>),
}

/// Sizes are in bytes.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) class: u16,
    pub(crate) min: usize,
    pub(crate) max: usize,
}

#[derive(Debug)]
pub(crate) struct Integers {
    pub(crate) minimum: Option<i64>,
    pub(crate) maximum: Option<i64>,
    pub(crate) multiple_of: Option<i64>,
}

#[derive(Debug)]
pub(crate) struct Strings {
    pub(crate) min: usize,
    pub(crate) max: usize,
    pub(crate) pattern: Option<Regex>,
    pub(crate) format: Option<Format>,
    pub(crate) schemes: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct Lists {
    pub(crate) items: Node,
    pub(crate) min: usize,
    pub(crate) max: usize,
    pub(crate) unique: bool,
}

impl Schema {
    /// The limits of its class, or the defaults: 1 MiB and 32 levels.
    #[must_use]
    pub fn limits(&self) -> InputLimits {
        self.limits
    }

    /// Reads a body that has this media type.
    pub fn read(&self, media: &Media, body: Bytes) -> Result<Input, Rejected> {
        self.bound(body.len())?;
        match media {
            Media::Json => self.with_tree(body, |body, tree| {
                json::parse(body, self.limits.depth, tree)
            }),
            Media::Form => self.with_tree(body, |body, tree| {
                form::parse(body, self.limits.depth, tree)
            }),
            Media::Multipart { boundary } => self.with_tree(body, |body, tree| {
                multipart::parse(body, boundary, self.limits.depth, tree)
            }),
        }
    }

    /// Reads a query string, without its question mark.
    pub fn read_query(&self, query: &str) -> Result<Input, Rejected> {
        self.read(&Media::Form, Bytes::copy_from_slice(query.as_bytes()))
    }

    fn bound(&self, size: usize) -> Result<(), Rejected> {
        if size > self.limits.bytes {
            return Err(Rejected::TooLarge {
                limit: self.limits.bytes,
            });
        }
        Ok(())
    }

    fn with_tree(
        &self,
        body: Bytes,
        parse: impl FnOnce(&[u8], &mut Tree) -> Result<(), Rejected>,
    ) -> Result<Input, Rejected> {
        thread_local! {
            /// A tree is not needed after its check: its memory is reused.
            static TREE: std::cell::RefCell<Tree> = std::cell::RefCell::default();
        }
        /// A tree that grew larger than this is not kept.
        const KEPT: usize = 16 * 1024;
        TREE.with_borrow_mut(|tree| {
            tree.clear();
            parse(&body, tree)?;
            let cells = self.check(&body, tree)?;
            let arena = if tree.arena.is_empty() {
                Vec::new()
            } else {
                std::mem::take(&mut tree.arena)
            };
            if tree.cells.capacity() > KEPT {
                *tree = Tree::default();
            }
            Ok(Input::new(cells, body, arena))
        })
    }

    fn check(&self, body: &[u8], tree: &Tree) -> Result<Vec<Cell>, Rejected> {
        let mut checker = Checker::new(self, body, tree);
        checker.root();
        checker.result()
    }
}
