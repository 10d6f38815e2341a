use super::*;
use crate::signature::md5_of;
use crate::signature::tests::sign;
use crate::tests::{now, Server};
use crate::App;

const NOW: u64 = 1_700_000_000;

fn app(id: &str) -> App {
    App {
        id: id.to_owned(),
        key: format!("key-{id}"),
        secret: format!("secret-{id}"),
        prefix: format!("{id}/"),
        client_events: true,
        max_connections: 10,
        max_channels: 10,
        max_event: 100,
    }
}

fn front() -> std::rc::Rc<Front> {
    std::rc::Rc::<Server>::default().worker(vec![app("1"), app("2")])
}

/// Signs a request as `of`, at `time`.
fn query(of: &str, time: u64, method: &str, path: &str, more: &str, body: &str) -> String {
    let mut parts = vec![
        format!("auth_key=key-{of}"),
        format!("auth_timestamp={time}"),
        "auth_version=1.0".to_owned(),
    ];
    if !body.is_empty() {
        parts.push(format!("body_md5={}", md5_of(body.as_bytes())));
    }
    parts.extend((!more.is_empty()).then(|| more.to_owned()));
    parts.sort();
    let query = parts.join("&");
    let signature = sign(
        &format!("secret-{of}"),
        &format!("{method}\n{path}\n{query}"),
    );
    format!("{query}&auth_signature={signature}")
}

fn ask(front: &Front, method: &str, path: &str, more: &str, body: &str) -> (u16, Value) {
    let query = query("1", NOW, method, path, more, body);
    let response = send(front, method, path, &query, body);
    (response.status, response.body)
}

fn send(front: &Front, method: &str, path: &str, query: &str, body: &str) -> Response {
    let request = Request {
        method,
        path,
        query,
        body: body.as_bytes(),
        now: NOW,
    };
    now(answer(front, &request))
}

#[test]
fn only_signed_requests_are_followed() {
    let front = front();
    let (path, body) = ("/apps/1/events", r#"{"name":"a","channel":"b","data":"c"}"#);
    assert_eq!(ask(&front, "POST", path, "", body), (200, json!({})));
    let right = query("1", NOW, "POST", path, "", body);
    let tampered = body.replace("\"b\"", "\"d\"");
    for (query, path, body) in [
        (query("1", NOW - 601, "POST", path, "", body), path, body),
        (query("1", NOW + 601, "POST", path, "", body), path, body),
        (query("2", NOW, "POST", path, "", body), path, body),
        (query("1", NOW, "GET", path, "", body), path, body),
        (query("1", NOW, "POST", path, "", ""), path, body),
        (right.clone(), "/apps/2/events", body),
        (right.clone(), path, &tampered),
        (right.clone() + "&info=user_count", path, body),
        (
            right.replace("auth_version=1.0", "auth_version=2.0"),
            path,
            body,
        ),
        (String::new(), path, body),
    ] {
        assert_eq!(
            send(&front, "POST", path, &query, body).status,
            401,
            "{query}"
        );
    }
    assert_eq!(
        send(&front, "POST", "/apps/3/events", &right, body).status,
        404
    );
}

#[test]
fn what_is_malformed_is_refused() {
    let front = front();
    let many: Vec<String> = (0..101).map(|number| number.to_string()).collect();
    let many = json!({"name": "a", "channels": many, "data": ""}).to_string();
    let long = json!({"name": "a", "channel": "b", "data": "x".repeat(101)}).to_string();
    for (body, status) in [
        ("", 400),
        ("{}", 400),
        (r#"{"name":"a","data":"c"}"#, 400),
        (r#"{"name":"","channel":"b","data":"c"}"#, 400),
        (r#"{"name":"a","channel":"b c","data":"c"}"#, 400),
        (
            r##"{"name":"terminate","channel":"#surus","data":"7"}"##,
            400,
        ),
        (r#"{"name":"a","channel":"b","data":{}}"#, 400),
        (
            r#"{"name":"a","channel":"b","data":"","socket_id":"x"}"#,
            400,
        ),
        (
            r#"{"name":"a","channel":"b","data":"","info":"user_count"}"#,
            400,
        ),
        (&many, 400),
        (&long, 413),
    ] {
        let (found, _) = ask(&front, "POST", "/apps/1/events", "", body);
        assert_eq!(found, status, "{body}");
    }
    let event = json!({"name": "a", "channel": "b", "data": ""});
    for (count, status) in [(10, 200), (11, 400)] {
        let body = json!({"batch": vec![event.clone(); count]}).to_string();
        assert_eq!(
            ask(&front, "POST", "/apps/1/batch_events", "", &body).0,
            status
        );
    }
    for (method, path, more, status) in [
        ("GET", "/apps/1/events", "", 404),
        ("GET", "/apps/1/else", "", 404),
        ("GET", "/apps/1/channels", "info=user_count", 400),
        ("GET", "/apps/1/channels/a", "info=user_count", 400),
        ("GET", "/apps/1/channels/a/users", "", 400),
        ("GET", "/apps/1/channels", "info=other", 400),
    ] {
        assert_eq!(ask(&front, method, path, more, "").0, status, "{path}");
    }
}

#[test]
fn channels_without_subscribers_are_free() {
    let front = front();
    let (status, body) = ask(&front, "GET", "/apps/1/channels", "", "");
    assert_eq!((status, body), (200, json!({"channels": {}})));
    let (_, body) = ask(
        &front,
        "GET",
        "/apps/1/channels/a",
        "info=subscription_count",
        "",
    );
    assert_eq!(body, json!({"occupied": false, "subscription_count": 0}));
    let (_, body) = ask(&front, "GET", "/apps/1/channels/presence-a/users", "", "");
    assert_eq!(body, json!({"users": []}));
}

#[test]
fn paths_of_the_application_are_its_own() {
    let front = front();
    assert!(is_own(&front, "/apps/1/events", "a=b&auth_key=key-1"));
    assert!(is_own(&front, "/apps/7/events", "auth_signature=1"));
    for query in ["", "a=auth_key=", "my_auth_key=1", "auth_key"] {
        assert!(!is_own(&front, "/apps/1/events", query), "{query}");
    }
    assert!(!is_own(&front, "/apps/7/events", "auth_key=key-1"));
    for path in [
        "/apps/1",
        "/apps/1/else",
        "/apps/7/events",
        "/app/1/events",
        "/",
    ] {
        let query = "auth_key=key-1";
        assert!(!is_own(&front, path, query), "{path}");
    }
    assert_eq!(request::decoded("a%20b+c=d&e"), "a b+c=d&e");
}
