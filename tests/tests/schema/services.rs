//! Rules that ask services.

use std::thread;

use serde_json::json;
use surus_tests::http::Request;
use surus_tests::surus::Surus;
use surus_tests::temp::TempDir;

const APP: &str = r#"<?php
use Surus\App;
use Surus\Http\Request;
use Surus\Schema\{Each, Length, ServiceRule};

/** Shared by all requests. */
final class Names
{
    public function isTaken(string $name): bool
    {
        usleep(20_000);
        return $name === 'taken';
    }
}
/** Each request has its own. */
#[Surus\Attribute\Scoped]
final class Visitor
{
    private static int $made = 0;
    public readonly int $number;
    public function __construct(private readonly Request $request) { $this->number = ++self::$made; }
    public function name(): string { return (string) $this->request->header('x-visitor'); }
}
#[Attribute]
final class Free implements ServiceRule
{
    public function __construct(private string $message = 'is taken') {}
    public function check(mixed $value, object $subject, Names $names, Visitor $visitor): ?string
    {
        return $names->isTaken($value) ? "$this->message, {$visitor->name()}" : null;
    }
}
#[Attribute]
final class IsVisitor implements ServiceRule
{
    public function check(mixed $value, object $subject, Visitor $visitor): ?string
    {
        return $value->name === $visitor->name() ? null : "is not {$visitor->name()}";
    }
}
#[IsVisitor]
final class Person
{
    public function __construct(#[Free] #[Length(min: 2)] public readonly string $name) {}
}
final class Team
{
    public function __construct(
        public readonly Person $head,
        #[Each('string', [new Free('cannot be had')])] public readonly array $others = [],
    ) {}
}
$app = new App();
$app->post('/', fn (Team $team, Visitor $visitor) => [$team->head->name, $visitor->name(), $visitor->number]);
$app->post('/around', fn (Team $team) => [$team->head->name])->use(fn ($request, $next) => $next($request));
return $app;
"#;

#[test]
fn rules_get_services() {
    let folder = TempDir::new("rules");
    let server = Surus::serve(&folder.file("app.php", APP)).start();
    let post = |path: &str, visitor: &str, body: &serde_json::Value| {
        Request::post(path)
            .header("x-visitor", visitor)
            .body("application/json", body.to_string())
            .send(server.address())
    };
    // Many at the same time: each with its own visitor.
    thread::scope(|scope| {
        for number in 0..20 {
            let post = &post;
            scope.spawn(move || {
                let name = format!("v{number}");
                let team = json!({"head": {"name": name}, "others": ["x", "y"]});
                let found = post("/", &name, &team).expect(200).json();
                assert_eq!(found[0], found[1]);
                assert_eq!(found[0], name);
            });
        }
    });
    // The handler has the visitor that the rules had.
    let team = json!({"head": {"name": "ann"}});
    let first = post("/", "ann", &team).expect(200).json()[2].as_u64();
    let second = post("/", "ann", &team).expect(200).json()[2].as_u64();
    assert_eq!(first.map(|number| number + 1), second);
    for path in ["/", "/around"] {
        let team = json!({"head": {"name": "taken"}, "others": ["x", "taken"]});
        let refused = post(path, "bob", &team).expect(422).json();
        let errors: Vec<_> = refused["errors"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|error| {
                let text = |key: &str| error[key].as_str().expect("text").to_owned();
                (text("pointer"), text("rule"), text("message"))
            })
            .collect();
        let row = |pointer: &str, rule: &str, message: &str| {
            (pointer.to_owned(), rule.to_owned(), message.to_owned())
        };
        assert_eq!(
            errors,
            [
                row("/head", "isVisitor", "is not bob"),
                row("/head/name", "free", "is taken, bob"),
                row("/others/1", "free", "cannot be had, bob"),
            ]
        );
        // What the schema refuses is not asked about.
        let short = json!({"head": {"name": "x"}});
        let refused = post(path, "bob", &short).expect(422).json();
        assert_eq!(refused["errors"].as_array().map(Vec::len), Some(1));
    }
}

#[test]
fn wrong_rules_are_errors_at_boot() {
    let folder = TempDir::new("rules");
    for (check, message) in [
        ("", "the rule R has no method check("),
        (
            "public function check(mixed $value, object $subject, int $x): ?string { return null; }",
            "the rule R asks for $x, whose type is no class",
        ),
        (
            "public function check(mixed $value, object $subject, NoSuch $x): ?string { return null; }",
            "parameter $in of the handler for \"POST /\" has the rule R, which asks for NoSuch: there is no such service",
        ),
        (
            "public function check(mixed $value, object $subject, Needs $x): ?string { return null; }",
            "parameter $in of the handler for \"POST /\" has the rule R, whose service Needs cannot be made",
        ),
    ] {
        let script = folder.file(
            "app.php",
            &format!(
                "<?php use Surus\\App; use Surus\\Schema\\ServiceRule;
                class Needs {{ public function __construct(string $what) {{}} }}
                #[Attribute] class R implements ServiceRule {{ {check} }}
                class In {{ public function __construct(#[R] public readonly string $a) {{}} }}
                $app = new App(); $app->post('/', fn (In $in) => 1); return $app;"
            ),
        );
        let error = Surus::serve(&script).boot_error();
        assert!(error.contains(message), "no {message:?} in {error}");
        assert!(error.contains("app.php:"), "{error}");
    }
}
