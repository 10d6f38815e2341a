//! Random bytes come from a buffer of the worker: no two requests, workers or servers get the same ones.

use std::collections::HashSet;

use surus_tests::surus::Mode;

use crate::{ask, serve};

const WORKERS: usize = 2;
const MOST_REQUESTS: usize = 200;

#[test]
fn bytes_are_given_out_once() {
    let mut seen = HashSet::new();
    for mode in Mode::ALL {
        let server = serve(mode).workers(WORKERS).start();
        let mut asked = HashSet::new();
        for _ in 0..MOST_REQUESTS {
            let said = ask(server.address(), "random");
            let mut words = said.split(' ');
            asked.insert(words.next().expect("a process").to_owned());
            for bytes in words {
                assert_eq!(bytes.len(), 32);
                assert!(seen.insert(bytes.to_owned()), "{bytes} came twice");
            }
            if asked.len() >= WORKERS {
                break;
            }
        }
    }
}
