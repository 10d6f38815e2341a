//! Requests, responses, files and cookies of coroutine applications, as clients that mean well or ill see them.
#![forbid(unsafe_code)]

use serde_json::json;
use surus_tests::fixture;
use surus_tests::http::{Part, Request, Response};
use surus_tests::surus::Surus;

fn server() -> Surus {
    Surus::serve(&fixture("http/app.php")).start()
}

fn get(server: &Surus, target: &str, headers: &[(&str, &str)]) -> Response {
    let request = Request::get(target);
    let request = headers.iter().fold(request, |request, (name, value)| {
        request.header(name, value)
    });
    request.send(server.address())
}

#[test]
fn requests_are_understood() {
    let server = server();
    let about = get(
        &server,
        "/about?x=1",
        &[
            ("Host", "Example.com:81"),
            ("Content-Type", "Text/Plain; charset=x"),
            ("Authorization", "bearer abc.DEF-1="),
            ("Accept", "text/*;q=0.5, application/json;q=0.9, */*;q=0.1"),
            ("Accept-Language", "fr, pt;q=0.8, de;q=0.7"),
            ("Cookie", "a=1; b=x%3Dy; a=2; =z; junk; c=1,2"),
            ("Cookie", "d=3"),
        ],
    )
    .json();
    assert_eq!(
        about,
        json!({"method": "GET", "host": "example.com:81", "scheme": "http", "url": "http://example.com:81/about?x=1",
            "ip": "127.0.0.1", "type": "text/plain", "bearer": "abc.DEF-1=", "json": true, "best": "application/json",
            "language": "pt-BR", "cookies": {"a": "1", "b": "x=y", "c": "1,2", "d": "3"}})
    );
    let none = get(
        &server,
        "/about",
        &[
            ("Host", "a,b"),
            ("Accept", "image/png"),
            ("Authorization", "Bearer a b"),
        ],
    )
    .json();
    assert_eq!(none["host"], "", "no host name");
    assert_eq!(
        (&none["json"], &none["best"], &none["bearer"]),
        (&json!(false), &json!(null), &json!(null))
    );
}

/// PHP reads lists with weights as Rust does: the table is the same.
#[test]
fn weights_are_what_the_table_says() {
    let server = server();
    let table = include_str!("../weights.txt");
    for row in table.lines().filter(|row| !row.starts_with('#')) {
        let (list, rest) = row.split_once(" | ").expect("a list");
        let (item, weight) = rest.split_once(" | ").expect("an item and its weight");
        let answer = get(
            &server,
            &format!("/weight?item={item}"),
            &[("Accept", list)],
        );
        assert_eq!(answer.expect(200).text(), weight, "{row}");
    }
}

/// Of "en", "de" and "pt-BR".
#[test]
fn the_language_that_is_liked_best_is_chosen() {
    let server = server();
    for (accept, language) in [
        ("pt;q=0.8, de;q=0.7", "pt-BR"),
        ("de-AT, en;q=0.9", "de"),
        ("de, en", "de"),
        ("fr", "en"),
        // Any other language.
        ("*", "en"),
        ("fr, *;q=0.5", "en"),
        ("*, en;q=0.5", "de"),
        ("en;q=0, *", "de"),
        ("en;q=0, de;q=0, *;q=0.1", "pt-BR"),
        ("de, *;q=0.9", "de"),
        ("*;q=0.5, pt-br", "pt-BR"),
        // What is said of a language itself counts.
        ("de-AT;q=0.9, de;q=0.2, en;q=0.5", "en"),
        ("de-AT;q=0.1, de-CH;q=0.9, en;q=0.5", "de"),
        ("de;q=0", "en"),
    ] {
        let about = get(&server, "/about", &[("Accept-Language", accept)]).json();
        assert_eq!(about["language"], language, "{accept}");
    }
}

#[test]
fn json_that_is_none_is_the_clients_mistake() {
    let server = server();
    let send = |body: &str| {
        let request = Request::post("/json").body("application/json", body);
        request.send(server.address())
    };
    assert_eq!(send("[1]").expect(200).text(), r#"{"got":[1]}"#);
    let refused = send("{\"a\":").expect(400);
    assert_eq!(
        refused.text(),
        r#"{"title":"Bad Request","status":400,"detail":"The body is not JSON: Syntax error"}"#
    );
    assert!(!server.log().contains("JSON"), "{}", server.log());
}

#[test]
fn only_known_proxies_say_who_the_client_is() {
    let trusting = |proxies: &str| {
        Surus::serve(&fixture("http/app.php"))
            .argument("--set")
            .argument(format!("trusted_proxies={proxies}"))
            .start()
    };
    let (behind, elsewhere) = (
        trusting(r#"["127.0.0.0/8", "10.1.2.3"]"#),
        trusting("192.168.0.0/16"),
    );
    let ask = |server: &Surus, headers: &[(&str, &str)]| get(server, "/client", headers).json();
    let forwarded = [
        ("Host", "shop.example"),
        ("X-Forwarded-For", "6.6.6.6, 203.0.113.9, 10.1.2.3"),
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-Host", "evil.example"),
    ];
    assert_eq!(
        ask(&behind, &forwarded),
        json!(["203.0.113.9", "https", "shop.example"]),
        "the proxy passes the host on as it is"
    );
    let not_believed = json!(["127.0.0.1", "http", "shop.example"]);
    assert_eq!(ask(&elsewhere, &forwarded), not_believed);
    assert_eq!(ask(&server(), &forwarded), not_believed);
    let six = [("Host", "x"), ("X-Forwarded-For", "[2001:db8::1]:5000")];
    assert_eq!(ask(&behind, &six)[0], "2001:db8::1");
    for (list, client) in [
        ("6.6.6.6, 2001:db8::a:1", "2001:db8::a:1"),
        ("6.6.6.6, ::ffff:203.0.113.9", "203.0.113.9"),
        ("6.6.6.6, 203.0.113.9:80, ::ffff:10.1.2.3", "203.0.113.9"),
        ("6.6.6.6, unknown, 10.1.2.3", "10.1.2.3"),
    ] {
        let list = [("Host", "x"), ("X-Forwarded-For", list)];
        assert_eq!(ask(&behind, &list)[0], client);
    }
    // Of two lists the proxies' elements belong together.
    let chain = [
        ("Host", "x"),
        ("X-Forwarded-For", "203.0.113.9, 10.1.2.3"),
        ("X-Forwarded-Proto", "https, http"),
    ];
    assert_eq!(ask(&behind, &chain)[1], "https");
    let junk = [
        ("Host", "a,b"),
        ("X-Forwarded-For", "203.0.113.9, <script>"),
        ("X-Forwarded-Proto", "javascript"),
    ];
    assert_eq!(ask(&behind, &junk), json!(["127.0.0.1", "http", ""]));
}

#[test]
fn forms_and_uploads() {
    let server = server();
    let address = server.address();
    let form = Request::post("/form").form(&[("a", "1"), ("b[x]", "ä&")]);
    assert_eq!(
        form.send(address).json()["form"],
        json!({"a": "1", "b": {"x": "ä&"}})
    );
    for method in ["POST", "PUT"] {
        let form = Request::new(method, "/form").multipart(&[
            Part::field("a", "1"),
            Part::file("one", "../../etc/pass\"wd.php", "image/png", b"<?php evil"),
            Part::file("many[]", "x", "text/plain", b"first"),
            Part::file("many[]", "y", "text/plain", b"second"),
        ]);
        let answer = form.send(address).expect(200).json();
        assert_eq!(answer["form"], json!({"a": "1"}), "{method}");
        assert_eq!(answer["many"], json!(["first", "second"]));
        let one = &answer["one"];
        assert_eq!(one[6], "<?php evil");
        assert!(!one[2].as_str().unwrap().contains('/'), "{one}");
        assert_ne!(one[5], "png", "what the client says is not what it is");
    }
    let none = Request::post("/form").multipart(&[Part::file("one", "", "text/plain", b"")]);
    assert_eq!(none.send(address).json()["one"][0], false);
    let kept = Request::post("/keep").multipart(&[Part::file("one", "x", "text/plain", b"kept")]);
    assert_eq!(kept.send(address).text(), "kept moved");
    let large = vec![b'x'; 3_000_000];
    let streamed = Request::post("/stream").body("application/octet-stream", large);
    assert_eq!(streamed.send(address).text(), sha256_of_x(3_000_000));
}

/// From coreutils, which has nothing to do with the server.
fn sha256_of_x(count: usize) -> String {
    let command = format!("head -c {count} /dev/zero | tr '\\0' x | sha256sum");
    let output = std::process::Command::new("sh")
        .args(["-c", &command])
        .output()
        .expect("a shell");
    String::from_utf8_lossy(&output.stdout)[..64].to_owned()
}

#[test]
fn responses() {
    let server = server();
    let response = |what: &str| get(&server, &format!("/response/{what}"), &[]);
    for (what, status, content_type, body) in [
        ("json", 201, Some("application/json"), r#"{"ä":"/"}"#),
        ("text", 200, Some("text/plain; charset=UTF-8"), "<b>"),
        ("html", 200, Some("text/html; charset=UTF-8"), "<b>"),
        ("redirect", 303, None, ""),
        (
            "problem",
            402,
            Some("application/problem+json"),
            r#"{"type":"https://example.com/credit","title":"Payment Required","status":402,"balance":30}"#,
        ),
        (
            "events",
            200,
            Some("text/event-stream"),
            "data: one\n\nevent: addid: 9\nid: 7\ndata: two\ndata: lines\n\ndata: {\"a\":1}\n\n",
        ),
    ] {
        let answer = response(what);
        assert_eq!(
            (
                answer.status,
                answer.header("content-type"),
                answer.text().as_str()
            ),
            (status, content_type, body),
            "{what}"
        );
    }
    let chain = response("chain").expect(202);
    assert_eq!(chain.all("x-one").collect::<Vec<_>>(), ["2"]);
    assert_eq!(chain.all("x-two").collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(chain.header("vary"), Some("Accept, Origin"));
    // Whatever the case of its name: what is given wins.
    for what in ["json", "html", "text", "problem", "file", "download"] {
        let own = response(&format!("own/{what}"));
        assert_eq!(
            own.all("content-type").collect::<Vec<_>>(),
            ["a/b"],
            "{what}"
        );
        assert!(own
            .all("content-disposition")
            .all(|value| value == "inline"));
    }
    let lists = response("lists").expect(200);
    assert_eq!(
        lists.all("vary").collect::<Vec<_>>(),
        ["Accept, Cookie, Origin"]
    );
    assert_eq!(response("redirect").header("location"), Some("/there?a=b"));
    for (to, location) in [
        ("/in", "/in"),
        ("//evil.example", "/"),
        ("/%5Cevil.example", "/"),
        ("https://evil.example", "/"),
        ("/a%0d%0aSet-Cookie:x", "/"),
        ("/a%5C..%5Cb", "/"),
    ] {
        assert_eq!(
            response(&format!("back?to={to}")).header("location"),
            Some(location),
            "{to}"
        );
    }
    assert_eq!(
        response("split?to=/a%0d%0aX-Evil:%201")
            .expect(500)
            .header("x-evil"),
        None
    );
}

/// `header_register_callback()`: whatever a handler returns.
#[test]
fn a_header_callback_is_called_before_the_response() {
    let server = server();
    for what in ["text", "array", "status", "nothing", "response", "printed"] {
        let answer = get(&server, &format!("/callback/{what}"), &[]);
        assert_eq!(answer.header("x-called"), Some(what), "{}", answer.text());
        let next = get(&server, "/response/text", &[]);
        assert_eq!(next.header("x-called"), None);
    }
}

#[test]
fn cookies() {
    let server = server();
    let set: Vec<String> = get(&server, "/response/cookies", &[])
        .all("set-cookie")
        .map(str::to_owned)
        .collect();
    assert_eq!(set[0], "plain=a%20b%3Bc; Path=/; HttpOnly; SameSite=Lax");
    assert!(
        set[1].starts_with("__Host-safe=1; Path=/; Max-Age=60; Expires="),
        "{}",
        set[1]
    );
    assert!(
        set[1].ends_with("; Secure; HttpOnly; SameSite=Strict"),
        "{}",
        set[1]
    );
    assert!(
        set[2].starts_with("gone=; Path=/; Max-Age=0; Expires=Thu, 01 Jan 1970"),
        "{}",
        set[2]
    );
    for what in ["name", "path", "none", "host"] {
        assert_eq!(
            get(&server, &format!("/response/bad-cookie/{what}"), &[]).text(),
            "refused",
            "{what}"
        );
    }
}

#[test]
fn signed_and_encrypted_cookies_are_what_was_set_or_nothing() {
    let server = server();
    let set = get(&server, "/vault/set", &[]);
    let values: Vec<String> = set
        .all("set-cookie")
        .map(|cookie| {
            cookie
                .split(';')
                .next()
                .unwrap()
                .split_once('=')
                .unwrap()
                .1
                .to_owned()
        })
        .collect();
    assert!(!values[1].contains("admin"));
    let read = |cookies: &str| get(&server, "/vault/get", &[("Cookie", cookies)]).json();
    let (signed, sealed) = (&values[0], &values[1]);
    assert_eq!(
        read(&format!("signed={signed}; sealed={sealed}")),
        json!(["user=7", "role=admin", null, "user=7"])
    );
    // Under another name, exchanged, changed, cut, without its signature, or made up.
    let (text, mac) = signed.split_once('.').unwrap();
    let other = if sealed.starts_with('A') { 'B' } else { 'A' };
    for forged in [
        format!("other={signed}"),
        format!("signed={sealed}; sealed={signed}"),
        format!("signed=dXNlcj04.{mac}; sealed={other}{}", &sealed[1..]),
        format!("signed={text}; sealed={}", &sealed[..20]),
        format!("signed={text}.; sealed="),
        "signed=.; sealed=%00%ff".to_owned(),
        "signed[]=a; sealed[]=b".to_owned(),
    ] {
        assert_eq!(read(&forged), json!([null, null, null, null]), "{forged}");
    }
}

#[test]
fn files_and_ranges() {
    let server = server();
    let file = |headers: &[(&str, &str)]| get(&server, "/file", headers);
    let whole = file(&[]).expect(200);
    assert_eq!(whole.text(), "abcdefghijklmnopqrstuvwxyz");
    assert_eq!(
        whole.header("content-type"),
        Some("text/plain; charset=UTF-8")
    );
    assert_eq!(
        (
            whole.header("content-length"),
            whole.header("accept-ranges")
        ),
        (Some("26"), Some("bytes"))
    );
    let etag = whole.header("etag").unwrap().to_owned();
    let modified = whole.header("last-modified").unwrap().to_owned();
    for (range, status, content, content_range) in [
        ("bytes=0-2", 206, "abc", "bytes 0-2/26"),
        ("bytes=24-", 206, "yz", "bytes 24-25/26"),
        ("bytes=-3", 206, "xyz", "bytes 23-25/26"),
        ("bytes=20-99", 206, "uvwxyz", "bytes 20-25/26"),
        ("bytes=26-", 416, "", "bytes */26"),
        ("bytes=-0", 416, "", "bytes */26"),
        ("bytes=3-1", 200, "abcdefghijklmnopqrstuvwxyz", ""),
        ("bytes=0-0,1-1,2-2", 200, "abcdefghijklmnopqrstuvwxyz", ""),
        ("lines=1-2", 200, "abcdefghijklmnopqrstuvwxyz", ""),
        (
            "bytes=99999999999999999999-",
            200,
            "abcdefghijklmnopqrstuvwxyz",
            "",
        ),
    ] {
        let part = file(&[("Range", range)]);
        assert_eq!(
            (
                part.status,
                part.text().as_str(),
                part.header("content-range").unwrap_or("")
            ),
            (status, content, content_range),
            "{range}"
        );
    }
    assert_eq!(file(&[("If-None-Match", &etag)]).status, 304);
    assert_eq!(file(&[("If-None-Match", "\"other\"")]).status, 200);
    assert_eq!(file(&[("If-Modified-Since", &modified)]).status, 304);
    assert_eq!(
        file(&[("Range", "bytes=0-2"), ("If-Range", &etag)]).status,
        206
    );
    assert_eq!(
        file(&[("Range", "bytes=0-2"), ("If-Range", "\"old\"")]).status,
        200
    );
    let head = Request::new("HEAD", "/file")
        .send(server.address())
        .expect(200);
    assert_eq!(
        (head.header("content-length"), head.body.len()),
        (Some("26"), 0)
    );
    let download = get(&server, "/download", &[]);
    assert_eq!(
        download.header("content-disposition"),
        Some("attachment; filename=\"Gr____e _1_.txt\"; filename*=UTF-8''Gr%C3%B6%C3%9Fe%20%221%22.txt")
    );
    assert_eq!(get(&server, "/empty-file", &[]).expect(200).body.len(), 0);
    assert_eq!(get(&server, "/missing", &[]).status, 404);
    assert_eq!(get(&server, "/folder", &[]).status, 404);
    let large = get(&server, "/large", &[]).expect(200);
    assert_eq!(large.body.len(), 1 << 20);
    let part = get(&server, "/large", &[("Range", "bytes=500000-999999")]).expect(206);
    assert_eq!(part.body.len(), 500_000);
    assert_eq!(part.body, large.body[500_000..1_000_000]);
}
