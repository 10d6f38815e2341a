//! Forms and query strings: text becomes what the schema declares.

use serde_json::{json, Value};
use surus_schema::{Media, Rejected};

use crate::support::{one, read_as, rules, schema, schema_with};

fn form(kind: Value, text: &str) -> Result<Value, Vec<String>> {
    read_as(&one(kind), &Media::Form, text.as_bytes())
        .map(|object| object["0"].clone())
        .map_err(rules)
}

#[test]
fn text_is_read_by_declared_type() {
    let cases = [
        (json!({"type": "integer"}), "v=-12", json!(-12)),
        (json!({"type": "number"}), "v=1.5", json!(1.5)),
        (json!({"type": "boolean"}), "v=on", json!(true)),
        (json!({"type": "boolean"}), "v=0", json!(false)),
        (json!({"type": "string"}), "v=12", json!("12")),
        (
            json!({"type": "string"}),
            "v=a+b%20%C3%A4%",
            json!("a b ä%"),
        ),
        (json!({"type": "string"}), "v", json!("")),
        (json!({"type": "string", "nullable": true}), "v=", json!("")),
        (
            json!({"type": "integer", "nullable": true}),
            "v=",
            Value::Null,
        ),
        (json!({"type": "integer"}), "v=1&v=2", json!(2)),
        (
            json!({"type": "list", "items": {"type": "integer"}}),
            "v=1&v=2",
            json!([1, 2]),
        ),
        (
            json!({"type": "list", "items": {"type": "integer"}}),
            "v=7",
            json!([7]),
        ),
        (
            json!({"type": "list", "items": {"type": "integer"}}),
            "v=",
            json!([]),
        ),
        (
            json!({"type": "list", "items": {"type": "integer"}}),
            "v[]=1&v%5B%5D=2",
            json!([1, 2]),
        ),
        (
            json!({"type": "list", "items": {"type": "integer"}}),
            "v[0]=1&v[1]=2",
            json!([1, 2]),
        ),
        (
            json!({"type": "map", "items": {"type": "boolean"}}),
            "v[a]=1&v[b]=0",
            json!({"a": true, "b": false}),
        ),
        (
            json!({"type": "union", "any": [{"type": "string"}, {"type": "integer"}]}),
            "v=1",
            json!(1),
        ),
        (
            json!({"type": "union", "any": [{"type": "string"}, {"type": "integer"}]}),
            "v=1x",
            json!("1x"),
        ),
        (
            json!({"type": "mixed"}),
            "v[a][]=1&v[a][]=2&v[b]=3",
            json!({"a": ["1", "2"], "b": "3"}),
        ),
        (json!({"type": "string"}), "&&v=x&", json!("x")),
        (json!({"type": "string"}), "v[=x&v=y", json!("y")),
    ];
    for (kind, text, expected) in cases {
        assert_eq!(form(kind.clone(), text), Ok(expected), "{kind} {text}");
    }
    for (kind, text) in [
        ("integer", "v=1.0"),
        ("integer", "v= 1"),
        ("integer", "v=+1"),
        ("integer", "v=99999999999999999999"),
        ("integer", "v="),
        ("number", "v=inf"),
        ("number", "v=0x1"),
        ("number", "v=1e999"),
        ("boolean", "v=maybe"),
        ("string", "v[a]=1"),
    ] {
        assert_eq!(
            form(json!({"type": kind}), text),
            Err(vec!["type /v".into()]),
            "{kind} {text}"
        );
    }
}

#[test]
fn nested_objects() {
    let others = json!([{"kind": "object", "title": "Address", "properties": [
        {"name": "city", "required": true, "type": {"type": "string"}}, {"name": "zip", "required": true, "type": {"type": "integer"}}]}]);
    let properties = json!([{"name": "name", "type": {"type": "string"}}, {"name": "at", "type": {"type": "list", "items": {"type": "object", "class": 1}}}]);
    let schema = schema_with(json!({"properties": properties}), others);
    let good = b"at[0][city]=A&at[0][zip]=1&at[1][zip]=2&at[1][city]=B&name=n";
    assert_eq!(
        read_as(&schema, &Media::Form, good),
        Ok(json!({"0": "n", "1": [{"0": "A", "1": 1}, {"0": "B", "1": 2}]}))
    );
    let bad = read_as(&schema, &Media::Form, b"at[0][city]=A&at[0][zip]=x").unwrap_err();
    assert_eq!(rules(bad), ["required /name", "type /at/0/zip"]);
}

#[test]
fn bounds() {
    let schema = one(json!({"type": "mixed"}));
    let many = "a=1&".repeat(1001);
    assert_eq!(
        read_as(&schema, &Media::Form, many.as_bytes()),
        Err(Rejected::TooManyFields)
    );
    let deep = format!("v{}=1", "[a]".repeat(100));
    assert!(matches!(
        read_as(&schema, &Media::Form, deep.as_bytes()),
        Err(Rejected::TooDeep { .. })
    ));
    assert!(matches!(
        read_as(&schema, &Media::Form, b"a=1&v=%ff"),
        Err(Rejected::Malformed { offset: 4, .. })
    ));
}

fn multipart(body: &str) -> Result<Value, Rejected> {
    let schema = schema(json!([
        {"name": "a", "type": {"type": "string"}}, {"name": "n", "type": {"type": "list", "items": {"type": "integer"}}}]));
    let media = Media::Multipart {
        boundary: "XX".into(),
    };
    read_as(&schema, &media, body.replace('\n', "\r\n").as_bytes())
}

#[test]
fn multipart_files() {
    let schema = schema_with(
        json!({"strict": true, "properties": [
            {"name": "one", "type": {"type": "file", "class": 1, "minBytes": 2, "maxBytes": 5}},
            {"name": "many", "required": false, "type": {"type": "list", "items": {"type": "file", "class": 1}, "minItems": 1, "maxItems": 2, "unique": true}},
            {"name": "name", "required": false, "type": {"type": "string", "nullable": true}},
        ]}),
        json!([{"kind": "file", "title": "UploadedFile"}]),
    );
    let media = Media::Multipart {
        boundary: "XX".into(),
    };
    let file = |name: &str, file: &str, text: &str| {
        format!("--XX\r\nContent-Type: a/b\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"{file}\"\r\n\r\n{text}\r\n")
    };
    let text = |name: &str, text: &str| {
        format!("--XX\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n")
    };
    let read = |parts: &[String]| {
        read_as(
            &schema,
            &media,
            format!("{}--XX--\r\n", parts.concat()).as_bytes(),
        )
    };
    let good = [
        file("one", "C:\\\\dir\\\\a.txt", "12345"),
        file("many[]", "../b", "b\r\nb"),
        file("many[]", "\u{e4}", ""),
        text("name", "n"),
        file("name", "x", "not the field"),
        file("other", "x", "the request's"),
    ];
    assert_eq!(
        read(&good),
        Ok(json!({
            "0": {"file": ["a.txt", "a/b", "12345"]},
            "1": [{"file": ["b", "a/b", "b\r\nb"]}, {"file": ["\u{e4}", "a/b", ""]}],
            "2": "n",
        }))
    );
    let broken = |parts: &[String]| read(parts).map_err(rules);
    for (parts, rule) in [
        (vec![], "required /one"),
        (vec![file("one", "", "")], "required /one"),
        (vec![file("one", "a", "1")], "minBytes /one"),
        (vec![file("one", "a", "123456")], "maxBytes /one"),
        (vec![text("one", "123")], "type /one"),
    ] {
        assert_eq!(broken(&parts), Err(vec![rule.to_owned()]), "{parts:?}");
    }
    let equal = [
        file("one", "a", "12"),
        file("many[]", "a", "x"),
        file("many[]", "b", "x"),
    ];
    assert_eq!(broken(&equal), Err(vec!["uniqueItems /many".to_owned()]));
    let mixed = [file("one", "a", "12"), text("many[]", "x")];
    assert_eq!(broken(&mixed), Err(vec!["type /many/0".to_owned()]));
}

/// A file is three cells: where anything is taken, it must not pass for one.
#[test]
fn files_within_values_of_any_type() {
    let schema = schema(json!([
        {"name": "any", "required": false, "type": {"type": "mixed", "nullable": true}},
        {"name": "list", "required": false, "type": {"type": "list", "items": {"type": "mixed"}}},
    ]));
    let media = Media::Multipart {
        boundary: "XX".into(),
    };
    let file = |name: &str| {
        format!(
            "--XX\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"f\"\r\n\r\nx\r\n"
        )
    };
    let text = |name: &str| {
        format!("--XX\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\nx\r\n")
    };
    let read = |parts: &[String]| {
        let body = format!("{}--XX--\r\n", parts.concat());
        read_as(&schema, &media, body.as_bytes()).map_err(rules)
    };
    assert_eq!(
        read(&[text("any[a][]"), text("list[][b]")]),
        Ok(json!({"0": {"a": ["x"]}, "1": [{"b": "x"}]}))
    );
    for (name, pointer) in [
        ("any", "/any"),
        ("any[a]", "/any/a"),
        ("any[a/b][][c]", "/any/a~1b/0/c"),
        ("list[]", "/list/0"),
        ("list[][b]", "/list/0/b"),
    ] {
        let wrong = Err(vec![format!("type {pointer}")]);
        assert_eq!(read(&[file(name)]), wrong, "{name}");
        assert_eq!(read(&[text("other"), file(name)]), wrong, "{name}");
    }
}

#[test]
fn multipart_fields() {
    let part = |name: &str, text: &str| {
        format!("--XX\nContent-Disposition: form-data; name=\"{name}\"\n\n{text}\n")
    };
    let file = "--XX\nContent-Disposition: form-data; name=\"a\"; filename=\"a\"\nContent-Type: text/plain\n\nfile\n";
    let good = format!(
        "{}{}{file}{}--XX--\n",
        part("a", "line\n--X\nend"),
        part("n", "1"),
        part("n", "2")
    );
    assert_eq!(
        multipart(&good),
        Ok(json!({"0": "line\r\n--X\r\nend", "1": [1, 2]}))
    );
    assert_eq!(
        multipart(&format!(
            "preamble\n{}{}--XX--",
            part("a", ""),
            part("n[]", "3")
        )),
        Ok(json!({"0": "", "1": [3]}))
    );
    for broken in [
        "",
        "--XX",
        "--XX\n",
        "--XX\nContent-Disposition: form-data; name=\"a\"\n\nx",
        "--XX\nno end of head",
        "--XXy\n\n\n--XX--",
    ] {
        assert!(
            matches!(multipart(broken), Err(Rejected::Malformed { .. })),
            "{broken:?} {:?}",
            multipart(broken)
        );
    }
}
