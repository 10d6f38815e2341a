//! The edge over real sockets, with a backend of the tests' own.

mod drain;
mod files;
mod http;
mod long_bodies;
mod support;
