//! Input of PHP handlers: parsed, validated and described before PHP is entered.
//!
//! ```text
//! description (JSON, from PHP's reflection at boot) ──compile──► Schema ──► JSON Schema 2020-12 ──► OpenAPI 3.1
//!                                                                  │
//! body or query string ──json.rs, form.rs, multipart.rs──► Tree ──check──► Input, in the order of the constructors
//!                                                                  └─────► violations ──► problem+json
//! ```
//!
//! - [`description`]: the PHP side's description of a class; `compile`: turns it into a [`schema`], which reads input
//! - `tree`: parsed input in one flat vector; `json`, `form`, `multipart`: its parsers
//! - `check`: checks a tree against a schema; `formats`: e-mail addresses, URLs, dates and similar formats
//! - [`input`]: valid values to build objects from, laid out for C
//! - [`violation`], [`messages`], [`problem`]: errors, in the client's language, as problem+json
//! - `media`, `weights`: media types, and the preferences of a client
//! - `json_schema`, [`openapi`], [`page`]: documents
//!
//! No I/O, no unsafe code, and no dependency on PHP's engine.

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
