//! What parses bytes here, replayed in the tests: any input is judged without a panic. No target of the fuzzer's: these are
//! the words of the same binary to itself, and the engine's types are in them.

use bytes::Bytes;

use super::head::{read_request, read_response, write_request, write_response};

fn heads(data: &[u8]) {
    if let Some(arrived) = read_request(Bytes::copy_from_slice(data)) {
        let again = write_request(&arrived.request, arrived.script.as_ref(), arrived.since);
        assert!(read_request(again.into()).is_some());
    }
    if let Ok((response, length)) = read_response(Bytes::copy_from_slice(data)) {
        let (again, known) =
            read_response(write_response(&response, length).into()).expect("a head");
        assert_eq!((again.status(), known), (response.status(), length));
        assert_eq!(again.headers(), response.headers());
    }
}

#[test]
fn seeds_and_mutations() {
    surus_replay::replay("heads", heads);
}
