//! The parsers of this module, replayed in the tests: no input may panic. Not a target of the fuzzer: these messages
//! are from the same binary, and contain types of the engine.

use bytes::Bytes;

use super::head::{read_request, read_response, write_request, write_response};

fn heads(data: &[u8]) {
    if let Some(arrived) = read_request(Bytes::copy_from_slice(data)) {
        let again = write_request(&arrived.request, arrived.script.as_ref(), arrived.since);
        assert!(read_request(again.into()).is_some());
    }
    if let Ok((response, length, opening)) = read_response(Bytes::copy_from_slice(data)) {
        let written = write_response(&response, length, opening.as_ref());
        let (again, known, opened) = read_response(written.into()).expect("a head");
        assert_eq!((again.status(), known), (response.status(), length));
        assert_eq!(opened, opening);
        assert_eq!(again.headers(), response.headers());
    }
}

#[test]
fn seeds_and_mutations() {
    surus_replay::replay("heads", heads);
}
