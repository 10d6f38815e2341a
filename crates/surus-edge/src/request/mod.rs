//! From a request that an engine has parsed to a response that it can write.
//!
//! - [`edge`], [`settings`]: what all connections share, and what it is told
//! - [`backend`]: who answers
//! - [`service`]: a request's way to the backend; [`in_flight`]: its way back; [`rejection`]: where it ends before
//! - [`well_formed`]: what is asked of a request beyond what the engines check; [`ids`]: what it is called

pub(crate) mod backend;
pub(crate) mod edge;
pub(crate) mod ids;
pub(crate) mod in_flight;
pub(crate) mod rejection;
pub(crate) mod service;
pub(crate) mod settings;
pub(crate) mod well_formed;
