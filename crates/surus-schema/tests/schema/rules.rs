//! Each rule, on both sides of its edge.

use serde_json::{json, Value};
use surus_schema::{Media, Messages, Rejected, Schema};

use crate::support::{one, read, rules, schema, schema_with, v};

fn check(kind: Value, good: &[(&str, Value)], bad: &[(&str, &str)]) {
    let schema = one(kind.clone());
    for (text, expected) in good {
        assert_eq!(v(&schema, text).as_ref(), Ok(expected), "{kind} {text}");
    }
    for (text, rule) in bad {
        assert_eq!(
            v(&schema, text),
            Err(vec![format!("{rule} /v")]),
            "{kind} {text}"
        );
    }
}

#[test]
fn types_are_not_coerced() {
    check(
        json!({"type": "integer"}),
        &[
            ("1", json!(1)),
            ("-9223372036854775808", json!(i64::MIN)),
            ("1.0", json!(1)),
        ],
        &[
            ("\"1\"", "type"),
            ("1.5", "type"),
            ("true", "type"),
            ("null", "type"),
            ("1e300", "type"),
            ("9223372036854775808", "type"),
            ("[1]", "type"),
        ],
    );
    check(
        json!({"type": "number"}),
        &[("1", json!(1.0)), ("-0.5", json!(-0.5))],
        &[("\"1\"", "type"), ("null", "type")],
    );
    check(
        json!({"type": "boolean"}),
        &[("true", json!(true)), ("false", json!(false))],
        &[("1", "type"), ("\"true\"", "type"), ("0", "type")],
    );
    check(
        json!({"type": "string"}),
        &[("\"\"", json!("")), ("\"1\"", json!("1"))],
        &[("1", "type"), ("[]", "type"), ("{}", "type")],
    );
    check(
        json!({"type": "string", "nullable": true}),
        &[("null", Value::Null), ("\"\"", json!(""))],
        &[("0", "type")],
    );
    check(
        json!({"type": "null"}),
        &[("null", Value::Null)],
        &[("0", "type")],
    );
}

#[test]
fn strings_are_counted_in_characters() {
    check(
        json!({"type": "string", "minLength": 2, "maxLength": 3}),
        &[
            ("\"ab\"", json!("ab")),
            ("\"äöü\"", json!("äöü")),
            ("\"😀😀\"", json!("😀😀")),
            ("\"\\ud83d\\ude00x\"", json!("😀x")),
        ],
        &[
            ("\"a\"", "minLength"),
            ("\"ä\"", "minLength"),
            ("\"😀\"", "minLength"),
            ("\"abcd\"", "maxLength"),
            ("\"😀😀😀😀\"", "maxLength"),
        ],
    );
    check(
        json!({"type": "string", "pattern": "^[a-z]+$"}),
        &[("\"abc\"", json!("abc"))],
        &[("\"abC\"", "pattern"), ("\"abc\\n\"", "pattern")],
    );
    check(
        json!({"type": "string", "format": "email"}),
        &[("\"a@b.co\"", json!("a@b.co"))],
        &[("\"a\"", "format")],
    );
    let both = one(json!({"type": "string", "minLength": 9, "pattern": "^a", "format": "uuid"}));
    assert_eq!(
        v(&both, "\"b\""),
        Err(vec![
            "minLength /v".into(),
            "format /v".into(),
            "pattern /v".into()
        ])
    );
}

/// A bound is the number that stands there, to its last digit.
#[test]
fn bounds_are_exact() {
    for step in 1..500 {
        let bound = f64::from(step) / 7.0 * 1e-9;
        let text = bound.to_string();
        check(
            json!({"type": "number", "minimum": bound, "maximum": bound}),
            &[(&text, json!(bound))],
            &[],
        );
    }
}

#[test]
fn ranges() {
    check(
        json!({"type": "integer", "minimum": 0, "maximum": 10}),
        &[("0", json!(0)), ("10", json!(10))],
        &[("-1", "minimum"), ("11", "maximum")],
    );
    check(
        json!({"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 2.5}),
        &[("1", json!(1)), ("2", json!(2))],
        &[("0", "minimum"), ("3", "maximum")],
    );
    check(
        json!({"type": "integer", "multipleOf": 5}),
        &[("-10", json!(-10))],
        &[("7", "multipleOf")],
    );
    check(
        json!({"type": "number", "exclusiveMinimum": 0, "maximum": 1, "multipleOf": 0.1}),
        &[("0.3", json!(0.3)), ("1", json!(1.0))],
        &[
            ("0", "exclusiveMinimum"),
            ("1.1", "maximum"),
            ("0.25", "multipleOf"),
        ],
    );
}

#[test]
fn lists_and_maps() {
    let list = one(
        json!({"type": "list", "items": {"type": "integer", "minimum": 1}, "minItems": 1, "maxItems": 3, "unique": true}),
    );
    assert_eq!(v(&list, "[1,2,3]"), Ok(json!([1, 2, 3])));
    assert_eq!(v(&list, "[]"), Err(vec!["minItems /v".into()]));
    assert_eq!(v(&list, "[1,2,3,4]"), Err(vec!["maxItems /v".into()]));
    assert_eq!(v(&list, "[1,2,1.0]"), Err(vec!["uniqueItems /v".into()]));
    assert_eq!(
        v(&list, "[0,\"x\"]"),
        Err(vec!["minimum /v/0".into(), "type /v/1".into()])
    );
    assert_eq!(v(&list, "{\"a\":1}"), Err(vec!["type /v".into()]));
    let unique = one(json!({"type": "list", "items": {"type": "mixed"}, "unique": true}));
    assert_eq!(
        v(&unique, r#"[{"a":1,"b":2},{"b":2.0,"a":1}]"#),
        Err(vec!["uniqueItems /v".into()])
    );
    assert!(v(&unique, r#"[[1,2],[2,1],["12"],"1",1,null,false,0.5]"#).is_ok());
    let map = one(json!({"type": "map", "items": {"type": "string"}, "maxItems": 2}));
    assert_eq!(
        v(&map, r#"{"a/b":"x","~":"y"}"#),
        Ok(json!({"a/b": "x", "~": "y"}))
    );
    assert_eq!(
        v(&map, r#"{"a/b":1,"~":"y"}"#),
        Err(vec!["type /v/a~1b".into()])
    );
    assert_eq!(
        v(&map, r#"{"a":"1","b":"2","c":"3"}"#),
        Err(vec!["maxItems /v".into()])
    );
}

fn tree() -> Schema {
    let node = json!({"name": "child", "required": false, "type": {"type": "object", "class": 0, "nullable": true}});
    schema_with(
        json!({"properties": [{"name": "id", "type": {"type": "integer"}}, node], "strict": true}),
        json!([]),
    )
}

#[test]
fn objects() {
    let schema = tree();
    let default = json!({"default": true});
    assert_eq!(
        read(&schema, r#"{"child":{"id":2,"child":null},"id":1}"#),
        Ok(json!({"0": 1, "1": {"0": 2, "1": null}}))
    );
    assert_eq!(
        read(&schema, r#"{"id":1}"#),
        Ok(json!({"0": 1, "1": default}))
    );
    let broken = read(&schema, r#"{"child":{"child":{"id":"x"}},"more":1}"#).unwrap_err();
    assert_eq!(
        rules(broken),
        [
            "additionalProperties /more",
            "required /id",
            "required /child/id",
            "type /child/child/id"
        ]
    );
    assert_eq!(
        rules(read(&schema, r#"{"id":1,"id":2}"#).unwrap_err()),
        ["duplicate /id"]
    );
    assert_eq!(rules(read(&schema, "[]").unwrap_err()), ["type "]);
    let lenient = one(json!({"type": "integer"}));
    assert!(read(&lenient, r#"{"other":[1,{"v":"no"}],"v":1}"#).is_ok());
}

#[test]
fn enums_and_dates() {
    let others = json!([{"kind": "enum", "title": "Role", "values": ["admin", "user"]}, {"kind": "enum", "title": "Level", "values": [1, 5]}, {"kind": "date", "title": "D"}]);
    let properties = json!([
        {"name": "role", "type": {"type": "enum", "class": 1}},
        {"name": "level", "type": {"type": "enum", "class": 2}},
        {"name": "day", "type": {"type": "date", "class": 3, "format": "date"}},
    ]);
    let schema = schema_with(json!({"properties": properties}), others);
    assert_eq!(
        read(&schema, r#"{"role":"user","level":5,"day":"2024-02-29"}"#),
        Ok(json!({"0": {"case": 1}, "1": {"case": 1}, "2": {"parsed": "2024-02-29"}}))
    );
    let broken = read(&schema, r#"{"role":"root","level":"5","day":"2023-02-29"}"#).unwrap_err();
    assert_eq!(rules(broken), ["enum /role", "type /level", "format /day"]);
}

#[test]
fn unions() {
    let schema = one(
        json!({"type": "union", "any": [{"type": "string", "minLength": 2}, {"type": "integer"}, {"type": "number"}]}),
    );
    assert_eq!(v(&schema, "1"), Ok(json!(1)));
    assert_eq!(v(&schema, "1.0"), Ok(json!(1.0)));
    assert_eq!(v(&schema, "\"12\""), Ok(json!("12")));
    assert_eq!(v(&schema, "true"), Err(vec!["type /v".into()]));
    assert_eq!(
        v(&schema, "\"x\""),
        Err(vec!["minLength /v".into()]),
        "the only one of its type says what is wrong"
    );
}

#[test]
fn what_a_union_breaks_is_said_of_the_alternative_that_is_meant() {
    let number = |kind: &str| json!({"type": kind, "maximum": 9});
    let schema = one(
        json!({"type": "union", "nullable": true, "any": [number("integer"), number("number"), {"type": "boolean"}]}),
    );
    let Err(Rejected::Invalid { violations, .. }) =
        schema.read(&Media::Json, r#"{"v": "x"}"#.into())
    else {
        panic!("a string is none of them");
    };
    let text = Messages::default().text("en", &violations[0]);
    assert_eq!(
        text,
        "must be of type integer, number, boolean, null, not string"
    );
    assert_eq!(v(&schema, "10"), Err(vec!["maximum /v".into()]));
    assert_eq!(v(&schema, "9.5"), Err(vec!["maximum /v".into()]));

    let text = |name: &str| json!({"name": name, "required": true, "type": {"type": "string", "minLength": 2}});
    let both = json!({"type": "union", "any": [{"type": "object", "class": 1}, {"type": "object", "class": 2}]});
    let schema = schema_with(
        json!({"properties": [{"name": "pay", "required": true, "type": both}]}),
        json!([
            {"kind": "object", "title": "Card", "properties": [text("number"), text("name")]},
            {"kind": "object", "title": "Iban", "properties": [text("iban"), text("name")]},
        ]),
    );
    let pay = |value: &str| rules(read(&schema, &format!(r#"{{"pay": {value}}}"#)).unwrap_err());
    assert_eq!(
        pay(r#"{"number": "1", "name": "xy"}"#),
        ["minLength /pay/number"]
    );
    assert_eq!(pay(r#"{"iban": "DE1"}"#), ["required /pay/name"]);
    assert_eq!(
        pay(r#"{"name": "xy"}"#),
        ["anyOf /pay"],
        "either could be meant"
    );
    assert_eq!(pay("7"), ["type /pay"]);
}

#[test]
fn alternatives_within_alternatives_do_not_multiply() {
    let both = |class: u16| json!({"type": "union", "any": [{"type": "object", "class": class}, {"type": "object", "class": 1 - class}]});
    let class = |i: u16| json!({"kind": "object", "title": i.to_string(), "properties": [{"name": "c", "required": true, "type": both(i)}]});
    let text = json!({"root": 0, "classes": [class(0), class(1)], "max_depth": 64}).to_string();
    let schema = Schema::compile(&text).unwrap();
    let begun = std::time::Instant::now();
    let bomb = format!("{}1{}", "{\"c\":".repeat(60), "}".repeat(60));
    assert!(matches!(
        read(&schema, &bomb),
        Err(Rejected::Invalid { .. })
    ));
    // Else it is for years.
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}

#[test]
fn violations_are_bounded() {
    let schema = one(json!({"type": "list", "items": {"type": "integer"}}));
    let many = format!("[{}]", vec!["\"x\""; 5000].join(","));
    let Err(Rejected::Invalid {
        violations,
        truncated,
    }) = read(&schema, &format!("{{\"v\":{many}}}"))
    else {
        panic!("it is invalid");
    };
    assert_eq!((violations.len(), truncated), (100, true));
}

#[test]
fn mistakes_in_descriptions_name_their_place() {
    let compile = |kind: Value| {
        let property = json!({"name": "v", "required": true, "type": kind, "place": "app.php:7: parameter $v"});
        let class = json!({"kind": "object", "title": "T", "properties": [property]});
        Schema::compile(&json!({"root": 0, "classes": [class]}).to_string())
            .map(drop)
            .map_err(|error| error.to_string())
    };
    for (kind, expected) in [
        (json!({"type": "string", "pattern": "("}), "pattern"),
        (
            json!({"type": "string", "minLength": 3, "maxLength": 2}),
            "at least 3",
        ),
        (
            json!({"type": "integer", "minimum": 3, "maximum": 2}),
            "at least 3",
        ),
        (json!({"type": "integer", "multipleOf": 0.5}), "0.5"),
        (json!({"type": "number", "multipleOf": 0}), "0"),
        (json!({"type": "object", "class": 9}), "not described"),
    ] {
        let error = compile(kind).unwrap_err();
        assert!(
            error.starts_with("app.php:7: parameter $v: ") && error.contains(expected),
            "{error}"
        );
    }
}

#[test]
fn messages() {
    let mut messages = surus_schema::Messages::default();
    messages.add(r#"{"de": {"required": "fehlt", "format.email": "ist keine E-Mail-Adresse", "minLength": "braucht {min} Zeichen"}}"#).unwrap();
    let schema = schema(json!([
        {"name": "a", "type": {"type": "string"}},
        {"name": "b", "type": {"type": "string", "format": "email"}},
        {"name": "c", "type": {"type": "string", "minLength": 3}},
        {"name": "d", "type": {"type": "integer", "maximum": 5, "messages": {"maximum": "only {max} of them"}}},
    ]));
    let rejected = read(&schema, r#"{"b":"x","c":"x","d":6}"#).unwrap_err();
    let rejected = [(rejected, "body")];
    let say = |accept: Option<&str>| -> Vec<String> {
        let (status, text) = surus_schema::problem::answer(&rejected, &messages, accept);
        assert_eq!(status, 422);
        let problem: Value = serde_json::from_str(&text).unwrap();
        let errors = problem["errors"].as_array().unwrap();
        errors
            .iter()
            .map(|error| error["message"].as_str().unwrap().to_owned())
            .collect()
    };
    let english = [
        "is required",
        "must be an e-mail address",
        "must have at least 3 characters, has 1",
        "only 5 of them",
    ];
    let german = [
        "fehlt",
        "ist keine E-Mail-Adresse",
        "braucht 3 Zeichen",
        "only 5 of them",
    ];
    assert_eq!(say(None), english);
    assert_eq!(say(Some("fr, en;q=0.5, de;q=0.1")), english);
    assert_eq!(say(Some("de-AT,en;q=0.9")), german);
    assert_eq!(say(Some("en;q=0.1, DE;q=0.9, x;q=0")), german);
}
