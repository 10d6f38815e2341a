//! Bodies of requests, between the engine that reads them and the backend that consumes them.
//!
//! - [`request_body`]: what a backend gets, bounded in bytes and time; [`incoming`]: what an engine provides
//! - [`spool`], [`stored`]: bodies read to their end first, into memory or a file; [`form`]: finds the files of forms
//! - [`file_pool`]: pooled files for bodies; [`offload`]: helper threads that write them

pub(crate) mod file_pool;
pub(crate) mod form;
pub(crate) mod incoming;
pub(crate) mod offload;
pub(crate) mod request_body;
pub(crate) mod spool;
pub(crate) mod stored;
