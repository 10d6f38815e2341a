//! Bytes in a file without a name: of a response for a slow client, so that its PHP is free again (as with
//! `fastcgi_temp_path` of nginx and php-fpm), or of a body that a handler waits for.

use std::{fs::File, io, os::unix::fs::FileExt};

use bytes::Bytes;

use crate::{
    body::room,
    body::{
        relief,
        room::{Disk, Gathered},
    },
    high::lifted,
};

/// The most bytes of one response; beyond that its PHP waits, unless another request waits for its place.
const MAX_EACH: u64 = 64 << 20;

/// First in, first out. The file is created on demand.
#[derive(Default)]
pub(crate) struct Spill {
    disk: Disk,
    file: Option<File>,
    written: u64,
    read: u64,
    /// Bytes that follow those of the file: writing each small piece to the file would take longer than PHP takes.
    last: Gathered,
}

impl Spill {
    /// For the body of a request.
    pub(crate) fn of_body() -> Self {
        let mut spill = Spill::default();
        spill.disk = Disk::Bodies;
        spill
    }

    /// The number of unread bytes.
    pub(crate) fn len(&self) -> u64 {
        self.written - self.read + self.last.len() as u64
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn has_room(&self) -> bool {
        let is_long = self.disk == Disk::Responses && self.written >= MAX_EACH;
        (!is_long || relief::is_wanted()) && !self.disk.is_short()
    }

    /// Adds bytes, even beyond the bound.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() >= Gathered::PIECE {
            self.write_last()?;
            return self.put(bytes);
        }
        self.last.add(bytes);
        if self.last.len() >= Gathered::ENOUGH {
            self.write_last()?;
        }
        Ok(())
    }

    fn write_last(&mut self) -> io::Result<()> {
        if self.last.is_empty() {
            return Ok(());
        }
        let last = self.last.take();
        self.put(&last)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        let file = match &self.file {
            Some(file) => file,
            None => self
                .file
                .insert(lifted(tempfile::tempfile_in(room::folder())?)),
        };
        file.write_all_at(bytes, self.written)?;
        let size = bytes.len() as u64;
        self.written += size;
        self.disk.take(size);
        Ok(())
    }

    /// The next bytes, at most `most`; empty if there are none. A file that is read to its end is truncated.
    pub(crate) fn read(&mut self, most: usize) -> io::Result<Bytes> {
        let left = self.written - self.read;
        let Some(file) = self.file.as_ref().filter(|_| left > 0) else {
            let size = self.last.len().min(most);
            let mut last = self.last.take();
            let first = last.split_to(size);
            self.last.add(&last);
            return Ok(first);
        };
        let size = usize::try_from(left).map_or(most, |left| left.min(most));
        let mut block = vec![0; size];
        file.read_exact_at(&mut block, self.read)?;
        self.read += size as u64;
        if self.read == self.written {
            file.set_len(0)?;
            self.give_back();
        }
        Ok(Bytes::from(block))
    }

    fn give_back(&mut self) {
        self.disk.give(self.written);
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
    use crate::body::room::Room;

    fn enter(disk: u64) {
        let bounds = Room {
            disk,
            ..Room::default()
        };
        bounds.enter();
    }

    #[test]
    fn bytes_come_out_in_order_and_room_comes_back() {
        enter(1000);
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
        spill.write(&[0; 5000]).expect("write");
        assert!(!Spill::default().has_room());
        assert!(Spill::of_body().has_room(), "that is another bound");
        drop(spill);
        assert!(Spill::default().has_room());
    }

    /// Whatever their lengths, and however much is read in between.
    #[test]
    fn small_pieces_stay_in_their_order() {
        enter(1 << 30);
        let mut spill = Spill::default();
        let (mut put, mut got) = (Vec::new(), Vec::new());
        for i in 0..4000_usize {
            let piece = vec![i as u8; [1, 30, 300, 5000][i * 7 % 4]];
            spill.write(&piece).expect("write");
            put.extend_from_slice(&piece);
            assert_eq!(spill.len(), (put.len() - got.len()) as u64);
            if i % 5 == 0 {
                got.extend_from_slice(&spill.read(i).expect("read"));
            }
        }
        while !spill.is_empty() {
            got.extend_from_slice(&spill.read(1000).expect("read"));
        }
        assert!(put == got);
    }
}
