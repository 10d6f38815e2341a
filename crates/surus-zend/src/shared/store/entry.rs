//! An entry: a head of five words, then its key and its bytes, each padded to words; and how they are copied.
//!
//! Readers hold no lock, so an entry may be overwritten while they copy it: all access is by atomic words, and what a reader
//! has copied counts only once it has checked that the entry was still there afterwards.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub(super) const WORD: usize = size_of::<u64>();
/// Sizes of key and bytes; hash; kind and whether it is kept; expiry; number.
const HEAD: usize = 5;
/// An entry begins at a multiple of so many words.
pub(super) const UNIT: usize = 2;
/// Instead of sizes: unused words until the end of the ring.
const PADDING: u64 = 1 << 63;
const KEPT: u64 = 1 << 8;

/// What is stored for a key, but for its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(super) key_size: usize,
    pub(super) size: usize,
    pub(super) hash: u64,
    /// The type of the value, as its writer has set it.
    pub(super) kind: u8,
    /// It is not removed to make room.
    pub(super) is_kept: bool,
    /// Nanoseconds of the monotonic clock.
    pub(super) until: u64,
    /// The value, if it is a number.
    pub(crate) number: i64,
}

/// Words from the beginning of an entry; they may be those of others by now.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a>(&'a [AtomicU64]);

/// What begins at a position of the ring.
pub(super) enum Item {
    Entry(Head),
    Padding(usize),
}

impl Head {
    /// Of an entry.
    pub(super) fn words(&self) -> usize {
        words(self.key_size, self.size)
    }
}

/// Of an entry with a key and a value of so many bytes.
pub(super) fn words(key: usize, value: usize) -> usize {
    (HEAD + key.div_ceil(WORD) + value.div_ceil(WORD)).next_multiple_of(UNIT)
}

impl<'a> Entry<'a> {
    /// `words` go to the end of the ring.
    pub(super) fn new(words: &'a [AtomicU64]) -> Self {
        Entry(words)
    }

    fn word(&self, at: usize) -> u64 {
        self.0.get(at).map_or(0, |word| word.load(Relaxed))
    }

    /// `None`: no entry begins here any more.
    pub(super) fn head(&self) -> Option<Head> {
        let sizes = self.word(0);
        let kind = self.word(2);
        let head = Head {
            key_size: (sizes >> 32) as usize,
            size: sizes as u32 as usize,
            hash: self.word(1),
            kind: kind as u8,
            is_kept: kind & KEPT != 0,
            until: self.word(3),
            number: self.word(4) as i64,
        };
        (sizes & PADDING == 0 && head.words() <= self.0.len()).then_some(head)
    }

    /// What is here, for the holder of the lock.
    pub(super) fn item(&self) -> Option<Item> {
        let sizes = self.word(0);
        if sizes & PADDING != 0 {
            return Some(Item::Padding((sizes & !PADDING) as usize));
        }
        self.head().map(Item::Entry)
    }

    pub(super) fn write(&self, head: &Head, key: &[u8], bytes: &[u8]) {
        let sizes = (head.key_size as u64) << 32 | head.size as u64;
        let kind = u64::from(head.kind) | if head.is_kept { KEPT } else { 0 };
        let words = [sizes, head.hash, kind, head.until, head.number as u64];
        for (place, word) in self.0.iter().zip(words) {
            place.store(word, Relaxed);
        }
        store(&self.0[HEAD..], key);
        store(&self.0[HEAD + key.len().div_ceil(WORD)..], bytes);
    }

    pub(super) fn pad(&self, words: usize) {
        self.0[0].store(PADDING | words as u64, Relaxed);
    }

    /// So many words, of another entry.
    pub(super) fn copy_from(&self, other: Entry<'_>, words: usize) {
        for (to, from) in self.0.iter().zip(other.0).take(words) {
            to.store(from.load(Relaxed), Relaxed);
        }
    }

    pub(super) fn set_until(&self, until: u64) {
        self.0[3].store(until, Relaxed);
    }

    pub(super) fn set_number(&self, number: i64) {
        self.0[4].store(number as u64, Relaxed);
    }

    pub(super) fn set_kept(&self, kind: u8) {
        self.0[2].store(u64::from(kind) | KEPT, Relaxed);
    }

    pub(super) fn has_key(&self, head: &Head, key: &[u8]) -> bool {
        head.key_size == key.len() && same(&self.0[HEAD..], key)
    }

    pub(super) fn has_bytes(&self, head: &Head, bytes: &[u8]) -> bool {
        head.size == bytes.len() && same(&self.0[HEAD + head.key_size.div_ceil(WORD)..], bytes)
    }

    pub(super) fn key(&self, head: &Head, to: &mut Vec<u8>) {
        load(&self.0[HEAD..], head.key_size, to);
    }

    pub(super) fn bytes(&self, head: &Head, to: &mut Vec<u8>) {
        load(
            &self.0[HEAD + head.key_size.div_ceil(WORD)..],
            head.size,
            to,
        );
    }
}

/// A chunk of a text as a word; zeros are behind its end.
fn word_of(chunk: &[u8]) -> u64 {
    let mut word = [0; WORD];
    word[..chunk.len()].copy_from_slice(chunk);
    u64::from_ne_bytes(word)
}

fn store(words: &[AtomicU64], bytes: &[u8]) {
    let whole = bytes.chunks_exact(WORD);
    let rest = whole.remainder();
    let count = bytes.len() / WORD;
    for (word, chunk) in words.iter().zip(whole) {
        word.store(word_of(chunk), Relaxed);
    }
    if !rest.is_empty() {
        words[count].store(word_of(rest), Relaxed);
    }
}

fn same(words: &[AtomicU64], bytes: &[u8]) -> bool {
    let all = words.iter().zip(bytes.chunks(WORD));
    words.len() >= bytes.len().div_ceil(WORD)
        && all
            .into_iter()
            .all(|(word, chunk)| word.load(Relaxed) == word_of(chunk))
}

fn load(words: &[AtomicU64], size: usize, to: &mut Vec<u8>) {
    to.clear();
    to.reserve(size.next_multiple_of(WORD));
    for word in &words[..size.div_ceil(WORD)] {
        to.extend_from_slice(&word.load(Relaxed).to_ne_bytes());
    }
    to.truncate(size);
}
