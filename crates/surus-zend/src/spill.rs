//! Response bytes that wait for a slow client in a file without a name, so that whoever made them is free again. What
//! nginx's `fastcgi_temp_path` is for php-fpm.

use std::{fs::File, io, os::unix::fs::FileExt};

use bytes::Bytes;

use crate::room;

/// Bytes of one response; beyond that its PHP waits.
const MAX_EACH: u64 = 64 << 20;

/// The file of one response: what is written comes out in the same order. Made when it is needed.
#[derive(Default)]
pub(crate) struct Spill {
    file: Option<File>,
    written: u64,
    read: u64,
}

impl Spill {
    /// Bytes that are left in it.
    pub(crate) fn len(&self) -> u64 {
        self.written - self.read
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn has_room(&self) -> bool {
        self.written < MAX_EACH && !room::is_short_of_disk()
    }

    /// Adds bytes, over the bound if need be.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let file = match &self.file {
            Some(file) => file,
            None => self.file.insert(tempfile::tempfile_in(room::folder())?),
        };
        file.write_all_at(bytes, self.written)?;
        let size = bytes.len() as u64;
        self.written += size;
        room::take_disk(size);
        Ok(())
    }

    /// The next bytes, so many at most; none if there are none. A file that is read to its end gives its room back.
    pub(crate) fn read(&mut self, most: usize) -> io::Result<Bytes> {
        let Some(file) = self.file.as_ref().filter(|_| !self.is_empty()) else {
            return Ok(Bytes::new());
        };
        let size = usize::try_from(self.len()).map_or(most, |left| left.min(most));
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
        room::give_disk(self.written);
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
    use crate::ResponseRoom;

    #[test]
    fn bytes_come_out_in_order_and_room_comes_back() {
        let bounds = ResponseRoom {
            disk: 1000,
            ..ResponseRoom::default()
        };
        bounds.enter();
        let mut spill = Spill::default();
        assert!(spill.is_empty() && spill.has_room());
        for round in 0..3u8 {
            spill.write(&vec![round; 70_000]).expect("write");
            spill.write(&[round + 100; 600]).expect("write");
            assert!(!spill.has_room());
            let mut got = Vec::new();
            while !spill.is_empty() {
                got.extend_from_slice(&spill.read(64 * 1024).expect("read"));
            }
            assert_eq!(got[..70_000], vec![round; 70_000]);
            assert_eq!(got[70_000..], [round + 100; 600]);
            assert!(spill.has_room());
        }
        spill.write(&[0; 2000]).expect("write");
        assert!(!Spill::default().has_room());
        drop(spill);
        assert!(Spill::default().has_room());
    }
}
