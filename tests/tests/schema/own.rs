//! Applications whose classes show one thing each.

use serde_json::{json, Value};
use surus_tests::http::Request;
use surus_tests::surus::Surus;
use surus_tests::temp::TempDir;

use super::{errors, JSON};

/// Defaults are the developer's, for rules in PHP as for all others. A rule of a class is about all of it.
#[test]
fn rules_in_php_are_not_asked_about_defaults() {
    let folder = TempDir::new("defaults");
    let script = folder.file(
        "app.php",
        r#"<?php
        use Surus\Schema\{Each, Rule};

        #[Attribute]
        final class Refused implements Rule
        {
            public function check(mixed $value, object $subject): ?string { return 'refused'; }
        }
        final class Place
        {
            public function __construct(#[Refused] public string $city = 'X', #[Refused] public string $zip = '1') {}
        }
        final class Search
        {
            /** @param array<string, Place> $named */
            public function __construct(
                #[Refused] public ?string $q = null,
                #[Each('string', [new Refused()])] public array $tags = ['a'],
                public Place $home = new Place(),
                #[Each(Place::class)] public array $places = [new Place()],
                public array $named = [],
                #[Refused] public int $page = 1,
            ) {
            }
        }
        final class Called
        {
            public string $q;
            public function __construct(#[Refused] string $q = 'x', #[Refused] public ?Place $home = null)
            {
                $this->q = $q;
            }
        }
        #[Refused]
        final class Whole
        {
            public function __construct(public string $q = 'x') {}
        }
        $app = new Surus\App();
        $app->post('/search', fn (Search $search) => 'found');
        $app->post('/called', fn (Called $called) => 'found');
        $app->post('/whole', fn (Whole $whole) => 'found');
        return $app;"#,
    );
    let server = Surus::serve(&script).start();
    let post = |target: &str, body: Value| {
        let request = Request::post(target).body(JSON, body.to_string());
        request.send(server.address())
    };
    assert_eq!(post("/search", json!({})).expect(200).text(), "found");
    assert_eq!(post("/called", json!({})).expect(200).text(), "found");
    assert_eq!(errors(&post("/whole", json!({}))), ["refused "]);
    // What is sent is asked about, also where it is what the default would be.
    let sent = json!({
        "q": null, "tags": ["a", "b"], "home": {}, "places": [{}, {"zip": "1"}],
        "named": {"7": {"city": "X"}, "a": {}},
    });
    assert_eq!(
        errors(&post("/search", sent)),
        [
            "refused /q",
            "refused /tags/0",
            "refused /tags/1",
            "refused /places/1/zip",
            "refused /named/7/city"
        ]
    );
    let sent = json!({"q": "x", "home": {"city": "Y"}});
    assert_eq!(
        errors(&post("/called", sent)),
        ["refused /q", "refused /home", "refused /home/city"]
    );
}

/// One answer says what is wrong with all input of a handler, also where only rules in PHP are broken; middleware and error
/// handlers see the same. What stands between the inputs is not made for a request that is refused.
#[test]
fn rules_in_php_of_several_inputs_are_told_at_once() {
    let folder = TempDir::new("several");
    let script = folder.file(
        "app.php",
        r#"<?php
        use Surus\Attribute\{Body, Query};
        use Surus\Schema\{InvalidInput, Rule};

        #[Attribute]
        final class Even implements Rule
        {
            public function check(mixed $value, object $subject): ?string { return $value % 2 === 0 ? null : 'is odd'; }
        }
        final class Pair { public function __construct(#[Even] public int $a, #[Even] public int $b = 2) {} }
        final class Page { public function __construct(#[Even] public int $page) {} }
        final class Service { public static int $made = 0; public function __construct() { self::$made++; } }

        $app = new Surus\App();
        $app->scoped(Service::class);
        $handler = fn (#[Body] Pair $pair, Service $service, #[Query] Page $page) => [$pair->a, $page->page];
        $app->post('/plain', $handler);
        $app->post('/guarded', $handler)->use(fn ($request, $next) => $next($request)->withHeader('x-seen', 'yes'));
        $app->get('/made', fn () => ['made' => Service::$made]);
        $app->post('/mine', fn (#[Query] Page $page, #[Body] Pair $pair) => 1);
        return $app;"#,
    );
    let server = Surus::serve(&script).start();
    let post = |target: &str, body: Value| {
        let request = Request::post(target).body(JSON, body.to_string());
        request.send(server.address())
    };
    for target in ["/plain?page=3", "/guarded?page=3"] {
        let refused = post(target, json!({"a": 1, "b": 5}));
        assert_eq!(
            errors(&refused),
            ["even /a", "even /b", "even /page"],
            "{target}"
        );
        let places = refused.json()["errors"].as_array().map(|errors| {
            let places = errors.iter().map(|error| error["in"].clone());
            places.collect::<Vec<_>>()
        });
        assert_eq!(
            places,
            Some(vec![json!("body"), json!("body"), json!("query")])
        );
        let guarded = target.starts_with("/guarded");
        assert_eq!(refused.header("x-seen").is_some(), guarded, "{target}");
    }
    let made = || {
        Request::get("/made")
            .send(server.address())
            .expect(200)
            .json()["made"]
            .clone()
    };
    assert_eq!(made(), 0);
    assert_eq!(
        errors(&post("/plain?page=3", json!({"a": 2}))),
        ["even /page"]
    );
    assert_eq!(errors(&post("/plain?page=2", json!({"a": 3}))), ["even /a"]);
    assert_eq!(
        errors(&post("/mine?page=1", json!({"a": 3}))),
        ["even /page", "even /a"]
    );
    let good = post("/plain?page=4", json!({"a": 2})).expect(200).json();
    assert_eq!(good, json!([2, 4]));
}

/// The server reads it from where the plan and the document say.
#[test]
fn input_of_several_methods_comes_from_one_place() {
    let folder = TempDir::new("methods");
    let script = folder.file(
        "app.php",
        r#"<?php
        use Surus\Schema\{Length, OpenApi};

        final class Search
        {
            public function __construct(#[Length(min: 1)] public string $q) {}
        }
        $app = new Surus\App();
        $app->map(['GET', 'DELETE'], '/query', fn (Search $search) => $search->q);
        $app->map(['GET', 'PUT'], '/body', fn (Search $search) => $search->q);
        OpenApi::serve($app, title: 'Test', version: '1');
        return $app;"#,
    );
    let server = Surus::serve(&script).start();
    let send = |request: Request| request.send(server.address());
    for method in ["GET", "DELETE"] {
        let answer = send(Request::new(method, "/query?q=a"));
        assert_eq!(answer.expect(200).text(), "a", "{method}");
    }
    let put = Request::new("PUT", "/body").body(JSON, r#"{"q":"b"}"#);
    assert_eq!(send(put).expect(200).text(), "b");
    let paths = &send(Request::get("/openapi.json")).expect(200).json()["paths"];
    assert_eq!(paths["/query"]["get"]["parameters"][0]["name"], "q");
    assert!(paths["/body"]["put"]["requestBody"].is_object(), "{paths}");
}
