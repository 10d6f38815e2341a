//! JSON is read strictly, and what is wrong is said with its place.

use serde_json::json;
use surus_schema::{Media, Rejected};

use crate::support::{one, read, read_as, same};

fn wrong(text: &str) -> (usize, &'static str) {
    match read(&one(json!({"type": "mixed"})), text) {
        Err(Rejected::Malformed { offset, reason }) => (offset, reason),
        other => panic!("{text:?}: {other:?}"),
    }
}

#[test]
fn places_of_mistakes() {
    for (text, offset) in [
        ("", 0),
        ("  ", 2),
        ("{", 1),
        ("{\"v\"", 4),
        ("{\"v\":", 5),
        ("{\"v\":1", 6),
        ("{\"v\":1,}", 7),
        ("{\"v\":1}x", 7),
        ("{v:1}", 1),
        ("{'v':1}", 1),
        ("{\"v\":01}", 5),
        ("{\"v\":1.}", 7),
        ("{\"v\":.5}", 5),
        ("{\"v\":+1}", 5),
        ("{\"v\":-}", 6),
        ("{\"v\":1e}", 7),
        ("{\"v\":1e999}", 5),
        ("{\"v\":NaN}", 5),
        ("{\"v\":tru}", 5),
        ("{\"v\":[1,]}", 8),
        ("{\"v\":[1 2]}", 8),
        ("{\"v\":\"a\nb\"}", 7),
        ("{\"v\":\"\\x\"}", 6),
        ("{\"v\":\"\\u12g4\"}", 6),
        ("{\"v\":\"\\ud800\"}", 6),
        ("{\"v\":\"\\udc00\"}", 6),
        ("{\"v\":\"\\ud800\\u0041\"}", 6),
        ("{\"v\":\"open", 10),
        ("// no\n{}", 0),
    ] {
        assert_eq!(wrong(text).0, offset, "{text:?}: {:?}", wrong(text));
    }
    let schema = one(json!({"type": "mixed"}));
    let invalid = read_as(&schema, &Media::Json, b"{\"v\":\"\xff\"}");
    assert_eq!(
        invalid,
        Err(Rejected::Malformed {
            offset: 6,
            reason: "invalid UTF-8"
        })
    );
    let bom = read_as(&schema, &Media::Json, b"\xef\xbb\xbf{\"v\":1}");
    assert!(
        matches!(bom, Err(Rejected::Malformed { offset: 0, .. })),
        "{bom:?}"
    );
}

#[test]
fn values() {
    let schema = one(json!({"type": "mixed"}));
    for text in [
        "null",
        "true",
        "[]",
        "{}",
        "0",
        "-1",
        "9223372036854775807",
        "-9223372036854775808",
        "1.5",
        "-0.0",
        "1e3",
        "9223372036854775808",
        "\"\"",
        "\"plain\"",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e4\\ud83d\\ude00\\u0000\"",
        "\"12345678\\n\"",
        "\"ä€😀\"",
        "[1,[2,[3]],{\"a\":{\"b\":[null]}}]",
        " [ 1 , 2 ] ",
    ] {
        let expected: serde_json::Value = serde_json::from_str(text).unwrap();
        let got = read(&schema, &format!("{{\"v\":{text}}}")).unwrap();
        assert!(same(&got["0"], &expected), "{text}: {got}");
    }
}

#[test]
fn decimals_are_as_near_as_they_can_be() {
    let schema = one(json!({"type": "mixed"}));
    let mut state = 1_u64;
    for _ in 0..20_000 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        // One to twenty digits, with a point somewhere.
        let digits = (state >> 20).to_string() + &(state >> 50).to_string();
        let digits = &digits[..1 + (state >> 58) as usize % digits.len()];
        let point = (state >> 54) as usize % (digits.len() + 1);
        let (whole, fraction) = digits.split_at(point);
        let whole = whole.trim_start_matches('0');
        let sign = ["", "-"][(state >> 40) as usize & 1];
        let mut text = format!("{sign}{}", if whole.is_empty() { "0" } else { whole });
        if !fraction.is_empty() {
            text = format!("{text}.{fraction}");
        }
        let got = read(&schema, &format!("{{\"v\":{text}}}")).unwrap();
        let number = got["0"].as_f64().unwrap();
        let expected: f64 = text.parse().unwrap();
        assert_eq!(number.to_bits(), expected.to_bits(), "{text}");
        let integer = text.parse::<i64>().ok().filter(|_| text != "-0");
        assert_eq!(got["0"].as_i64(), integer, "{text}");
    }
}

#[test]
fn bounds() {
    let description = |extra: &str| {
        format!(
            r#"{{"root":0,"classes":[{{"kind":"object","title":"T","properties":[
                {{"name":"v","required":true,"type":{{"type":"mixed"}}}}]}}]{extra}}}"#
        )
    };
    let schema =
        surus_schema::Schema::compile(&description(r#","max_bytes":20,"max_depth":3"#)).unwrap();
    assert!(read(&schema, r#"{"v":[[1]]}"#).is_ok());
    assert_eq!(
        read(&schema, r#"{"v":[[[1]]]}"#),
        Err(Rejected::TooDeep { offset: 7 })
    );
    assert_eq!(
        read(&schema, r#"{"v":"0123456789012"}"#),
        Err(Rejected::TooLarge { limit: 20 })
    );
    // Without bounds of its own: a bomb of brackets does not get far.
    let schema = surus_schema::Schema::compile(&description("")).unwrap();
    let bomb = format!("{{\"v\":{}", "[".repeat(100_000));
    assert!(matches!(
        read(&schema, &bomb),
        Err(Rejected::TooDeep { .. })
    ));
}
