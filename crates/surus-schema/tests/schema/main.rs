//! The crate as its users see it: descriptions in, input or violations out.
#![forbid(unsafe_code)]

mod documents;
mod forms;
mod json;
mod random;
mod rules;
mod support;
