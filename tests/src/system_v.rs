//! System V queues and semaphores that PHP scripts make: the kernel keeps them when everybody has ended.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::watchdog;

/// What scripts make under `crc32($path) & 0x7fffffff`, gone when this is.
#[derive(Debug)]
pub struct SystemV {
    key: u32,
}

impl SystemV {
    pub fn of(path: &Path) -> Self {
        let key = crc32(path.to_str().expect("UTF-8").as_bytes()) & 0x7fff_ffff;
        watchdog::key(key);
        Self { key }
    }

    /// Whether there is a queue or a semaphore.
    pub fn exists(&self) -> bool {
        let listed = Command::new("ipcs").args(["-q", "-s"]).output();
        let listed = listed.expect("ipcs of util-linux").stdout;
        String::from_utf8_lossy(&listed).contains(&format!("0x{:08x}", self.key))
    }
}

impl Drop for SystemV {
    fn drop(&mut self) {
        let key = self.key.to_string();
        // Most likely there is nothing left, which is no error.
        let _ = Command::new("ipcrm")
            .args(["-Q", &key, "-S", &key])
            .stderr(Stdio::null())
            .status();
        watchdog::key_gone(self.key);
    }
}

/// PHP's.
fn crc32(bytes: &[u8]) -> u32 {
    let mut sum = !0;
    for &byte in bytes {
        sum ^= u32::from(byte);
        for _ in 0..8 {
            sum = (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg());
        }
    }
    !sum
}
