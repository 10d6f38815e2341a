//! `$_SERVER` and the other superglobals, key by key.

use serde_json::{Map, Value};
use surus_tests::http::{Part, Request};

use crate::both;

/// Keys of `$_SERVER` that differ by nature.
const OWN: [&str; 5] = [
    "SERVER_SOFTWARE",
    "SERVER_PORT",
    "REMOTE_PORT",
    "REQUEST_TIME",
    "REQUEST_TIME_FLOAT",
];
/// Keys of `$_SERVER` that only one of the two has: FastCGI's, and a name of the user's besides `USER`; and one whose value
/// is each server's own.
const NOT_SHARED: [&str; 3] = ["FCGI_ROLE", "LOGNAME", "TMPDIR"];

fn compare(request: Request) -> Value {
    let target = request.target().to_owned();
    let (expected, got) = both(request);
    let expected = expected.expect(200).json();
    let got = got.expect(200).json();
    let server = |dump: &Value| -> Map<String, Value> {
        let mut server = dump["server"].as_object().expect("an array").clone();
        server.retain(|key, _| !NOT_SHARED.contains(&key.as_str()));
        for key in OWN {
            let value = server
                .get_mut(key)
                .unwrap_or_else(|| panic!("{target}: no {key}"));
            *value = Value::from(kind(value));
        }
        server
    };
    let (mut expected_server, got_server) = (server(&expected), server(&got));
    add_cgi(&mut expected_server);
    let keys: std::collections::BTreeSet<_> =
        expected_server.keys().chain(got_server.keys()).collect();
    let differences: Vec<_> = keys
        .into_iter()
        .filter(|key| expected_server.get(*key) != got_server.get(*key))
        .map(|key| {
            format!(
                "{key}: {:?} for {:?}",
                got_server.get(key),
                expected_server.get(key)
            )
        })
        .collect();
    assert!(
        differences.is_empty(),
        "{target}: $_SERVER differs\n{}",
        differences.join("\n")
    );
    for part in [
        "get", "post", "cookie", "request", "files", "input", "cwd", "included", "headers",
        "globals",
    ] {
        assert_eq!(expected[part], got[part], "{target}: {part}");
    }
    got
}

/// What CGI has and nginx does not pass on; Caddy does.
fn add_cgi(server: &mut Map<String, Value>) {
    let text =
        |server: &Map<String, Value>, key: &str| server[key].as_str().expect("a string").to_owned();
    server.insert("REMOTE_HOST".into(), server["REMOTE_ADDR"].clone());
    server.insert("REMOTE_IDENT".into(), "".into());
    server.insert("AUTH_TYPE".into(), "".into());
    let info = text(server, "PATH_INFO");
    if !info.is_empty() {
        let path = text(server, "DOCUMENT_ROOT") + &info;
        server.insert("PATH_TRANSLATED".into(), path.into());
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "string",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "int",
        _ => "other",
    }
}

#[test]
fn script() {
    let dump = compare(Request::get("/index.php"));
    assert_eq!(dump["server"]["SCRIPT_NAME"], "/index.php");
    assert_eq!(
        dump["server"]["SERVER_PORT"],
        crate::surus().address().port().to_string()
    );
}

#[test]
fn sapi_name() {
    let (_, got) = both(Request::get("/index.php"));
    assert_eq!(got.json()["sapi"], "surus");
}

#[test]
fn path_info_and_query() {
    let dump = compare(Request::get(
        "/info.php/path/in%20fo?x=1&y[]=2&y[]=3&z[a][b]=%C3%A9+%2B",
    ));
    assert_eq!(dump["server"]["PATH_INFO"], "/path/in fo");
    assert_eq!(dump["get"]["y"][1], "3");
}

#[test]
fn front_controller() {
    let dump = compare(Request::get("/pretty/permalink/?page=2"));
    assert_eq!(dump["server"]["REQUEST_URI"], "/pretty/permalink/?page=2");
    assert_eq!(dump["server"]["SCRIPT_NAME"], "/index.php");
}

#[test]
fn root() {
    compare(Request::get("/"));
    compare(Request::get("/?only=query"));
}

#[test]
fn directory_index() {
    let dump = compare(Request::get("/folder/"));
    assert_eq!(dump["server"]["SCRIPT_NAME"], "/folder/index.php");
}

#[test]
fn encoded_and_doubled_slashes() {
    compare(Request::get("/in%66o.php?raw=%2e%2e%2f"));
    compare(Request::get("/some/%C3%BCml%C3%A4ut/p%20q"));
}

#[test]
fn form() {
    let fields = [
        ("name", "Jumbo & Co"),
        ("list[]", "1"),
        ("list[]", "2"),
        ("map[k]", "v"),
        ("a.b c", "dots"),
    ];
    let dump = compare(Request::post("/info.php?name=query").form(&fields));
    assert_eq!(dump["post"]["list"][1], "2");
    assert_eq!(dump["post"]["a_b_c"], "dots");
}

#[test]
fn multipart() {
    let content = [0_u8, 255, 13, 10, 0].repeat(1000);
    let parts = [
        Part::field("title", "A picture"),
        Part::field("tags[]", "x"),
        Part::file("picture", "dir/a b.png", "image/png", &content),
        Part::file("many[]", "one.txt", "text/plain", b"one"),
        Part::file("many[]", "two.txt", "text/plain", b"two"),
        Part::file("none", "", "application/octet-stream", b""),
    ];
    let dump = compare(Request::post("/info.php").multipart(&parts));
    assert_eq!(dump["files"]["picture"]["size"], 5000);
}

#[test]
fn json_body() {
    let dump = compare(Request::post("/api/things").body("application/json", r#"{"a": [1, 2]}"#));
    assert_eq!(dump["input"], "eyJhIjogWzEsIDJdfQ==");
    let dump = compare(Request::new("PUT", "/api/things").body("text/plain", "put"));
    assert_eq!(dump["server"]["REQUEST_METHOD"], "PUT");
    compare(Request::new("PATCH", "/api/things").form(&[("not", "parsed")]));
    compare(Request::new("DELETE", "/api/things?id=3"));
    compare(Request::new("OPTIONS", "/api/things"));
}

#[test]
fn empty_post() {
    compare(Request::post("/info.php").body("application/x-www-form-urlencoded", ""));
}

#[test]
fn cookies() {
    let dump = compare(Request::get("/info.php").header(
        "Cookie",
        "one=1; two=a%20b; comma=1,2; list[x]=y; bad.name=z; one=again",
    ));
    assert_eq!(dump["cookie"]["two"], "a b");
    assert_eq!(dump["cookie"]["comma"], "1,2");
}

#[test]
fn basic_auth() {
    let dump = compare(
        Request::get("/info.php").header("Authorization", "Basic aGFubmliYWw6cGFzczp3b3Jk"),
    );
    assert_eq!(dump["server"]["PHP_AUTH_USER"], "hannibal");
    assert_eq!(dump["server"]["PHP_AUTH_PW"], "pass:word");
    compare(Request::get("/info.php").header("Authorization", "Bearer abc"));
}

#[test]
fn request_headers() {
    compare(
        Request::get("/info.php")
            .header("X-Requested-With", "XMLHttpRequest")
            .header("Accept-Language", "de,en;q=0.5")
            .header("User-Agent", "surus-test/1")
            .header("X-Forwarded-For", "1.2.3.4")
            .header("Proxy", "evil:1")
            .header("Referer", "http://surus.test/?a=b"),
    );
}

/// Functions, constants, classes and settings: what php-fpm's scripts find is there.
#[test]
fn environment() {
    // The server's own: its name and files, and what is different on purpose.
    const OWN: [&str; 8] = [
        "constants PHP_BINARY",
        "constants PHP_CONFIG_FILE_PATH",
        "constants PHP_CONFIG_FILE_SCAN_DIR",
        "constants PHP_SAPI",
        "extensions cgi-fcgi",
        "functions fpm_get_status",
        // A text for people: pages have their own.
        "settings html_errors",
        // Nobody is killed for holding OPcache's lock: docs/internals/isolates.md.
        "settings opcache.force_restart_timeout",
    ];
    let (expected, got) = both(Request::get("/environment.php"));
    let (expected, got) = (expected.expect(200).json(), got.expect(200).json());
    // An address, and settings of FastCGI.
    let is_own = |name: &str| {
        OWN.contains(&name)
            || name.contains("apc_register_serializer")
            || ["cgi.", "fastcgi.", "fpm."]
                .iter()
                .any(|prefix| name.starts_with(&format!("settings {prefix}")))
    };
    let off = |value: &Value| value == "" || value == "0" || value == "off";
    let mut missing = Vec::new();
    for part in [
        "functions",
        "constants",
        "classes",
        "extensions",
        "settings",
    ] {
        let listed = |dump: &Value| dump[part].as_object().expect("names").clone();
        let (expected, got) = (listed(&expected), listed(&got));
        for (key, value) in &expected {
            let name = format!("{part} {key}");
            let is_there = got.get(key).is_some_and(|own| {
                // The others are numbered.
                let compares = part == "constants" || part == "settings";
                !compares || own == value || (off(own) && off(value))
            });
            if !is_there && !is_own(&name) {
                missing.push(format!("{name}: {:?} for {value:?}", got.get(key)));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    let binary = got["constants"]["PHP_BINARY"].as_str().expect("a path");
    let surus = std::fs::canonicalize(surus_tests::surus::binary()).expect("the server");
    assert_eq!(binary, surus.to_str().expect("UTF-8"));
}

#[test]
fn response_headers() {
    let (_, got) = both(Request::get("/response_headers.php"));
    let headers = got.expect(200).json();
    assert_eq!(
        headers,
        serde_json::json!({"X-One": "1: one", "Set-Cookie": "b=2", "Content-Type": "application/json"})
    );
}
