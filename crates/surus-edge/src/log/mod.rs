//! What is written down of clients.
//!
//! - [`access`]: the access log
//! - [`refusal`]: why something was refused without the backend
//! - [`throttled`]: what any number of clients may do at any time is logged once a minute

pub(crate) mod access;
pub(crate) mod refusal;
pub(crate) mod throttled;
