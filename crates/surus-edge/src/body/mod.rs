//! Bodies of requests, between the engine that reads them and the backend that wants them.
//!
//! - [`request_body`]: what a backend gets, bounded in bytes and time; [`incoming`]: what an engine gives
//! - [`spool`], [`stored`]: bodies read to their end first, in memory or in a file; [`form`]: the files of forms, apart
//! - [`file_pool`]: those files; [`offload`]: helper threads that write them

pub(crate) mod file_pool;
pub(crate) mod form;
pub(crate) mod incoming;
pub(crate) mod offload;
pub(crate) mod request_body;
pub(crate) mod spool;
pub(crate) mod stored;
