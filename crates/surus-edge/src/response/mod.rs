//! Responses of a backend or of the edge itself, and their processing.
//!
//! - [`reply`]: the bodies; [`file_body`], [`range`]: files and parts of them; [`upgrade`]: connections that leave HTTP
//! - [`compress`], [`encoding`]: compression
//! - [`length`], [`date`]: correct `Content-Length` and `Date` headers

pub(crate) mod compress;
pub(crate) mod date;
pub(crate) mod encoding;
pub(crate) mod file_body;
pub(crate) mod length;
pub(crate) mod range;
pub(crate) mod reply;
pub(crate) mod upgrade;
