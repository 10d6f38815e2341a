use super::*;
use http::header::{HeaderName, HeaderValue};
use std::net::SocketAddr;

fn proxies(header: ProxyHeader) -> Proxies {
    let networks = ["10.0.0.0/8", "::1"].iter();
    Proxies {
        networks: networks.map(|text| text.parse().unwrap()).collect(),
        header,
    }
}

fn connection(peer: &str) -> Connection {
    let local = "127.0.0.1:80".parse().unwrap();
    Connection::new(SocketAddr::new(peer.parse().unwrap(), 9), local)
}

/// The client's address, whether it has TLS, and the headers that are left.
fn by(header: ProxyHeader, peer: &str, given: &[(&str, &[u8])]) -> (String, bool, Vec<String>) {
    let connection = connection(peer);
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let name: HeaderName = name.parse().unwrap();
        headers.append(name, HeaderValue::from_bytes(value).unwrap());
    }
    let client = proxies(header)
        .client(&connection, &mut headers)
        .unwrap_or(connection);
    let left = headers.iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        format!("{name}: {value}")
    });
    let mut left: Vec<_> = left.collect();
    left.sort();
    (client.peer.to_string(), client.https, left)
}

fn x(peer: &str, given: &[(&str, &str)]) -> (String, bool, Vec<String>) {
    let given: Vec<_> = given.iter().map(|(n, v)| (*n, v.as_bytes())).collect();
    by(ProxyHeader::XForwarded, peer, &given)
}

#[test]
fn who_comes_over_a_unix_socket_is_trusted_by_name() {
    let connection = Connection::new(Peer::Unix, "127.0.0.1:80".parse().unwrap());
    for (trusted, claim, expected, left) in [
        ("unix:", "192.0.2.1", Some("192.0.2.1"), 1),
        ("unix:", "unknown", Some("unix:"), 0),
        ("127.0.0.1", "192.0.2.1", None, 0),
    ] {
        let trusting = Proxies {
            networks: vec![trusted.parse().unwrap()],
            ..Proxies::default()
        };
        let mut headers = HeaderMap::new();
        headers.insert("x-forwarded-for", claim.parse().unwrap());
        let client = trusting.client(&connection, &mut headers);
        let client = client.map(|client| client.peer.to_string());
        assert_eq!(client.as_deref(), expected, "{trusted} {claim}");
        assert_eq!(headers.len(), left, "{trusted} {claim}");
    }
}

#[test]
fn only_proxies_are_believed() {
    let claim = [
        ("x-forwarded-for", "192.0.2.1"),
        ("x-forwarded-proto", "https"),
        ("accept", "*/*"),
    ];
    let (client, https, left) = x("10.1.1.1", &claim);
    assert_eq!((client.as_str(), https, left.len()), ("192.0.2.1", true, 3));
    let (client, https, left) = x("203.0.113.9", &claim);
    assert_eq!((client.as_str(), https), ("203.0.113.9", false));
    assert_eq!(left, ["accept: */*"]);
}

fn port(header: ProxyHeader, given: &[(&str, &str)]) -> u16 {
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let name: HeaderName = name.parse().unwrap();
        headers.append(name, HeaderValue::from_str(value).unwrap());
    }
    let connection = connection("10.1.1.1");
    let client = proxies(header).client(&connection, &mut headers);
    client.unwrap().local.port()
}

#[test]
fn the_port_is_the_clients() {
    const FOR: (&str, &str) = ("x-forwarded-for", "192.0.2.1");
    for (given, expected) in [
        (&[][..], 80),
        (&[("x-forwarded-proto", "https")], 443),
        (&[("x-forwarded-proto", "http")], 80),
        (
            &[
                ("x-forwarded-host", "a.example:8443"),
                ("x-forwarded-proto", "https"),
            ],
            8443,
        ),
        (
            &[
                ("x-forwarded-host", "[::1]"),
                ("x-forwarded-proto", "https"),
            ],
            443,
        ),
        (
            &[("x-forwarded-host", "a:8443"), ("x-forwarded-port", "9443")],
            9443,
        ),
        (&[("x-forwarded-port", "1, 9443")], 9443),
        (
            &[("x-forwarded-port", "0"), ("x-forwarded-proto", "https")],
            443,
        ),
        (
            &[("x-forwarded-port", "x"), ("x-forwarded-proto", "https")],
            443,
        ),
        (&[("forwarded", "for=1.1.1.1;host=\"a:1\";proto=https")], 80),
    ] {
        let all = [&[FOR], given].concat();
        assert_eq!(port(ProxyHeader::XForwarded, &all), expected, "{given:?}");
    }
    for (value, expected) in [
        ("for=192.0.2.1", 80),
        ("for=192.0.2.1;proto=https", 443),
        ("for=192.0.2.1;proto=https;host=\"a:8443\"", 8443),
    ] {
        let given = [("forwarded", value), ("x-forwarded-port", "1")];
        assert_eq!(port(ProxyHeader::Forwarded, &given), expected, "{value}");
    }
}

#[test]
fn one_header_counts() {
    let both: [(&str, &[u8]); 3] = [
        ("forwarded", b"for=6.6.6.6;proto=https;host=evil"),
        ("x-forwarded-for", b"192.0.2.1"),
        ("x-real-ip", b"6.6.6.6"),
    ];
    let (client, https, left) = by(ProxyHeader::XForwarded, "10.1.1.1", &both);
    assert_eq!((client.as_str(), https), ("192.0.2.1", false));
    assert_eq!(left, ["x-forwarded-for: 192.0.2.1", "x-real-ip: 192.0.2.1"]);
    let (client, https, left) = by(ProxyHeader::Forwarded, "10.1.1.1", &both);
    assert_eq!((client.as_str(), https), ("6.6.6.6", true));
    assert_eq!(left, ["forwarded: for=6.6.6.6;proto=https;host=evil"]);
    let (client, https, left) = by(ProxyHeader::None, "10.1.1.1", &both);
    assert_eq!((client.as_str(), https, left.len()), ("10.1.1.1", false, 0));
}

#[test]
fn what_a_client_puts_in_front_is_not_believed() {
    for (list, client) in [
        ("1.1.1.1, 192.0.2.1, 10.2.2.2", "192.0.2.1"),
        ("1.1.1.1, unknown, 10.2.2.2", "10.2.2.2"),
        ("1.1.1.1,, 10.2.2.2", "10.2.2.2"),
        ("1.1.1.1, 192.0.2.1:4711", "192.0.2.1"),
        ("1.1.1.1, [2001:db8::1]:4711, ::1", "2001:db8::1"),
        ("1.1.1.1, 2001:db8::a:1", "2001:db8::a:1"),
        ("1.1.1.1, ::ffff:192.0.2.1", "192.0.2.1"),
        ("1.1.1.1, ::ffff:10.2.2.2, 10.3.3.3", "1.1.1.1"),
        ("1.1.1.1, fe80::1%eth0", "10.1.1.1"),
        ("192.0.2.1, ", "10.1.1.1"),
    ] {
        let (seen, _, left) = x("10.1.1.1", &[("x-forwarded-for", list)]);
        let expected = match list {
            "1.1.1.1, ::ffff:10.2.2.2, 10.3.3.3" => "1.1.1.1",
            _ => client,
        };
        assert_eq!(seen, expected, "{list}");
        assert_eq!(left, [format!("x-forwarded-for: {expected}")]);
    }
    // Several lines form one list, whatever bytes a client has put into it.
    let lines: [(&str, &[u8]); 2] = [
        ("x-forwarded-for", b"1.1.1.1, \xff\xfe"),
        ("x-forwarded-for", b"\xe9, 192.0.2.1, 10.2.2.2"),
    ];
    assert_eq!(
        by(ProxyHeader::XForwarded, "10.1.1.1", &lines).0,
        "192.0.2.1"
    );
}

#[test]
fn the_scheme_is_that_of_the_client() {
    for (clients, protocols, https) in [
        ("192.0.2.1, 10.2.2.2", "https, http", true),
        ("192.0.2.1, 10.2.2.2", "http, https", false),
        ("1.1.1.1, 192.0.2.1", "https, http", false),
        ("192.0.2.1, 10.2.2.2", "https", true),
        ("192.0.2.1", "https, http", false),
        ("192.0.2.1", "https, HTTPS", true),
        ("192.0.2.1", "ssl", false),
    ] {
        let given = [
            ("x-forwarded-for", clients),
            ("x-forwarded-proto", protocols),
            ("x-forwarded-ssl", "on"),
        ];
        let (_, seen, left) = x("10.1.1.1", &given);
        assert_eq!(seen, https, "{clients} {protocols}");
        let scheme = if https { "https" } else { "http" };
        assert_eq!(left[1], format!("x-forwarded-proto: {scheme}"));
        let switch = if https { "on" } else { "off" };
        assert_eq!(left[2], format!("x-forwarded-ssl: {switch}"));
    }
}

/// A proxy appends to what its client has sent, so the last value is its own; the first may come from anybody.
#[test]
fn hosts_and_ports_are_what_the_nearest_proxy_says() {
    for (name, given, left) in [
        (
            "x-forwarded-host",
            "evil, a.example:8080",
            Some("a.example:8080"),
        ),
        ("x-forwarded-host", "a.example, b/c", None),
        ("x-forwarded-host", "a@b", None),
        ("x-forwarded-port", "1, 443", Some("443")),
        ("x-forwarded-port", "443x", None),
        ("x-forwarded-port", "70000", None),
        ("x-forwarded-prefix", "/a, /b", Some("/b")),
        ("x-forwarded-prefix", "//evil", None),
    ] {
        let left = left.map(|left| format!("{name}: {left}"));
        assert_eq!(
            x("10.1.1.1", &[(name, given)]).2,
            Vec::from_iter(left),
            "{given}"
        );
    }
}

/// Whatever a client writes, the address that the nearest proxy has added is the one that counts.
#[test]
fn nothing_in_front_changes_the_outcome() {
    const ALPHABET: &[u8] = b"for=proto;,\"\\[]:._ 10.9https\xe9";
    let mut state = 3u64;
    let mut random = |bound: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % bound
    };
    for _ in 0..20_000 {
        let mut claim = Vec::new();
        for _ in 0..random(40) {
            claim.push(ALPHABET[random(ALPHABET.len())]);
        }
        for (header, name, added) in [
            (ProxyHeader::XForwarded, "x-forwarded-for", "192.0.2.1"),
            (
                ProxyHeader::Forwarded,
                "forwarded",
                "for=192.0.2.1;proto=http",
            ),
        ] {
            let one = [&claim[..], b", ", added.as_bytes()].concat();
            for given in [
                vec![(name, &one[..])],
                vec![(name, &claim), (name, added.as_bytes())],
            ] {
                let (client, https, left) = by(header, "10.1.1.1", &given);
                let text = String::from_utf8_lossy(&claim);
                assert_eq!((client.as_str(), https), ("192.0.2.1", false), "{text}");
                assert_eq!(left, [format!("{name}: {added}")], "{text}");
            }
        }
    }
}

#[test]
fn forwarded_as_in_the_rfc() {
    for (value, client, https) in [
        (
            "for=192.0.2.60;proto=https;by=203.0.113.43",
            "192.0.2.60",
            true,
        ),
        (
            "For=\"[2001:db8:cafe::17]:4711\"",
            "2001:db8:cafe::17",
            false,
        ),
        (
            "for=1.1.1.1, for=192.0.2.43;proto=http, for=10.9.9.9;proto=https",
            "192.0.2.43",
            false,
        ),
        ("for=unknown;proto=https", "10.1.1.1", true),
        ("for=\"_a,b;c\", for=192.0.2.1", "192.0.2.1", false),
        ("for=192.0.2.1, for=\"_a,b;c\"", "10.1.1.1", false),
        ("for=1.1.1.1;for=192.0.2.1", "10.1.1.1", false),
        ("nonsense", "10.1.1.1", false),
    ] {
        let given = [("forwarded", value.as_bytes())];
        let got = by(ProxyHeader::Forwarded, "10.1.1.1", &given);
        assert_eq!((got.0.as_str(), got.1), (client, https), "{value}");
    }
}
