//! What a request may have changed is compared with what it has found (`csrc/fiber/comparison.c`): no byte may be missed.

use std::ffi::{c_char, c_void};

extern "C" {
    fn surus_comparison_add(address: *const c_void, size: usize, offset: usize);
    fn surus_comparison_holds(copy: *const c_char) -> bool;
}

/// Below, at and above the widths of what is compared at once.
const SIZES: [usize; 34] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 24, 28, 31, 32, 33, 40, 63, 64, 65, 88, 96, 127,
    128, 129, 160, 161, 192, 255, 256, 360, 1328,
];

fn flip(memory: &mut [u8], at: usize) {
    memory[at] ^= 1 << (at % 8);
}

#[test]
fn every_byte_counts() {
    let room = SIZES.iter().sum::<usize>() + 32 * SIZES.len();
    let mut memory: Vec<u8> = (0..room).map(|at| (at * 7 % 251) as u8).collect();
    let mut copy = Vec::new();
    let mut places = Vec::new();
    let mut begin = 1;
    for size in SIZES {
        let place = begin..begin + size;
        // SAFETY: the bytes live until the end of this test, and no other test compares.
        unsafe { surus_comparison_add(memory[begin..].as_ptr().cast(), size, copy.len()) };
        copy.extend_from_slice(&memory[place.clone()]);
        places.push(place);
        begin += size + size % 23 + 1;
    }
    // SAFETY: as above; the copy has all that was added.
    let holds = |copy: &[u8]| unsafe { surus_comparison_holds(copy.as_ptr().cast()) };
    assert!(holds(&copy));
    for at in 0..memory.len() {
        flip(&mut memory, at);
        let is_compared = places.iter().any(|place| place.contains(&at));
        assert_eq!(holds(&copy), !is_compared, "byte {at}");
        flip(&mut memory, at);
    }
    assert!(holds(&copy));
}
