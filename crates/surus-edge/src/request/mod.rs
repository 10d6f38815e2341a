//! From a request that an engine has parsed to a response that it can write.
//!
//! - [`edge`], [`settings`]: what all connections share, and its settings
//! - [`backend`]: the interface of backends
//! - [`service`]: passes requests to the backend; [`in_flight`]: its responses; [`rejection`]: refused requests
//! - [`well_formed`]: checks of requests that the engines do not make; [`ids`]: ids of requests

pub(crate) mod backend;
pub(crate) mod edge;
pub(crate) mod ids;
pub(crate) mod in_flight;
pub(crate) mod rejection;
pub(crate) mod service;
pub(crate) mod settings;
pub(crate) mod well_formed;
