//! The client cannot say who it is, which scheme it used or which name it meant, unless a proxy that is trusted does.

use std::net::Ipv4Addr;

use serde_json::Value;

use surus_tests::http::{Connection, Request, Response};
use surus_tests::surus::{Mode, Surus};

use super::{get, server};

const PROXY: &str = "[server]\ntrusted_proxies = ['127.0.0.1']\n";

/// `$_SERVER` as PHP has it for a request with these headers.
fn seen(server: &Surus, headers: &[(&str, &str)]) -> Value {
    let mut request = Request::get("/vars");
    for (name, value) in headers {
        request = request.header(name, value);
    }
    request.send(server.address()).expect(200).json()
}

/// Sent from an address that is no proxy's.
fn from_outside(server: &Surus, head: &str) -> Response {
    let outside = Ipv4Addr::new(127, 0, 0, 2);
    let mut connection = Connection::open_from(outside, server.address()).expect("a connection");
    connection.write(head.as_bytes()).expect("a request");
    connection.response("GET").expect("an answer")
}

/// What nginx passes on of a client that has sent headers of its own, with
/// `proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_set_header X-Forwarded-Proto $scheme;`.
#[test]
fn one_header_of_proxies_counts() {
    for mode in Mode::ALL {
        let nginx = server(mode, PROXY).start();
        let vars = seen(
            &nginx,
            &[
                ("Forwarded", "for=6.6.6.6;proto=https;host=evil.example"),
                ("X-Forwarded-For", "6.6.6.6, 192.0.2.1"),
                ("X-Forwarded-Proto", "http"),
                ("X-Real-IP", "6.6.6.6"),
                ("Client-IP", "6.6.6.6"),
                ("X-Forwarded-Ssl", "on"),
                ("X_Forwarded_For", "6.6.6.6"),
            ],
        );
        assert_eq!(vars["REMOTE_ADDR"], "192.0.2.1", "{mode:?}");
        assert!(vars.get("HTTPS").is_none() && vars["REQUEST_SCHEME"] == "http");
        // Nothing is left that a framework could take for another client's address.
        assert_eq!(vars["HTTP_X_FORWARDED_FOR"], "192.0.2.1");
        assert_eq!(vars["HTTP_X_REAL_IP"], "192.0.2.1");
        assert_eq!(vars["HTTP_CLIENT_IP"], "192.0.2.1");
        assert_eq!(vars["HTTP_X_FORWARDED_SSL"], "off");
        assert!(vars.get("HTTP_FORWARDED").is_none());
        assert!(!vars.to_string().contains("6.6.6.6"), "{vars}");

        let other = server(mode, &format!("{PROXY}forwarded = 'forwarded'\n")).start();
        let vars = seen(
            &other,
            &[
                (
                    "Forwarded",
                    "for=\", for=\"[2001:db8::1]:4711\";proto=https",
                ),
                ("X-Forwarded-For", "6.6.6.6"),
                ("X-Forwarded-Proto", "http"),
            ],
        );
        assert_eq!(vars["REMOTE_ADDR"], "2001:db8::1", "{mode:?}");
        assert_eq!(vars["HTTPS"], "on");
        assert!(!vars.to_string().contains("6.6.6.6"), "{vars}");

        let nobody = server(mode, "[server]\nforwarded = 'none'\n").start();
        let claims = [("X-Forwarded-For", "6.6.6.6"), ("Forwarded", "for=6.6.6.6")];
        let vars = seen(&nobody, &claims);
        assert_eq!(vars["REMOTE_ADDR"], "127.0.0.1");
        assert!(!vars.to_string().contains("6.6.6.6"), "{vars}");
    }
}

/// As behind nginx with php-fpm: `SERVER_PORT` is where the client has connected to.
#[test]
fn the_port_is_that_of_the_proxy() {
    for mode in Mode::ALL {
        let server = server(mode, PROXY).start();
        let port = |headers: &[(&str, &str)]| seen(&server, headers)["SERVER_PORT"].clone();
        let own = server.address().port().to_string();
        assert_eq!(port(&[]), own, "{mode:?}");
        assert_eq!(port(&[("X-Forwarded-Proto", "https")]), "443");
        assert_eq!(port(&[("X-Forwarded-Proto", "http")]), "80");
        let given = [("X-Forwarded-Proto", "https"), ("X-Forwarded-Port", "8443")];
        assert_eq!(port(&given), "8443");
        assert_eq!(port(&[("X-Forwarded-Host", "a.example:8080")]), "8080");
        let outside = "GET /vars HTTP/1.1\r\nHost: a\r\nX-Forwarded-Port: 1\r\nX-Forwarded-Proto: https\r\n\r\n";
        let vars = from_outside(&server, outside).expect(200).json();
        assert_eq!(vars["SERVER_PORT"], own);
    }
}

#[test]
fn who_is_no_proxy_is_not_believed() {
    for mode in Mode::ALL {
        let server = server(mode, PROXY).start();
        let head = "GET /vars HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: https\r\n\
            X-Forwarded-Host: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\nCF-Connecting-IP: 6.6.6.6\r\n\
            X-Original-URL: /6.6.6.6\r\n\r\n";
        let vars = from_outside(&server, head).expect(200).json();
        assert_eq!(vars["REMOTE_ADDR"], "127.0.0.2");
        assert!(vars.get("HTTPS").is_none());
        assert!(!vars.to_string().contains("6.6.6.6"), "{vars}");
    }
}

/// A client that sends what is no text must not have its proxy's address.
#[test]
fn bytes_that_are_no_text_hide_nobody() {
    for mode in Mode::ISOLATES {
        let server = server(mode, PROXY).start();
        let mut connection = Connection::open(server.address()).expect("a connection");
        connection
            .write(b"GET /vars HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: \xff\xfe, 192.0.2.1\r\n\r\n")
            .expect("a request");
        let vars = connection.response("GET").expect("an answer").json();
        assert_eq!(vars["REMOTE_ADDR"], "192.0.2.1");
    }
}

#[test]
fn the_name_of_the_server_is_configured() {
    for mode in Mode::ALL {
        for (config, name) in [
            ("server_name = 'www.example.com'", "www.example.com"),
            (
                "allowed_hosts = ['*.example.com', 'a.example.com']",
                "a.example.com",
            ),
            ("", "127.0.0.1"),
        ] {
            let server = server(mode, &format!("[app.app]\n{config}\n")).start();
            let vars = seen(&server, &[("Host", "b.example.com:81")]);
            assert_eq!(vars["SERVER_NAME"], name, "{mode:?} {config}");
            assert_eq!(vars["HTTP_HOST"], "b.example.com:81");
        }
    }
}

#[test]
fn other_names_are_misdirected() {
    let config = "[server]\nliveness = '/livez'\ntrusted_proxies = ['127.0.0.1']\n\
        [app.app]\nallowed_hosts = ['example.com', '*.example.org']\n";
    for mode in Mode::ALL {
        let server = server(mode, config).start();
        let ask = |target: &str, host: &str| {
            let request = Request::get(target).header("Host", host);
            request.send(server.address()).status
        };
        assert_eq!(ask("/", "example.com"), 200);
        assert_eq!(ask("/", "EXAMPLE.com.:81"), 200);
        assert_eq!(ask("/", "a.b.example.org"), 200);
        for other in [
            "example.org",
            "evil",
            "example.com.evil",
            "127.0.0.1",
            "example.com@evil",
        ] {
            let status = ask("/", other);
            assert_eq!(
                status,
                if other.contains('@') { 400 } else { 421 },
                "{other}"
            );
        }
        // What the target says is the name, whatever `Host` says.
        assert_eq!(ask("http://example.com/", "evil"), 200);
        assert_eq!(ask("http://evil/", "example.com"), 421);
        // A probe has an address.
        assert_eq!(ask("/livez", "10.1.2.3:80"), 200);
        // A name that a framework would take for the one that is meant.
        let forwarded = Request::get("/")
            .header("Host", "example.com")
            .header("X-Forwarded-Host", "evil");
        assert_eq!(forwarded.send(server.address()).status, 421);
        let old = from_outside(&server, "GET / HTTP/1.0\r\n\r\n");
        assert_eq!(old.status, 421);
    }
}

#[test]
fn a_wrong_name_is_an_error_that_names_it() {
    for (set, part) in [
        (
            "allowed_hosts=['a:80']",
            "allowed_hosts: \"a:80\" is no name of a host",
        ),
        ("server_name=*.a", "server_name: it is one name"),
        ("forwarded=x-real-ip", "x-real-ip"),
    ] {
        let path = surus_tests::fixture("edge");
        let (code, text) = Surus::run(&["check", path.to_str().unwrap(), "--set", set]);
        assert!(code == Some(2) && text.contains(part), "{text}");
    }
}

/// Without `trusted_proxies` it is the application that may believe somebody, as under php-fpm.
#[test]
fn without_proxies_headers_are_passed_on() {
    let server = server(Mode::Classic, "").start();
    let vars = seen(
        &server,
        &[
            ("X-Forwarded-For", "6.6.6.6"),
            ("X-Forwarded-Proto", "https"),
        ],
    );
    assert_eq!(vars["REMOTE_ADDR"], "127.0.0.1");
    assert_eq!(vars["HTTP_X_FORWARDED_FOR"], "6.6.6.6");
    assert!(vars.get("HTTPS").is_none());
    get(&server, "/").expect(200);
}
