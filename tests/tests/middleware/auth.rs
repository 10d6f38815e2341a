//! Who a client is, and what it may do.

use std::process::Command;

use serde_json::Value;
use surus_tests::temp::TempDir;

use super::*;

#[test]
fn basic_and_bearer() {
    let server = server();
    let with = |path: &str, value: &str| {
        ask(
            &server,
            &format!("GET /{path}"),
            &[&format!("Authorization: {value}")],
        )
    };
    let challenge = ask(&server, "GET /basic", &[]).expect(401);
    assert_eq!(
        challenge.header("www-authenticate"),
        Some("Basic realm=\"Test\", charset=\"UTF-8\"")
    );
    // ann:correct horse
    assert_eq!(
        with("basic", "Basic YW5uOmNvcnJlY3QgaG9yc2U=").text(),
        "user ann"
    );
    for wrong in [
        "Basic YW5uOndyb25n",
        "Basic YW5u",
        "Basic !!!!",
        "Basic",
        "Bearer YW5uOmNvcnJlY3QgaG9yc2U=",
        "Basic Og==",
    ] {
        assert_eq!(with("basic", wrong).status, 401, "{wrong}");
    }
    assert_eq!(with("bearer", "Bearer s3cret").text(), "user robot");
    let wrong = with("bearer", "Bearer wrong").expect(401);
    assert_eq!(
        wrong.header("www-authenticate"),
        Some("Bearer error=\"invalid_token\"")
    );
    assert_eq!(
        ask(&server, "GET /bearer?access_token=s3cret", &[]).status,
        401
    );
}

#[test]
fn a_bearer_token_may_be_optional() {
    let server = server();
    let path = "GET /bearer-or-nobody";
    assert_eq!(ask(&server, path, &[]).expect(200).text(), "nobody");
    for (value, status, body) in [
        ("Bearer s3cret", 200, "robot"),
        // Another scheme is no token.
        ("Basic YW5uOmNvcnJlY3QgaG9yc2U=", 200, "nobody"),
    ] {
        let header = format!("Authorization: {value}");
        assert_eq!(ask(&server, path, &[&header]).expect(status).text(), body);
    }
    let wrong = ask(&server, path, &["Authorization: Bearer wrong"]).expect(401);
    assert_eq!(
        wrong.header("www-authenticate"),
        Some("Bearer error=\"invalid_token\"")
    );
}

#[test]
fn tokens() {
    let folder = TempDir::new("tokens");
    let set = folder.path().join("jwks.json");
    let output = Command::new("php8.2")
        .arg(fixture("middleware/tokens.php"))
        .arg(&set)
        .output()
        .expect("PHP");
    let tokens: Value = serde_json::from_slice(&output.stdout).expect("tokens");
    let status = |server: &Surus, token: &Value| {
        let header = format!("Authorization: Bearer {}", token.as_str().unwrap());
        ask(server, "GET /jwt", &[&header]).status
    };
    let server = server();
    let good = ask(
        &server,
        "GET /jwt",
        &[&format!(
            "Authorization: Bearer {}",
            tokens["good"].as_str().unwrap()
        )],
    );
    assert_eq!(good.expect(200).json()["sub"], "ann");
    for (what, token) in tokens["bad"].as_object().unwrap() {
        assert_eq!(status(&server, token), 401, "{what}");
    }
    let server = Surus::serve(&fixture("middleware/app.php"))
        .env("JWKS_FILE", set.to_str().unwrap())
        .start();
    for (what, token) in tokens["set"].as_object().unwrap() {
        assert_eq!(status(&server, token), 200, "{what}");
    }
    for (what, token) in tokens["bad of the set"].as_object().unwrap() {
        assert_eq!(status(&server, token), 401, "{what}");
    }
}

fn login(server: &Surus, headers: &[&str], remember: bool) -> Response {
    let mut fields = vec![("name", "ann"), ("password", "correct horse")];
    if remember {
        fields.push(("remember", "1"));
    }
    send(server, "POST /account/login", headers, |request| {
        request.form(&fields)
    })
}

#[test]
fn logging_in_and_what_somebody_may() {
    let server = server();
    let get = |path: &str, headers: &[&str]| ask(&server, &format!("GET /account/{path}"), headers);
    assert_eq!(get("anybody", &[]).text(), "user ");
    assert_eq!(get("mine", &[]).status, 401);
    let page = get("mine?a=b", &["Accept: text/html"]).expect(303);
    assert_eq!(
        page.header("location"),
        Some("/account/login?back=%2Faccount%2Fmine%3Fa%3Db")
    );
    let wrong = send(&server, "POST /account/login", &[], |r| {
        r.form(&[("name", "ann"), ("password", "x")])
    });
    assert_eq!((wrong.status, wrong.header("set-cookie")), (401, None));

    // Fixation: a session that somebody else knows is another one after logging in.
    let planted = cookie(&ask(&server, "GET /session/files/set/a/1", &[]), "session").unwrap();
    let session = cookie(&login(&server, &[&planted], false), "session").unwrap();
    assert_ne!(session, planted);
    assert_eq!(get("mine", &[&planted]).status, 401);
    let mine = get("mine", &[&session]).expect(200);
    assert_eq!(
        (mine.text().as_str(), mine.header("cache-control")),
        ("user ann", Some("private"))
    );

    assert_eq!(get("edit/ann", &[&session]).text(), "edited");
    assert_eq!(get("edit/bob", &[&session]).status, 403);
    assert_eq!(get("edit/ann", &[]).status, 401);
    assert_eq!(
        (get("rule", &[&session]).status, get("rule", &[]).status),
        (200, 401)
    );
    ask(&server, "POST /account/logout", &[&session]).expect(200);
    assert_eq!(
        get("mine", &[&session]).status,
        401,
        "the session has ended on the server, too"
    );
}

#[test]
fn being_remembered() {
    let server = server();
    let mine = |headers: &[&str]| ask(&server, "GET /account/mine", headers);
    let first = login(&server, &[], true);
    let remembered = first
        .all("set-cookie")
        .find(|c| c.starts_with("remember="))
        .unwrap()
        .to_owned();
    assert!(
        remembered.contains("Max-Age=2592000") && remembered.contains("HttpOnly"),
        "{remembered}"
    );
    let stolen = cookie(&first, "remember").unwrap();
    let back = mine(&[&stolen]).expect(200);
    let next = cookie(&back, "remember").expect("a cookie is good once");
    assert_ne!(next, stolen);
    assert!(cookie(&back, "session").is_some());
    // The thief comes with the old one: everybody has to log in again.
    let thief = mine(&[&stolen]).expect(401);
    let taken = thief
        .header("set-cookie")
        .expect("the cookie is taken away");
    assert!(
        taken.starts_with("remember=;") && taken.contains("Max-Age=0"),
        "{taken}"
    );
    assert_eq!(mine(&[&next]).status, 401);
    for made_up in [
        "Cookie: remember=a.b",
        "Cookie: remember=.",
        "Cookie: remember=../../../../etc/pass.x",
    ] {
        assert_eq!(mine(&[made_up]).status, 401, "{made_up}");
    }
    // Logging out ends the series.
    let again = login(&server, &[], true);
    let (session, remember) = (
        cookie(&again, "session").unwrap(),
        cookie(&again, "remember").unwrap(),
    );
    let both = format!("{session}; {}", remember.trim_start_matches("Cookie: "));
    ask(&server, "POST /account/logout", &[&both]).expect(200);
    assert_eq!(mine(&[&remember]).status, 401);
}
