//! System calls that the standard library does not have.
//!
//! - [`descriptors`]: high numbers for the server's own descriptors
//! - [`splice`]: moves bytes from a socket to a file, without a copy in this process

pub(crate) mod descriptors;
pub(crate) mod splice;
