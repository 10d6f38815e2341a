use super::*;

fn router(routes: &[(&str, &str)]) -> Router {
    let routes: Vec<_> = routes
        .iter()
        .enumerate()
        .map(|(i, (methods, pattern))| Declared {
            methods: (*methods).to_owned(),
            pattern: (*pattern).to_owned(),
            index: i as i64,
            ..Declared::default()
        })
        .collect();
    Router::new(&routes).unwrap()
}

fn find(router: &Router, method: Method, path: &str) -> Match {
    router.find(&Target {
        method: &method,
        path,
        host: None,
        headers: &HeaderMap::new(),
    })
}

fn get(router: &Router, path: &str) -> Option<(i64, Vec<String>)> {
    match find(router, Method::GET, path) {
        Match::Found {
            index, parameters, ..
        } => {
            let text = |v: Vec<u8>| String::from_utf8(v).unwrap();
            Some((
                index,
                parameters.into_iter().map(|(_, v)| text(v)).collect(),
            ))
        }
        _ => None,
    }
}

#[test]
fn what_says_more_goes_first() {
    let router = router(&[
        ("GET", "/files/{rest*}"),
        ("GET", "/files/{name}"),
        ("GET", "/files/{id:int}"),
        ("GET", "/files/new"),
        ("GET", "/files/{name}.{kind}"),
        ("GET", "/files/{slug:slug}/x"),
    ]);
    for (path, index) in [
        ("/files/new", 3),
        ("/files/n%65w", 3),
        ("/files/7", 2),
        ("/files/a.txt", 4),
        ("/files/Seven", 1),
        ("/files/a/b", 0),
        ("/files/a-b/x", 5),
        ("/files/A/x", 0),
    ] {
        assert_eq!(
            get(&router, path).map(|found| found.0),
            Some(index),
            "{path}"
        );
    }
    let (_, parameters) = get(&router, "/files/a.tar.gz").unwrap();
    assert_eq!(parameters, ["a", "tar.gz"]);
}

#[test]
fn parameters_are_decoded_within_their_segment() {
    let router = router(&[("GET", "/n/{name}"), ("GET", "/f/{rest*}")]);
    let one = |path| get(&router, path).map(|found| found.1.concat());
    assert_eq!(one("/n/a%20b%2Fc+d").as_deref(), Some("a b/c+d"));
    assert_eq!(one("/n/%C3%A4").as_deref(), Some("ä"));
    assert_eq!(one("/f/a/b%20c//d/").as_deref(), Some("a/b c//d/"));
    for path in ["/n/a%", "/n/%zz", "/n/%ff", "/n/a%00b"] {
        assert!(
            matches!(find(&router, Method::GET, path), Match::Malformed),
            "{path}"
        );
    }
    for path in [
        "/f/../x",
        "/f/a/%2e%2e/x",
        "/f/a%2f..%2fx",
        "/f/a%5c..%5cx",
        "/f/.",
        "/n/",
        "/f/",
    ] {
        assert_eq!(get(&router, path), None, "{path}");
    }
}

#[test]
fn methods() {
    let router = router(&[
        ("GET", "/a"),
        ("POST,PUT", "/a"),
        ("*", "/any"),
        ("*", "/x/{y}"),
        ("GET", "/x/z"),
    ]);
    let index = |method, path| match find(&router, method, path) {
        Match::Found { index, .. } => index,
        _ => -1,
    };
    assert_eq!(index(Method::HEAD, "/a"), 0);
    assert_eq!(index(Method::PUT, "/a"), 1);
    assert_eq!(index(Method::DELETE, "/any"), 2);
    assert_eq!(index(Method::GET, "/x/z"), 4);
    assert_eq!(
        index(Method::POST, "/x/z"),
        3,
        "a special route does not hide a general one"
    );
    assert!(
        matches!(find(&router, Method::DELETE, "/a"), Match::NotAllowed { allow, .. } if allow == "GET, POST, PUT, HEAD, OPTIONS")
    );
    assert!(matches!(find(&router, Method::GET, "/b"), Match::NotFound));
}

#[test]
fn optional_parts() {
    let router = router(&[
        ("GET", "/posts/{year?:int}/{month?:int}"),
        ("GET", "/{lang?}"),
    ]);
    let found = |path| get(&router, path).unwrap();
    assert_eq!(found("/posts/2024/5"), (0, vec!["2024".into(), "5".into()]));
    assert_eq!(
        found("/posts/2024"),
        (0, vec!["2024".into(), String::new()])
    );
    assert_eq!(found("/posts"), (0, vec![String::new(), String::new()]));
    assert_eq!(found("/"), (1, vec![String::new()]));
    assert_eq!(found("/en"), (1, vec!["en".into()]));
}

#[test]
fn slashes_at_the_end() {
    let router = router(&[
        ("GET", "/a"),
        ("GET", "/b/"),
        ("GET", "/{x}/{y}"),
        ("GET", "/"),
    ]);
    let redirect = |path| match find(&router, Method::GET, path) {
        Match::Redirect { path } => Some(path),
        _ => None,
    };
    assert_eq!(redirect("/a/").as_deref(), Some("/a"));
    assert_eq!(redirect("/b").as_deref(), Some("/b/"));
    assert_eq!(redirect("/c"), None);
    for path in ["//evil.org/", "/\\evil.org/x/", "//evil.org/x/"] {
        assert_eq!(redirect(path), None, "{path}");
    }
}

#[test]
fn conditions_and_answers_of_last_resort() {
    let declare = |methods: &str, pattern: &str, host: &str, headers: &str, index| Declared {
        methods: methods.into(),
        pattern: pattern.into(),
        host: host.into(),
        headers: headers.into(),
        index,
        ..Declared::default()
    };
    let router = Router::new(&[
        declare("GET", "/{page?}", "", "", 0),
        declare("GET", "/{page?}", "{tenant}.example.com", "", 1),
        declare("GET", "/a", "", "x-version: 2", 2),
        declare("404", "", "", "", 3),
        declare("405", "", "", "", 4),
    ])
    .unwrap();
    let find = |method, path, host, version: Option<&str>| {
        let mut headers = HeaderMap::new();
        if let Some(version) = version {
            headers.insert("x-version", version.parse().unwrap());
        }
        router.find(&Target {
            method: &method,
            path,
            host,
            headers: &headers,
        })
    };
    let index = |found| match found {
        Match::Found {
            index, parameters, ..
        } => (index, parameters.len()),
        Match::NotAllowed { index, .. } => (index.unwrap(), 99),
        _ => panic!("{found:?}"),
    };
    assert_eq!(index(find(Method::GET, "/a", None, None)), (0, 1));
    assert_eq!(
        index(find(Method::GET, "/a", Some("x.example.com"), None)),
        (1, 2)
    );
    assert_eq!(index(find(Method::GET, "/a", None, Some("2"))), (2, 0));
    assert_eq!(index(find(Method::GET, "/a/b", None, None)), (3, 0));
    assert_eq!(index(find(Method::PUT, "/a", None, None)), (4, 99));
    let Match::Found { parameters, .. } = find(Method::GET, "/", Some("X.example.com:80"), None)
    else {
        panic!("no match");
    };
    assert_eq!(parameters[0].1, b"", "left out");
    assert_eq!(
        (&*parameters[1].0, &parameters[1].1[..]),
        ("tenant", &b"x"[..])
    );
}

#[test]
fn many_routes_cost_what_few_cost() {
    let many: Vec<_> = (0..10_000)
        .map(|i| Declared {
            methods: "GET".into(),
            pattern: format!("/r{i}/{{id:int}}/edit"),
            index: i,
            ..Declared::default()
        })
        .collect();
    let router = Router::new(&many).unwrap();
    assert_eq!(
        get(&router, "/r9999/7/edit"),
        Some((9999, vec!["7".into()]))
    );
    assert_eq!(get(&router, "/r10000/7/edit"), None);
}

#[test]
fn two_routes_for_the_same_requests_are_an_error() {
    let declare = |methods: &str, pattern: &str, headers: &str, line| Declared {
        methods: methods.to_owned(),
        pattern: pattern.to_owned(),
        headers: headers.to_owned(),
        origin: format!("app.php:{line}"),
        ..Declared::default()
    };
    for (one, other, message) in [
        (
            declare("GET", "/x/{a}", "", 1),
            declare("POST,GET", "/x/{b}", "", 2),
            r#"app.php:2: route "/x/{b}" takes GET requests that "/x/{a}" takes already: app.php:1"#,
        ),
        (
            declare("*", "/x", "", 1),
            declare("*", "/x", "", 2),
            r#"app.php:2: route "/x" takes * requests that "/x" takes already: app.php:1"#,
        ),
        (
            declare("GET", "/y", "", 1),
            declare("GET", "/{a}/{a}", "", 2),
            r#"app.php:2: route "/{a}/{a}": two parameters are called "a""#,
        ),
    ] {
        let error = Router::new(&[one, other]).expect_err(message);
        assert_eq!(error, message);
    }
    let fine = [
        declare("GET", "/x/{a}", "", 1),
        declare("GET", "/x/{a:int}", "", 2),
        declare("GET", "/x/{a}", "x-version: 2", 3),
        declare("POST", "/x/{a}", "", 4),
        declare("*", "/x/{a}", "", 5),
    ];
    assert!(Router::new(&fine).is_ok());
}
