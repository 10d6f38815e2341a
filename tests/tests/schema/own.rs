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
