//! For tests: runs a fuzz target's function over its seeds (`fuzz/seeds/TARGET`) and mutations of them.
//!
//! What `make fuzz` does for minutes and with knowledge of the code's branches, a test does in a moment and without: the
//! same inputs each time, so that what was found once is not lost again.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

use std::fs;
use std::path::{Path, PathBuf};

const MUTATIONS: usize = 20_000;

/// Bytes; longer ones add little.
const LONGEST: usize = 2048;

/// What parsers stumble over.
const TOKENS: &[&[u8]] = &[
    b"\0",
    b"\r\n",
    b"\n",
    b"\r",
    b"\"",
    b"\\",
    b"%",
    b"%00",
    b"%2f",
    b"..",
    b"/",
    b"//",
    b"*",
    b"-",
    b"--",
    b"+",
    b",",
    b";",
    b"=",
    b":",
    b"[",
    b"]",
    b"{",
    b"}",
    b"[]",
    b"{}",
    b"?",
    b"\xff",
    b"\xc3\xa9",
    b"\xe2\x80\xa8",
    b"\xed\xa0\x80",
    b"\\ud800",
    b"0",
    b"-1",
    b"1e999",
    b"18446744073709551615",
    b"18446744073709551616",
    b"9223372036854775808",
];

/// Runs `function` over the seeds of `target` and mutations of them.
///
/// # Panics
/// If there are no seeds; and where `function` panics, after having printed the input.
pub fn replay(target: &str, function: impl Fn(&[u8])) {
    let seeds = seeds(target);
    for seed in &seeds {
        run(target, seed, &function);
    }
    let mut random = Random(target.bytes().fold(0x9E37_79B9_7F4A_7C15, |state, byte| {
        (state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    }));
    for _ in 0..MUTATIONS {
        let mut input = random.of(&seeds).clone();
        for _ in 0..1 + random.below(4) {
            mutate(&mut input, &seeds, &mut random);
        }
        input.truncate(LONGEST);
        run(target, &input, &function);
    }
}

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/seeds")
        .join(target);
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|file| file.expect("a file").path())
        .collect();
    assert!(!files.is_empty(), "no seeds in {}", folder.display());
    files.sort();
    files
        .iter()
        .map(|file| fs::read(file).expect("a seed"))
        .collect()
}

fn run(target: &str, input: &[u8], function: &impl Fn(&[u8])) {
    struct Tell<'a>(&'a str, &'a [u8]);
    impl Drop for Tell<'_> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("{} fails for b\"{}\"", self.0, self.1.escape_ascii());
            }
        }
    }
    let _tell = Tell(target, input);
    function(input);
}

fn mutate(input: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
    let at = random.below(input.len() + 1);
    let end = (at + random.below(16)).min(input.len());
    match random.below(8) {
        0 => _ = input.drain(at..end),
        1 => input.truncate(at),
        2 => {
            let copy = input[at..end].to_vec();
            let to = random.below(input.len() + 1);
            input.splice(to..to, copy);
        }
        3 => _ = input.splice(at..at, random.of(TOKENS).iter().copied()),
        4 => _ = input.splice(at..end, random.of(TOKENS).iter().copied()),
        5 => {
            // The beginning of this one, the end of another.
            let other = random.of(seeds);
            let from = random.below(other.len() + 1);
            input.truncate(at);
            input.extend_from_slice(&other[from..]);
        }
        6 => input.insert(at, random.byte()),
        _ => {
            if let Some(byte) = input.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
    }
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() >> 33).unwrap_or(0) % bound
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[3]
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}
