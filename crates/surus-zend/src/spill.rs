//! Response bytes that wait for a slow client in a file without a name, so that the isolate that made them is free again.
//! What nginx's `fastcgi_temp_path` is for php-fpm.

use std::{
    cell::Cell,
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    rc::Rc,
};

use bytes::Bytes;

/// Bytes of one response; beyond that its PHP waits.
const MAX_EACH: u64 = 64 << 20;

/// Bytes per read.
const BLOCK: u64 = 64 * 1024;

/// The bound on the files of one worker.
#[derive(Debug)]
pub(crate) struct SpillSpace {
    limit: u64,
    used: Cell<u64>,
    folder: PathBuf,
}

impl SpillSpace {
    /// `limit` is in bytes; zero: nothing is spilled.
    pub(crate) fn new(limit: u64, folder: &Path) -> Rc<Self> {
        Rc::new(SpillSpace {
            limit,
            used: Cell::new(0),
            folder: folder.to_path_buf(),
        })
    }
}

/// The file of one response: what is written comes out in the same order. Made when it is needed.
pub(crate) struct Spill {
    space: Rc<SpillSpace>,
    file: Option<File>,
    written: u64,
    read: u64,
}

impl Spill {
    pub(crate) fn new(space: Rc<SpillSpace>) -> Self {
        Spill {
            space,
            file: None,
            written: 0,
            read: 0,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.read == self.written
    }

    pub(crate) fn has_room(&self) -> bool {
        self.written < MAX_EACH && self.space.used.get() < self.space.limit
    }

    /// Adds bytes, over the bound if need be.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let file = match &self.file {
            Some(file) => file,
            None => self.file.insert(tempfile::tempfile_in(&self.space.folder)?),
        };
        file.write_all_at(bytes, self.written)?;
        let size = bytes.len() as u64;
        self.written += size;
        self.space.used.set(self.space.used.get() + size);
        Ok(())
    }

    /// The next bytes; none if there are none. A file that is read to its end gives its room back.
    pub(crate) fn read(&mut self) -> io::Result<Bytes> {
        let Some(file) = self.file.as_ref().filter(|_| !self.is_empty()) else {
            return Ok(Bytes::new());
        };
        let size = usize::try_from(BLOCK.min(self.written - self.read)).unwrap_or(0);
        let mut block = vec![0; size];
        file.read_exact_at(&mut block, self.read)?;
        self.read += size as u64;
        if self.is_empty() {
            file.set_len(0)?;
            self.give_back();
        }
        Ok(Bytes::from(block))
    }

    fn give_back(&mut self) {
        self.space.used.set(self.space.used.get() - self.written);
        self.written = 0;
        self.read = 0;
    }
}

impl Drop for Spill {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_in_order_and_room_comes_back() {
        let space = SpillSpace::new(1000, &std::env::temp_dir());
        let mut spill = Spill::new(Rc::clone(&space));
        assert!(spill.is_empty() && spill.has_room());
        for round in 0..3u8 {
            spill.write(&vec![round; 70_000]).expect("write");
            spill.write(&[round + 100; 600]).expect("write");
            assert!(!spill.has_room());
            let mut got = Vec::new();
            while !spill.is_empty() {
                got.extend_from_slice(&spill.read().expect("read"));
            }
            assert_eq!(got[..70_000], vec![round; 70_000]);
            assert_eq!(got[70_000..], [round + 100; 600]);
            assert_eq!(space.used.get(), 0);
        }
        spill.write(b"left").expect("write");
        drop(spill);
        assert_eq!(space.used.get(), 0);
    }
}
