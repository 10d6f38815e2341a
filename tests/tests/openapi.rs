//! The document of an application, and the page that shows it to people.
#![forbid(unsafe_code)]

use std::process::{Command, Output};

use serde_json::{json, Value};
use surus_tests::fixture;
use surus_tests::http::Request;
use surus_tests::surus::{binary, Surus};
use surus_tests::temp::TempDir;

fn openapi(script: &str) -> Output {
    Command::new(binary())
        .arg("openapi")
        .arg(fixture(script))
        .env("TEST_CASE", "untyped")
        .env("SURUS_CLEAR_ENV", "false")
        .output()
        .expect("surus runs")
}

fn document() -> Value {
    let output = openapi("schema/app.php");
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn what_the_server_serves_is_what_the_command_prints() {
    let server = Surus::serve(&fixture("schema/app.php")).start();
    let served = Request::get("/openapi.json")
        .send(server.address())
        .expect(200);
    assert_eq!(served.header("content-type"), Some("application/json"));
    assert_eq!(served.json(), document());
}

#[test]
fn routes_inputs_and_answers_are_described() {
    let document = document();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(
        document["info"],
        json!({"title": "Example <API>", "version": "2.1", "description": "For tests."})
    );
    let paths = document["paths"].as_object().expect("paths");
    assert!(
        !paths.contains_key("/openapi.json") && !paths.contains_key("/docs"),
        "{paths:?}"
    );

    let create = &paths["/users"]["post"];
    let reference = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    assert_eq!(
        create["requestBody"]["content"],
        json!({"application/json": {"schema": reference("NewUser")}})
    );
    for status in ["400", "413", "415", "422"] {
        let content = &create["responses"][status]["content"]["application/problem+json"];
        assert_eq!(content["schema"], reference("Problem"), "{status}");
    }
    let user = &document["components"]["schemas"]["NewUser"];
    assert_eq!(user["description"], "Somebody new.");
    assert_eq!(user["required"], json!(["email", "name", "age"]));
    assert_eq!(
        user["properties"]["name"],
        json!({"type": "string", "minLength": 2, "maxLength": 10})
    );
    assert_eq!(user["properties"]["scores"]["default"], json!({}));
    assert_eq!(
        user["properties"]["born"],
        json!({"type": ["string", "null"], "format": "date"})
    );

    let change = &document["components"]["schemas"]["Change"];
    assert_eq!(change["required"], Value::Null);
    let phone = json!({"type": ["string", "null"], "minLength": 3});
    assert_eq!(change["properties"]["phone"], phone);

    // The same class differs on its way in and out: defaults.
    assert_eq!(
        document["components"]["schemas"]["Address"]["required"],
        json!(["city"])
    );
    let output = &document["components"]["schemas"]["AddressOutput"];
    assert_eq!(output["required"], json!(["city", "zip"]));

    let form = &paths["/forms"]["post"]["requestBody"]["content"];
    assert_eq!(form["multipart/form-data"]["schema"], reference("Order"));
    assert_eq!(form["application/json"], Value::Null);

    let show = &paths["/users/{id}"]["get"];
    assert_eq!(show["summary"], "One of them");
    assert_eq!(show["description"], "Found by its number.");
    let id = json!([{"name": "id", "in": "path", "required": true, "description": "its number", "schema": {"type": "integer"}}]);
    assert_eq!(show["parameters"], id);
    assert_eq!(
        show["responses"]["200"]["content"]["application/json"]["schema"],
        reference("User")
    );
    assert_eq!(show["responses"]["204"]["description"], "No content.");
    assert_eq!(show["responses"]["404"]["description"], "There is none.");

    let list = &paths["/users"]["get"];
    assert_eq!(list["operationId"], "listUsers");
    assert_eq!(list["tags"], json!(["people"]));
    assert_eq!(
        list["parameters"][0],
        json!({"name": "q", "in": "query", "required": true, "schema": {"type": "string", "minLength": 1}})
    );
    let answer = &list["responses"]["200"]["content"]["application/json"]["schema"];
    assert_eq!(
        answer["properties"]["items"],
        json!({"type": "array", "items": reference("User")})
    );
    assert_eq!(answer["required"], json!(["total", "items"]));
}

#[test]
fn names_in_doc_comments_mean_what_they_do_in_the_code() {
    let folder = TempDir::new("names");
    folder.file(
        "models.php",
        r"<?php namespace Shop\Models;
        final class Pet { public function __construct(public int $id, /** @var list<Toy> */ public array $toys = []) {} }
        final class Toy { public function __construct(public string $name) {} }",
    );
    folder.file(
        "base.php",
        r#"<?php namespace Base {
        echo "{$argc}}";
        }
        namespace Base\Parts {
        use Shop\Models\Toy as Part;
        abstract class Box { /** @var list<Part> */ public array $parts = []; }
        abstract class Said implements \JsonSerializable {
            /** @return list<Part> */
            public function jsonSerialize(): array { return []; }
        } }"#,
    );
    let script = folder.file(
        "app.php",
        r#"<?php
        namespace Shop;

        use Shop\Models as M;
        use Shop\Models\{Pet, Toy as Plaything};
        use Surus\App;
        use Surus\Attribute\Query;

        require __DIR__ . '/models.php';
        require __DIR__ . '/base.php';

        final class Crate extends \Base\Parts\Box { public int $weight = 1; }
        final class Spoken extends \Base\Parts\Said {}
        final class Till { public function __construct(public float $total) {} }

        /** @return list<Pet> */
        function pets(): array { return []; }

        $app = new App();
        $app->get('/function', pets(...));
        $app->get('/closure', /** @return array<string, Plaything> */ fn (#[Query] int $limit = 3): array => []);
        $app->get('/module', /** @return list<M\Toy>|null */ fn (): ?array => []);
        $app->get('/inherited', fn (): Crate => new Crate());
        $app->get('/inherited/method', fn (): Spoken => new Spoken());
        $app->get('/types', /** @return array{a: ?array, b: array|string|null, c: ?list<int>, d: int|null, e: (int|string)[], f: ?(int|string)} */ fn (): array => []);
        $app->get('/namespace', /** @return array{till: Till, other: \Shop\Models\Toy} */ fn (): array => []);

        return $app;"#,
    );
    let output = openapi(script.to_str().expect("a path"));
    assert!(output.status.success(), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let answer = |path: &str| {
        document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
            .clone()
    };
    let reference = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    assert_eq!(
        answer("/function"),
        json!({"type": "array", "items": reference("Pet")})
    );
    assert_eq!(
        answer("/closure"),
        json!({"type": "object", "additionalProperties": reference("Toy")})
    );
    let toys = json!({"type": "array", "items": reference("Toy")});
    assert_eq!(
        answer("/module"),
        json!({"anyOf": [toys, {"type": "null"}]})
    );
    assert_eq!(
        answer("/namespace")["properties"],
        json!({"till": reference("Till"), "other": reference("Toy")})
    );
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["Crate"]["properties"]["parts"], toys);
    assert_eq!(schemas["Spoken"], toys);
    assert_eq!(
        answer("/types")["properties"],
        json!({
            "a": {"type": ["array", "object", "null"]},
            "b": {"type": ["array", "object", "string", "null"]},
            "c": {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]},
            "d": {"type": ["integer", "null"]},
            "e": {"type": "array", "items": {"type": ["integer", "string"]}},
            "f": {"type": ["integer", "string", "null"]},
        })
    );
    let pet = &schemas["Pet"];
    assert_eq!(pet["properties"]["toys"], toys);
    let limit = &document["paths"]["/closure"]["get"];
    assert_eq!(limit["parameters"][0]["name"], "limit");
    let refused = &limit["responses"]["400"]["content"]["application/problem+json"];
    assert_eq!(refused["schema"], reference("Problem"));
}

#[test]
fn what_does_not_boot_has_no_document() {
    let output = openapi("schema/broken.php");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stdout.is_empty());
    let output = openapi("classic");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn the_page_works_in_a_browser() {
    let server = Surus::serve(&fixture("schema/app.php")).start();
    let page = Request::get("/docs").send(server.address()).expect(200);
    let policy = page.header("content-security-policy").expect("a policy");
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    let profile = TempDir::new("chromium");
    let output = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
        ])
        .args(["--virtual-time-budget=5000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("http://{}/docs#listUsers", server.address()))
        .output()
        .expect("chromium runs");
    let shown = String::from_utf8_lossy(&output.stdout);
    for expected in [
        "<title>Example &lt;API&gt;</title>",
        "<details class=\"operation\" id=\"listUsers\" open=\"\">",
        "<span class=\"method\">POST</span><code>/users</code>",
        "<code>email</code> <span class=\"type\">string (email)</span>",
        "minLength: 2, maxLength: 10",
        "<h2>people</h2>",
        "<small>application/problem+json <span class=\"type\">Problem</span></small>",
        "One of them",
    ] {
        assert!(
            shown.contains(expected),
            "{expected} is not in {shown}\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    assert!(!shown.contains("role=\"alert\""));
}

/// From the middleware of the application, of groups and of routes.
#[test]
fn credentials_are_described() {
    let folder = TempDir::new("credentials");
    let script = folder.file(
        "app.php",
        r#"<?php
        use Surus\App;
        use Surus\Auth\{BasicAuth, BearerAuth, RequireUser, SessionAuth};
        use Surus\Http\Request;
        use Surus\Middleware\Sessions;
        use Surus\Schema\SecurityScheme;
        use Surus\Session\FileStore;

        /** A service: made by the container. */
        final class ApiKey implements Surus\Http\Middleware, SecurityScheme
        {
            public function schemeName(): string { return 'key'; }
            public function securityScheme(): array { return ['type' => 'apiKey', 'in' => 'header', 'name' => 'X-Key']; }
            public function isOptional(): bool { return false; }
            public function handle(Request $request, Closure $next): mixed { return $next($request); }
        }
        $app = new App();
        $nobody = fn () => null;
        $sessions = new Sessions(new FileStore(sys_get_temp_dir() . '/sessions'), 'visit');
        $app->get('/open', fn () => 1);
        $app->get('/token', fn () => 1)->use(new BearerAuth($nobody));
        $app->get('/perhaps', fn () => 1)->use(new BearerAuth($nobody, optional: true));
        $app->get('/password', fn () => 1)->use(new BasicAuth($nobody));
        $app->get('/cart', fn () => 1)->use($sessions);
        $app->group('/account', function (App $app) {
            $app->get('/', fn () => 1);
            $app->get('/keys', fn () => 1)->use(ApiKey::class);
        })->use($sessions)->use(new SessionAuth($nobody))->use(new BearerAuth($nobody, optional: true))->use(RequireUser::class);
        return $app;"#,
    );
    let (code, text) = Surus::run(&["openapi", script.to_str().expect("a path")]);
    assert_eq!(code, Some(0), "{text}");
    let text = &text[text.find('{').expect("JSON")..];
    let document: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(
        document["components"]["securitySchemes"],
        json!({
            "bearer": {"type": "http", "scheme": "bearer"},
            "basic": {"type": "http", "scheme": "basic"},
            "session": {"type": "apiKey", "in": "cookie", "name": "visit"},
            "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
        })
    );
    let bearer = json!({"bearer": []});
    let session = json!({"session": []});
    for (path, security, refuses) in [
        ("/open", Value::Null, false),
        ("/token", json!([bearer]), true),
        ("/perhaps", json!([{}, bearer]), true),
        ("/password", json!([{"basic": []}]), true),
        ("/cart", Value::Null, false),
        ("/account", json!([session, bearer]), true),
        ("/account/keys", json!([{"key": []}]), true),
    ] {
        let operation = &document["paths"][path]["get"];
        assert!(operation.is_object(), "{path}: {document:#}");
        assert_eq!(operation["security"], security, "{path}");
        let problem = &operation["responses"]["401"]["content"]["application/problem+json"];
        assert_eq!(problem.is_object(), refuses, "{path}: {operation:#}");
    }
}
