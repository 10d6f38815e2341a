//! Memory shared by the master and its workers: token buckets, and the cache of applications.

pub(crate) mod cache;
pub(crate) mod memory;
pub(crate) mod rate;
