//! Memory of a master and its workers: buckets of tokens, and the cache of the application.

pub(crate) mod cache;
pub(crate) mod memory;
pub(crate) mod rate;
