//! What of the configuration is the edge's.

use surus_edge::{Limits, SpoolLimits};

use super::tables::{App, Server};
use super::units::{Size, Span};
use super::{at_least_one, fill, ConfigError};

/// The limits of each worker's edge. `max_body` of zero is no limit, as it is for PHP.
pub(super) fn limits(server: &mut Server, max_body: Size) -> Result<Limits, ConfigError> {
    let default = Limits::default();
    let header = fill(&mut server.max_header, Size(default.header_bytes as u64));
    Ok(Limits {
        connections: at_least_one(
            &mut server.max_connections,
            default.connections,
            "max_connections",
        )?,
        connections_per_address: fill(
            &mut server.max_connections_per_address,
            default.connections_per_address,
        ),
        header_bytes: usize::try_from(header.0).unwrap_or(usize::MAX),
        header_count: at_least_one(&mut server.max_headers, default.header_count, "max_headers")?,
        body_bytes: match max_body.0 {
            0 => u64::MAX,
            bytes => bytes,
        },
        header_timeout: fill(&mut server.header_timeout, Span(default.header_timeout)).0,
        body_timeout: fill(&mut server.body_timeout, Span(default.body_timeout)).0,
        write_timeout: fill(&mut server.write_timeout, Span(default.write_timeout)).0,
        min_rate: fill(&mut server.min_rate, Size(default.min_rate)).0,
        keep_alive: fill(&mut server.keep_alive, Span(default.keep_alive)).0,
        drain: fill(&mut server.drain_timeout, Span(default.drain)).0,
    })
}

/// Where request bodies are kept.
pub(super) fn spool(app: &mut App) -> SpoolLimits {
    let default = SpoolLimits::default();
    SpoolLimits {
        memory_each: default.memory_each,
        memory: fill(&mut app.body_memory, Size(default.memory)).0,
        disk: fill(&mut app.body_disk, Size(default.disk)).0,
        folder: fill(&mut app.spool_folder, default.folder),
    }
}
