//! Compressed messages: permessage-deflate (RFC 7692), without context takeover in either direction. Nothing is kept between two
//! messages, so that one compressor and one decompressor are enough for all connections of a thread.

use std::cell::RefCell;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// The end of each message, which is not sent (RFC 7692, 7.2.1).
const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];

/// Shorter messages need one packet, whether they are compressed or not.
const SHORTEST: usize = 1024;

/// The largest window, in bits.
pub(super) const LARGEST: u8 = 15;

/// Bytes that are made room for at first.
const BEGIN: usize = 4 * 1024;

const LEVEL: u32 = 4;

thread_local! {
    /// With its window, in bits.
    static COMPRESS: RefCell<Option<(u8, Compress)>> = const { RefCell::new(None) };
    static DECOMPRESS: RefCell<Option<Decompress>> = const { RefCell::new(None) };
}

/// What is wrong with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    TooLarge,
    Malformed,
}

/// The payload that takes the place of this one; `None` if that would not be smaller. `window`: 9 to 15 bits.
pub(super) fn compress(data: &[u8], window: u8) -> Option<Vec<u8>> {
    if data.len() < SHORTEST {
        return None;
    }
    COMPRESS.with_borrow_mut(|kept| {
        if kept.as_ref().is_some_and(|(bits, _)| *bits != window) {
            *kept = None;
        }
        let new = || {
            let level = Compression::new(LEVEL);
            (window, Compress::new_with_window_bits(level, false, window))
        };
        let (_, compress) = kept.get_or_insert_with(new);
        compress.reset();
        // If this is not enough, it is not smaller.
        let mut packed = Vec::with_capacity(data.len());
        let status = compress.compress_vec(data, &mut packed, FlushCompress::Sync);
        let is_whole = matches!(status, Ok(Status::Ok))
            && compress.total_in() == data.len() as u64
            && packed.len() < packed.capacity();
        if !is_whole || !packed.ends_with(&TAIL) {
            return None;
        }
        packed.truncate(packed.len() - TAIL.len());
        packed.shrink_to_fit();
        Some(packed)
    })
}

/// The payload of a client, which has at most `most` bytes then.
pub(super) fn decompress(mut packed: Vec<u8>, most: usize) -> Result<Vec<u8>, Wrong> {
    packed.extend_from_slice(&TAIL);
    DECOMPRESS.with_borrow_mut(|kept| {
        let decompress = kept.get_or_insert_with(|| Decompress::new(false));
        decompress.reset(false);
        let mut data = Vec::new();
        let mut rest = &packed[..];
        loop {
            if data.len() == data.capacity() {
                let more = data.len().max(BEGIN).min(most + 1 - data.len());
                data.reserve_exact(more);
            }
            let (read, written) = (decompress.total_in(), data.len());
            let status = decompress.decompress_vec(rest, &mut data, FlushDecompress::Sync);
            let read = (decompress.total_in() - read) as usize;
            rest = &rest[read..];
            if data.len() > most {
                return Err(Wrong::TooLarge);
            }
            match status {
                // A block said that it is the last one. Others may follow (RFC 7692, 7.2.3.4).
                Ok(Status::StreamEnd) => decompress.reset(false),
                Ok(Status::Ok | Status::BufError) => {}
                Err(_) => return Err(Wrong::Malformed),
            }
            let is_full = data.len() == data.capacity();
            if rest.is_empty() && !is_full {
                data.shrink_to_fit();
                return Ok(data);
            }
            if read == 0 && data.len() == written && !is_full {
                return Err(Wrong::Malformed);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(data: &[u8], window: u8) -> Option<usize> {
        let packed = compress(data, window)?;
        let length = packed.len();
        assert_eq!(decompress(packed, data.len()).as_deref(), Ok(data));
        Some(length)
    }

    #[test]
    fn what_is_compressed_comes_back() {
        let text = "a line of a log, with the number 17 in it\n".repeat(3000);
        let noise: Vec<u8> = (0u32..100_000)
            .map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8 ^ (at >> 3) as u8)
            .collect();
        for window in [15, 9, 12, 15] {
            assert_eq!(round(&text.as_bytes()[..SHORTEST - 1], window), None);
            for length in [SHORTEST, 5000, 16_384, 65_535, 65_536, text.len()] {
                let packed = round(&text.as_bytes()[..length], window);
                assert!(packed.is_some_and(|packed| packed < length / 4), "{length}");
            }
            let mut mixed = text.clone().into_bytes();
            mixed.extend_from_slice(&noise);
            assert!(round(&mixed, window).is_some());
        }
        // What does not become smaller is sent as it is.
        let mut state = 1u64;
        let random: Vec<u8> = (0..50_000)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        assert_eq!(compress(&random, 15), None);
    }

    /// RFC 7692, 7.2.3.
    #[test]
    fn examples_of_the_standard() {
        let hello: [&[u8]; 4] = [
            &[0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00],
            &[
                0x00, 0x05, 0x00, 0xfa, 0xff, 0x48, 0x65, 0x6c, 0x6c, 0x6f, 0x00,
            ],
            &[0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00],
            &[
                0xf2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xff, 0xff, 0xca, 0xc9, 0xc9, 0x07, 0x00,
            ],
        ];
        for packed in hello {
            assert_eq!(decompress(packed.to_vec(), 5), Ok(b"Hello".to_vec()));
            assert_eq!(decompress(packed.to_vec(), 4), Err(Wrong::TooLarge));
        }
        assert_eq!(decompress(vec![0], 0), Ok(Vec::new()));
        assert_eq!(decompress(Vec::new(), 0), Ok(Vec::new()));
    }

    #[test]
    fn bombs_are_bounded_and_nonsense_is_refused() {
        let zeros = vec![0; 4 * 1024 * 1024];
        let bomb = compress(&zeros, 15).expect("it is smaller");
        assert!(bomb.len() < 10_000);
        assert_eq!(decompress(bomb.clone(), 1_000_000), Err(Wrong::TooLarge));
        assert_eq!(
            decompress(bomb.clone(), zeros.len() - 1),
            Err(Wrong::TooLarge)
        );
        assert_eq!(
            decompress(bomb, zeros.len()).map(|data| data.len()),
            Ok(zeros.len())
        );
        // A reserved type of block; a distance before the beginning.
        for packed in [&[0x06, 0x00][..], &[0xff; 20], &[0x02, 0x13, 0x04, 0x22]] {
            assert_eq!(
                decompress(packed.to_vec(), 100),
                Err(Wrong::Malformed),
                "{packed:?}"
            );
        }
        // What was left in the middle disturbs no other message.
        let text = "again and again ".repeat(200);
        assert!(round(text.as_bytes(), 15).is_some());
    }
}
