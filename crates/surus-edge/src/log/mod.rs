//! Log entries about clients.
//!
//! - [`access`]: the access log
//! - [`refusal`]: why something was refused without the backend
//! - [`throttled`]: messages that any number of clients may cause are logged once a minute

pub(crate) mod access;
pub(crate) mod refusal;
pub(crate) mod throttled;
