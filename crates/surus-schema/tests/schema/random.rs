//! Random documents, whole and damaged: never a panic, and the verdict of another parser.

use serde_json::{json, Map, Value};
use surus_schema::{Media, Rejected};

use crate::support::{one, read, read_as, same};

/// xorshift64*: small, and the same on each run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn text(&mut self) -> String {
        const CHARACTERS: [char; 16] = [
            'a', 'b', 'z', '0', ' ', '"', '\\', '/', '\n', '\0', '\u{1f}', 'ä', '€', '😀',
            '\u{7f}', '~',
        ];
        let length = self.below(20);
        (0..length).map(|_| CHARACTERS[self.below(16)]).collect()
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 6 } else { 8 }) {
            0 => Value::Null,
            1 => (self.below(2) == 0).into(),
            2 => (self.next() as i64).into(),
            3 => (self.below(100) as i64 - 50).into(),
            4 => json!(f64::from_bits(self.next()).clamp(-1e300, 1e300)),
            5 => self.text().into(),
            6 => (0..self.below(5)).map(|_| self.value(depth - 1)).collect(),
            _ => {
                let members: Map<String, Value> = (0..self.below(5))
                    .map(|_| (self.text(), self.value(depth - 1)))
                    .collect();
                Value::Object(members)
            }
        }
    }
}

#[test]
fn what_was_written_is_read() {
    let schema = one(json!({"type": "mixed"}));
    let mut random = Random(42);
    for _ in 0..3000 {
        let value = json!({"v": random.value(5)});
        for text in [
            value.to_string(),
            serde_json::to_string_pretty(&value).unwrap(),
        ] {
            assert_eq!(read(&schema, &text).unwrap()["0"], value["v"], "{text}");
        }
    }
}

#[test]
fn damaged_documents_are_judged_as_by_serde_json() {
    let schema = one(json!({"type": "mixed"}));
    let mut random = Random(7);
    let (mut good, mut bad) = (0, 0);
    for _ in 0..20_000 {
        let mut text = json!({"v": random.value(3)}).to_string().into_bytes();
        for _ in 0..=random.below(2) {
            let at = random.below(text.len());
            match random.below(4) {
                0 => text[at] = b"{}[]\",:0123456789.eE+-tfnu\\ \n\xff\xc3"[random.below(31)],
                1 => drop(text.remove(at)),
                2 => text.insert(at, b"{}[]\",:0\\ "[random.below(10)]),
                _ => text.truncate(at.max(1)),
            }
        }
        let ours = read_as(&schema, &Media::Json, &text);
        let theirs: Result<Value, _> = serde_json::from_slice(&text);
        match (&ours, &theirs) {
            (Err(Rejected::Malformed { offset, .. }), Err(_)) => {
                assert!(*offset <= text.len());
                bad += 1;
            }
            (Ok(ours), Ok(theirs)) => {
                assert!(same(&ours["0"], &theirs["v"]), "{ours} {theirs}");
                good += 1;
            }
            // Well-formed, but no object with a `v`, or with several.
            (Err(Rejected::Invalid { .. }), Ok(_)) => {}
            _ => panic!("{}: {ours:?}, {theirs:?}", String::from_utf8_lossy(&text)),
        }
    }
    assert!(good > 1000 && bad > 1000, "{good} {bad}");
}

#[test]
fn noise_is_survived_by_all_parsers() {
    const BYTES: &[u8] = b"v=&[]%4a+1\r\n--b:;\" content-disposition{}\\u\xc3\xa4";
    let others = one(json!({"type": "list", "items": {"type": "mixed"}, "unique": true}));
    let multipart = Media::Multipart {
        boundary: "b".into(),
    };
    let mut random = Random(99);
    for _ in 0..30_000 {
        let length = random.below(60);
        let text: Vec<u8> = (0..length)
            .map(|_| BYTES[random.below(BYTES.len())])
            .collect();
        for media in [&Media::Json, &Media::Form, &multipart] {
            let _ = read_as(&others, media, &text);
        }
        let mut part = b"--b\r\nContent-Disposition: form-data; name=\"v\"\r\n\r\n".to_vec();
        part.extend_from_slice(&text);
        let _ = read_as(&others, &multipart, &part);
    }
}
