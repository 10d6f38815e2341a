//! Shared by the master and its workers: memory, which has token buckets and the store of applications; which worker leads; locks
//! by name; channels; and letters between workers.

pub(crate) mod channels;
pub(crate) mod lead;
pub(crate) mod locks;
pub(crate) mod memory;
mod mutex;
pub(crate) mod post;
pub(crate) mod rate;
pub(crate) mod store;
