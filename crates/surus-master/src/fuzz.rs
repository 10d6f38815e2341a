//! Targets for the fuzzer (`fuzz/`) and its replay in the tests, one for each parser: no input may panic, and the
//! assertions hold for all of them.

use std::fmt::Debug;

use serde::{Deserialize, Serialize};

use crate::admin;
use crate::control::Request;
use crate::protocol::{decode, encode, Order, Report};

/// Messages of all kinds, as they arrive over sockets: in two pieces, split where the first byte says.
pub fn messages(data: &[u8]) {
    let Some((&cut, data)) = data.split_first() else {
        return;
    };
    let (first, second) = data.split_at(usize::from(cut).min(data.len()));
    read::<Request>(first, second);
    read::<Order>(first, second);
    read::<Report>(first, second);
}

/// However the input is split, the messages are the same, and each can be encoded and decoded again.
fn read<T>(first: &[u8], second: &[u8])
where
    T: for<'de> Deserialize<'de> + Serialize + PartialEq + Debug,
{
    let mut whole = [first, second].concat();
    let expected: Vec<T> = decode(&mut whole);
    assert!(!whole.contains(&b'\n'));
    let mut received = first.to_vec();
    let mut got: Vec<T> = decode(&mut received);
    received.extend_from_slice(second);
    got.extend(decode(&mut received));
    assert_eq!(got, expected);
    let mut again: Vec<u8> = got.iter().flat_map(encode).collect();
    assert_eq!(decode::<T>(&mut again), expected);
}

/// A request to the admin listener.
pub fn admin(data: &[u8]) {
    if let Some(asking) = admin::Asking::of(data) {
        assert!(!asking.path().contains([' ', '\n', '?']));
        let _ = (asking.is_to_this_machine(), asking.shows("token"));
    }
}

#[cfg(test)]
mod tests {
    use surus_replay::replay;

    #[test]
    fn seeds_and_mutations() {
        replay("messages", super::messages);
        replay("admin", super::admin);
    }
}
