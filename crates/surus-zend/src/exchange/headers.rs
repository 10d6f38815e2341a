//! The headers of a request. Those of one that lasts for long without running are kept in as few bytes as they have.

use std::cell::{Ref, RefCell};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

#[derive(Debug, Default)]
pub(crate) struct Headers {
    map: RefCell<HeaderMap>,
    /// All of them, each with two lengths before its name and its value. Empty until they are packed for the first time.
    packed: RefCell<Bytes>,
}

impl Headers {
    pub(super) fn new(map: HeaderMap) -> Self {
        Headers {
            map: RefCell::new(map),
            packed: RefCell::default(),
        }
    }

    /// Forgets them, and returns the map, whose capacity may be used again.
    pub(super) fn clear(&mut self) -> &mut HeaderMap {
        *self.packed.get_mut() = Bytes::new();
        self.map.get_mut()
    }

    pub(crate) fn get(&self) -> Ref<'_, HeaderMap> {
        let is_packed = self.map.borrow().is_empty() && !self.packed.borrow().is_empty();
        if is_packed {
            *self.map.borrow_mut() = unpack(&self.packed.borrow());
        }
        self.map.borrow()
    }

    /// Nobody asks for them for a while. What was returned before is not valid any more.
    pub(crate) fn pack(&self) {
        let map = self.map.take();
        let mut packed = self.packed.borrow_mut();
        if packed.is_empty() {
            *packed = Bytes::from(pack(&map).into_boxed_slice());
        }
    }
}

fn pack(map: &HeaderMap) -> Vec<u8> {
    let mut packed = Vec::new();
    for (name, value) in map {
        for bytes in [name.as_str().as_bytes(), value.as_bytes()] {
            packed.extend_from_slice(&(bytes.len() as u32).to_ne_bytes());
            packed.extend_from_slice(bytes);
        }
    }
    packed
}

/// The values are slices of these bytes.
fn unpack(packed: &Bytes) -> HeaderMap {
    let mut map = HeaderMap::new();
    let mut rest = packed.clone();
    while !rest.is_empty() {
        let name = HeaderName::from_bytes(&take(&mut rest));
        let value = HeaderValue::from_maybe_shared(take(&mut rest));
        if let (Ok(name), Ok(value)) = (name, value) {
            map.append(name, value);
        }
    }
    map
}

fn take(rest: &mut Bytes) -> Bytes {
    let mut length = [0; 4];
    length.copy_from_slice(&rest.split_to(4));
    rest.split_to(u32::from_ne_bytes(length) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back() {
        let mut map = HeaderMap::new();
        for (name, value) in [
            ("host", &b"localhost"[..]),
            ("cookie", b"a=b"),
            ("x-own", b""),
            ("cookie", b"c=\xff"),
            ("accept", b"*/*"),
        ] {
            let value = HeaderValue::from_bytes(value).expect("a value");
            map.append(name, value);
        }
        let headers = Headers::new(map.clone());
        for _ in 0..3 {
            assert_eq!(*headers.get(), map);
            headers.pack();
            assert!(headers.map.borrow().is_empty());
        }
        let mut headers = headers;
        headers.clear();
        assert!(headers.get().is_empty());
        headers.pack();
        assert!(headers.get().is_empty());
    }
}
