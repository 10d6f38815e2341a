//! Input is validated before PHP is entered, and becomes objects without `json_decode`.
#![forbid(unsafe_code)]

#[path = "schema/own.rs"]
mod own;
#[path = "schema/services.rs"]
mod services;

use std::process::Command;
use std::sync::OnceLock;

use serde_json::{json, Value};
use surus_tests::fixture;
use surus_tests::http::{Connection, Part, Request, Response};
use surus_tests::surus::{binary, Surus};

const JSON: &str = "application/json";

fn server() -> std::net::SocketAddr {
    static SERVER: OnceLock<Surus> = OnceLock::new();
    SERVER
        .get_or_init(|| Surus::serve(&fixture("schema/app.php")).start())
        .address()
}

fn post(target: &str, body: &Value) -> Response {
    Request::post(target)
        .body(JSON, body.to_string())
        .send(server())
}

/// `rule pointer` of each error of a 422.
fn errors(response: &Response) -> Vec<String> {
    assert_eq!(response.status, 422, "{}", response.text());
    assert_eq!(
        response.header("content-type"),
        Some("application/problem+json")
    );
    let problem = response.json();
    let errors = problem["errors"].as_array().expect("a list of errors");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    errors
        .iter()
        .map(|error| format!("{} {}", text(&error["rule"]), text(&error["pointer"])))
        .collect()
}

fn user() -> Value {
    json!({"email": "a@b.co", "name": "äö", "age": 3})
}

#[test]
fn an_object_is_built_with_all_that_it_has() {
    let mut body = user();
    body["addresses"] =
        json!([{"city": "X", "zip": "12345"}, {"zip": null, "city": "Y\n\u{1f600}"}]);
    body["tags"] = json!(["a", "b"]);
    body["scores"] = json!({"a": 1, "7": 2});
    body["reference"] = json!("7");
    body["born"] = json!("2000-02-29");
    body["role"] = json!("admin");
    body["colour"] = json!("Red");
    body["friend"] = user();
    body["more"] = json!({"x": [1, null, 2.5, "ä", true, {"y": []}]});
    body["unknown"] = json!([1]);
    let answer = post("/users", &body).expect(200).json();
    let user = &answer["user"];
    assert_eq!(
        user["addresses"],
        json!([{"city": "X", "zip": "12345"}, {"city": "Y\n\u{1f600}", "zip": null}])
    );
    assert_eq!(user["tags"], body["tags"]);
    assert_eq!(user["scores"], json!({"a": 1, "7": 2}));
    assert_eq!(user["more"], body["more"]);
    assert_eq!(user["role"], "admin");
    assert_eq!(user["colour"], "Red");
    assert_eq!(user["friend"], "äö");
    assert_eq!(
        user["home"],
        json!({"city": "nowhere", "zip": null}),
        "a default that is a new object"
    );
    assert_eq!(answer["born"], "Tue, 29 Feb 2000");
    assert_eq!(answer["list"], true);
    let types = &answer["types"];
    assert_eq!(types["height"], "float", "a default of int for a float");
    assert_eq!(types["reference"], "string", "no coercion within a union");
    assert_eq!(types["addresses"], "array");
    assert_eq!(types["born"], "DateTimeImmutable");
    assert_eq!(types["role"], "Example\\Role");
    assert_eq!(types["friend"], "Example\\NewUser");
}

#[test]
fn what_is_not_sent_is_told_from_null() {
    let patch = |body: Value| {
        Request::new("PATCH", "/users/7")
            .body(JSON, body.to_string())
            .send(server())
    };
    for sent in [
        json!({}),
        json!({"phone": null}),
        json!({"phone": "123", "name": "ann"}),
        json!({"number": 1}),
        json!({"number": "1"}),
        json!({"home": null}),
        json!({"home": {"city": "X", "zip": null}, "role": "admin"}),
        json!({"addresses": []}),
        json!({"addresses": [{"city": "X", "zip": "12345"}]}),
    ] {
        let answer = patch(sent.clone()).expect(200).json();
        assert_eq!(answer["sent"], sent);
    }
    for (sent, expected) in [
        (json!({"name": null}), "type /name"),
        (json!({"phone": "1"}), "minLength /phone"),
        (json!({"phone": "taken@example.org"}), "notTaken /phone"),
        (json!({"home": {}}), "required /home/city"),
        (json!({"role": "Value"}), "enum /role"),
        (json!({"addresses": [{}]}), "required /addresses/0/city"),
    ] {
        assert_eq!(errors(&patch(sent)), [expected]);
    }
}

#[test]
fn php_is_not_entered_for_what_is_invalid() {
    // A server of its own: nobody else moves its counters.
    let own = Surus::serve(&fixture("schema/app.php")).start();
    let counters = || {
        Request::get("/entered")
            .send(own.address())
            .expect(200)
            .json()
    };
    let send = |body: &str| Request::post("/users").body(JSON, body).send(own.address());
    assert_eq!(counters(), json!({"entered": 0, "asked": 0}));
    for body in ["", "{", "[]", "{}", r#"{"email":"x","name":"y","age":"z"}"#] {
        let status = send(body).status;
        assert!(matches!(status, 400 | 422), "{body}: {status}");
    }
    assert_eq!(Request::post("/users").send(own.address()).status, 415);
    assert_eq!(counters(), json!({"entered": 0, "asked": 0}));
    send(&user().to_string()).expect(200);
    assert_eq!(counters(), json!({"entered": 1, "asked": 1}));
    // The second phase is PHP's, the handler is not reached.
    let mut taken = user();
    taken["email"] = json!("taken@example.org");
    assert_eq!(errors(&send(&taken.to_string())), ["notTaken /email"]);
    assert_eq!(counters(), json!({"entered": 1, "asked": 2}));
    taken["friend"] = taken.clone();
    assert_eq!(
        errors(&send(&taken.to_string())),
        ["notTaken /email", "notTaken /friend/email"]
    );
}

#[test]
fn every_error_is_said_with_its_place() {
    let body = json!({
        "email": "x", "name": "ä", "age": "3", "role": "root", "colour": "red",
        "addresses": [{"city": "X"}, {"zip": "1"}], "tags": ["a", "a", "toolong"], "scores": {"a/b": "1"},
        "height": "1", "reference": true, "born": "2001-02-29", "friend": {"name": "12345678901"}, "id": "1", "site": "http://a.b",
    });
    let expected = [
        "format /email",
        "minLength /name",
        "type /age",
        "enum /role",
        "enum /colour",
        "required /addresses/1/city",
        "pattern /addresses/1/zip",
        "maxLength /tags/2",
        "uniqueItems /tags",
        "type /scores/a~1b",
        "type /height",
        "type /reference",
        "format /born",
        "required /friend/email",
        "maxLength /friend/name",
        "required /friend/age",
        "format /id",
        "format /site",
    ];
    let response = post("/users", &body);
    assert_eq!(errors(&response), expected);
    let error = &response.json()["errors"][1];
    assert_eq!(
        *error,
        json!({"in": "body", "pointer": "/name", "rule": "minLength",
        "message": "must have at least 2 characters, has 1", "parameters": {"min": 2, "actual": 1}})
    );
    let german = Request::post("/users")
        .header("Accept-Language", "de-CH, en;q=0.5")
        .body(JSON, "{\"name\":\"x\"}")
        .send(server());
    let problem = german.json();
    assert_eq!(problem["errors"][0]["message"], "fehlt");
    assert_eq!(
        problem["errors"][1]["message"],
        "braucht mindestens 2 Zeichen"
    );
}

#[test]
fn input_of_two_places_is_refused_at_once() {
    let response = Request::post("/both?page=0")
        .body(JSON, "{}")
        .send(server());
    let places: Vec<(String, String)> = response.expect(422).json()["errors"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|error| (error["in"].to_string(), error["pointer"].to_string()))
        .collect();
    for place in [
        ("\"body\"", "\"/count\""),
        ("\"query\"", "\"/page\""),
        ("\"query\"", "\"/q\""),
    ] {
        let place = (place.0.to_owned(), place.1.to_owned());
        assert!(places.contains(&place), "{place:?} in {places:?}");
    }
}

#[test]
fn what_is_no_json_is_said_with_its_offset() {
    let send = |body: &[u8]| Request::post("/users").body(JSON, body).send(server());
    let problem = send(b"{\"email\":,}").expect(400).json();
    assert_eq!(problem["offset"], 9);
    send(b"\xff").expect(400);
    send(b"").expect(400);
    let deep = format!("{{\"more\":{}", "[".repeat(10_000));
    send(deep.as_bytes()).expect(400);
    let long = format!("{{\"more\":\"{}\"}}", "x".repeat(1024 * 1024));
    send(long.as_bytes()).expect(413);
}

#[test]
fn only_the_declared_media_types_are_read() {
    for content_type in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
    ] {
        let response = Request::post("/users")
            .body(content_type, "{}")
            .send(server());
        assert_eq!(response.status, 415, "{content_type}");
        assert_eq!(response.header("accept-post"), Some(JSON));
    }
    Request::post("/users")
        .body("application/vnd.x+json; charset=utf-8", user().to_string())
        .send(server())
        .expect(200);
    Request::post("/forms")
        .body(JSON, "{\"count\":1}")
        .send(server())
        .expect(415);
}

#[test]
fn a_constructor_with_a_body_is_called() {
    let order = post("/orders/a%20b", &json!({"unit-price": 3, "count": 2}))
        .expect(200)
        .json();
    assert_eq!(
        order,
        json!(["a b", {"count": 2, "price": 3, "label": "2 x none"}])
    );
    assert_eq!(
        errors(&post("/orders/1", &json!({"count": 0, "what": 1}))),
        ["additionalProperties /what", "minimum /count"]
    );
    post("/orders/1", &json!({"count": 1, "name": "throw"})).expect(500);
    post("/orders/1", &json!({"count": 1, "name": "pen"})).expect(200);
}

#[test]
fn forms_and_queries() {
    let form = |fields: &[(&str, &str)]| Request::post("/forms").form(fields).send(server());
    let order = form(&[("count", "2"), ("name", "a b"), ("unit-price", "2.5")])
        .expect(200)
        .json();
    assert_eq!(order, json!({"count": 2, "price": 2.5, "label": "2 x a b"}));
    assert_eq!(errors(&form(&[("count", "two")])), ["type /count"]);
    let parts = [
        Part::field("count", "3"),
        Part::file("ignored", "a.txt", "text/plain", b"x"),
    ];
    let order = Request::post("/forms")
        .multipart(&parts)
        .send(server())
        .expect(200)
        .json();
    assert_eq!(order["count"], 3);

    let search = |query: &str| Request::get(&format!("/search?{query}")).send(server());
    let found = search("q=%C3%A4+b&page=3&exact=on&ids=1&ids=2&role=")
        .expect(200)
        .json();
    assert_eq!(
        found,
        json!({"q": "ä b", "page": 3, "exact": true, "ids": [1, 2], "role": null})
    );
    let missing = search("page=0&ids[]=1&ids[]=x");
    assert_eq!(
        errors(&missing),
        ["required /q", "minimum /page", "type /ids/1"]
    );
    assert_eq!(missing.json()["errors"][0]["in"], "query");

    let both = Request::post("/both?q=1")
        .form(&[("count", "1")])
        .send(server())
        .expect(200)
        .json();
    assert_eq!(both[0]["count"], 1);
    assert_eq!(both[1]["q"], "1");
    let both = Request::post("/both")
        .body(JSON, "{\"count\":1}")
        .send(server());
    assert_eq!(both.json()["errors"][0]["in"], "query");
}

/// A picture of one pixel.
const PNG: &[u8] =
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89";

#[test]
fn uploaded_files_are_properties() {
    let own = Surus::serve(&fixture("schema/app.php")).start();
    let send = |parts: &[Part]| {
        let title = Part::field("title", "t");
        let mut all = vec![title];
        all.extend_from_slice(parts);
        Request::post("/photos").multipart(&all).send(own.address())
    };
    let photo = Part::file("photo", "../dir/a.png", "text/html", PNG);
    let note = |text: &'static [u8]| Part::file("more[]", "n.txt", "text/plain", text);
    let answer = send(&[
        photo,
        note(b"first"),
        note(b"second"),
        Part::file("other", "x", "a/b", b"x"),
    ])
    .expect(200)
    .json();
    assert_eq!(
        answer["photo"],
        json!([
            true,
            "a.png",
            "text/html",
            "image/png",
            PNG.len(),
            PNG.len(),
            "png"
        ])
    );
    assert_eq!(answer["more"][1][1], "n.txt");
    assert_eq!(answer["more"][1][4], 6);
    assert_eq!(answer["thumbnail"], Value::Null);
    assert_eq!(answer["there"], json!([true, true, 0o600]));
    assert_eq!(answer["moved"], json!([true, false, false]));
    assert_eq!(answer["undeclared"], json!(["photo", "more", "other"]));
    // An empty field for a file is none; what is left of the request is nothing.
    let empty = Part::file("thumbnail", "", "application/octet-stream", b"");
    let answer = send(&[photo, empty]).expect(200).json();
    assert_eq!(
        (&answer["thumbnail"], &answer["more"]),
        (&Value::Null, &json!([]))
    );
    let left = std::fs::read_dir(own.folder()).expect("its folder");
    let left: Vec<_> = left
        .map(|entry| entry.expect("a file").file_name())
        .filter(|name| name.to_string_lossy().starts_with("upload-"))
        .collect();
    assert!(left.is_empty(), "{left:?}");

    let large = vec![b'x'; 50_001];
    for (parts, rule) in [
        (vec![], "required /photo"),
        (vec![Part::file("photo", "", "", b"")], "required /photo"),
        (
            vec![Part::file("photo", "a", "image/png", b"short")],
            "minBytes /photo",
        ),
        (
            vec![Part::file("photo", "a", "image/png", &large)],
            "maxBytes /photo",
        ),
        (vec![Part::field("photo", "a text")], "type /photo"),
        (
            vec![photo, note(b"1"), note(b"2"), note(b"3")],
            "maxItems /more",
        ),
        (
            vec![photo, note(b"more than ten bytes")],
            "maxBytes /more/0",
        ),
        // By its content, whatever it is called.
        (
            vec![Part::file(
                "photo",
                "a.png",
                "image/png",
                b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0",
            )],
            "file /photo",
        ),
        (
            vec![photo, note(b"plain text"), note(&PNG[..9])],
            "file /more/1",
        ),
    ] {
        assert_eq!(errors(&send(&parts)), [rule], "{rule}");
    }
    let whole = vec![b'x'; 100_001];
    assert_eq!(send(&[Part::file("photo", "a", "a/b", &whole)]).status, 413);
    let json = Request::post("/photos")
        .body(JSON, "{}")
        .send(own.address());
    assert_eq!(json.status, 415);
}

#[test]
fn the_body_is_still_there_for_php() {
    let body = r#"{"count":3,"name":"\u000a"}"#;
    let answer = Request::post("/raw")
        .body(JSON, body)
        .send(server())
        .expect(200)
        .json();
    assert_eq!(answer, json!([3, {"count": 3, "name": "\n"}, body.len()]));
    // In pieces, and of a length that is not announced.
    let mut connection = Connection::open(server()).expect("a connection");
    let head = format!("POST /raw HTTP/1.1\r\nHost: a\r\nContent-Type: {JSON}\r\nTransfer-Encoding: chunked\r\n\r\n");
    connection.write(head.as_bytes()).expect("the head");
    for piece in [&body[..5], &body[5..]] {
        connection
            .write(format!("{:x}\r\n{piece}\r\n", piece.len()).as_bytes())
            .expect("a piece");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    connection.write(b"0\r\n\r\n").expect("the end");
    assert_eq!(
        connection.response("POST").expect("an answer").json()[2],
        body.len()
    );
}

#[test]
fn large_and_many() {
    let addresses: Vec<Value> = (0..3000)
        .map(|i| json!({"city": format!("City \"{i}\" ä")}))
        .collect();
    let mut body = user();
    body["addresses"] = json!(addresses);
    for _ in 0..20 {
        let answer = post("/users", &body).expect(200).json();
        assert_eq!(answer["user"]["addresses"][2999]["city"], "City \"2999\" ä");
    }
}

#[test]
fn what_cannot_be_described_does_not_boot() {
    for (case, expected) in [
        ("pair", "parameter $text of Pair::__construct(): at least 3"),
        (
            "untyped",
            "parameter $mail of Untyped::__construct(): #[Email] has no meaning for its type",
        ),
        (
            "resourceful",
            "parameter $call of Resourceful::__construct(): ",
        ),
        (
            "expression",
            "parameter $text of Expression::__construct(): the pattern \"(\"",
        ),
        (
            "upload",
            "parameter $input of the handler for \"POST /\" has uploaded files, which only a form brings",
        ),
        (
            "never sent",
            "parameter $name of NeverSent::__construct(): Undefined is no type of its own",
        ),
        (
            "no default",
            "parameter $name of NoDefault::__construct(): what may be Undefined needs the default Undefined::Value",
        ),
        (
            "unfinished",
            "Unfinished cannot be input: it cannot be instantiated",
        ),
    ] {
        let output = Command::new(binary())
            .args(["serve", "--listen", "127.0.0.1:0", "--workers", "1"])
            .arg(fixture("schema/broken.php"))
            .env("TEST_CASE", case)
            .env("SURUS_CLEAR_ENV", "false")
            .output()
            .expect("the server runs");
        let log = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{case}: {log}");
        assert!(
            log.contains("broken.php:") && log.contains(expected),
            "{case}: {log}"
        );
    }
}

#[test]
fn nothing_is_left_of_objects_that_were_built_or_half_built() {
    let server = Surus::serve(&fixture("schema/leaks.php")).start();
    let send = |body: &Value, status: u16| {
        let request = Request::post("/").body(JSON, body.to_string());
        request.send(server.address()).expect(status);
    };
    let part = |text: &str| json!({"text": text, "inner": {"text": "\u{e4}nner"}});
    let whole = json!({"name": "n", "parts": [part("a"), part("b")], "named": {"x": part("c"), "7": part("d")},
        "day": "2024-02-29", "size": 1, "rest": {"a": ["long enough", {"b": null}]}});
    let mut half = whole.clone();
    half["named"]["z"] = json!({"text": "ok", "inner": {"text": "throw"}});
    let mut refused = whole.clone();
    refused["name"] = json!("refused");
    let round = || {
        for _ in 0..100 {
            send(&whole, 200);
            send(&half, 500);
            send(&refused, 422);
        }
        let memory = Request::get("/memory").send(server.address()).expect(200);
        memory.json()["bytes"].as_i64().expect("a number")
    };
    let before = round();
    let after = round();
    assert!(after - before < 4096, "{before} bytes, then {after}");
}
