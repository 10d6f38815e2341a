//! Shared by the master and its workers: memory, which has token buckets and the cache of applications, and which worker leads.

pub(crate) mod cache;
pub(crate) mod lead;
pub(crate) mod memory;
pub(crate) mod rate;
