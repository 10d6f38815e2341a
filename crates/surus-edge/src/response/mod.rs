//! Responses: what a backend or the edge itself gives, and what is made of it on its way.
//!
//! - [`reply`]: the bodies; [`file_body`], [`range`]: files and parts of them; [`upgrade`]: connections that leave HTTP
//! - [`compress`], [`encoding`]: what is compressed on its way
//! - [`length`], [`date`]: what a response says of itself is true

pub(crate) mod compress;
pub(crate) mod date;
pub(crate) mod encoding;
pub(crate) mod file_body;
pub(crate) mod length;
pub(crate) mod range;
pub(crate) mod reply;
pub(crate) mod upgrade;
