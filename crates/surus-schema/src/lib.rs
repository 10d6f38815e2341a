//! Input of PHP handlers: parsed, validated and described before PHP is entered.
//!
//! ```text
//! description (JSON, from PHP's reflection at boot) ──compile──► Schema ──► JSON Schema 2020-12 ──► OpenAPI 3.1
//!                                                                  │
//! body or query string ──json.rs, form.rs, multipart.rs──► Tree ──check──► Input, in the order of the constructors
//!                                                                  └─────► violations ──► problem+json
//! ```
//!
//! - [`description`]: what the PHP side says about a class; `compile`: from there to a [`schema`], which reads input
//! - `tree`: parsed input in one flat vector; `json`, `form`, `multipart`: who fills it
//! - `check`: a tree against a schema; `formats`: e-mail addresses, URLs, dates and their like
//! - [`input`]: what a class is built from, laid out for C
//! - [`violation`], [`messages`], [`problem`]: what is wrong, in the client's language, as problem+json
//! - `media`, `weights`: media types, and what a client likes best
//! - `json_schema`, [`openapi`], [`page`]: documents
//!
//! No I/O, no unsafe code, and nothing here knows PHP's engine.

#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro)]

mod check;
mod compile;
pub mod description;
mod form;
mod formats;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod input;
mod json;
mod json_schema;
mod media;
pub mod messages;
mod multipart;
pub mod openapi;
pub mod page;
pub mod problem;
pub mod schema;
mod tree;
pub mod violation;
mod weights;

pub use compile::CompileError;
pub use input::{Cell, Input, Kind};
pub use media::{Accepts, Media};
pub use messages::Messages;
pub use schema::{InputLimits, Schema};
pub use violation::{Rejected, Violation};
pub use weights::weighted;
