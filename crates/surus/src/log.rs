//! Log lines: to stderr, one write each, so that those of several workers stay whole.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// `SURUS_LOG` filters, by level or by target: `warn`, `php=debug`. Without it everything from `info` up is logged,
/// but not what clients do to HTTP/2: each could fill the log with it.
pub(crate) fn start() {
    let filter =
        EnvFilter::try_from_env("SURUS_LOG").unwrap_or_else(|_| EnvFilter::new("info,h2=error"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
}
