//! What is asked of the kernel past the standard library.
//!
//! - [`descriptors`]: the server's own keep out of PHP's way
//! - [`splice`]: bytes from a socket to a file, past this process

pub(crate) mod descriptors;
pub(crate) mod splice;
