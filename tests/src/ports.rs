//! Free TCP ports.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// Below Linux's default range for outgoing connections (32768 up), so that none of the many clients
/// takes the port between this call and the server's `bind`.
const RANGE: std::ops::Range<u32> = 10_000..32_000;

/// A port on 127.0.0.1 that nobody listens on; never the same twice in one process.
pub fn free() -> u16 {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let size = RANGE.end - RANGE.start;
    // Test binaries that run at the same time start far apart.
    let start = std::process::id().wrapping_mul(211);
    for _ in 0..size {
        let step = COUNT.fetch_add(1, Ordering::Relaxed);
        let port = RANGE.start + start.wrapping_add(step) % size;
        let port = u16::try_from(port).expect("the range is of ports");
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
    panic!("no free port");
}
