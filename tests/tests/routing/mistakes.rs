//! What is wrong with an application is said when it boots: where, what, and what would be right.

use super::*;

/// Each row: the application's code, and what its error begins with behind the file's name.
const MISTAKES: &[(&str, &str)] = &[
    // Patterns.
    (
        r#"$app->get('/users/{id:number}', fn () => 1);"#,
        r#":5: route "/users/{id:number}": unknown constraint "number""#,
    ),
    (
        r#"$app->get('users', fn () => 1);"#,
        r#":5: route "users": it must start with a slash"#,
    ),
    (
        r#"$app->get('/{a', fn () => 1);"#,
        r#":5: route "/{a": a { without its }"#,
    ),
    (
        r#"$app->get('/{a}/{a}', fn () => 1);"#,
        r#":5: route "/{a}/{a}": two parameters are called "a""#,
    ),
    (
        r#"$app->get('/{a}', fn () => 1)->host('{a}.org');"#,
        r#":5: route "/{a}": two parameters are called "a""#,
    ),
    (
        r#"$app->get('/a?b=1', fn () => 1);"#,
        r#":5: route "/a?b=1": a path has no '?'"#,
    ),
    (
        r#"$app->get('/a%20b', fn () => 1);"#,
        r#":5: route "/a%20b": write characters as they are"#,
    ),
    (
        r#"$app->group('/a/', fn ($g) => $g->get('/b', fn () => 1));"#,
        r#":5: route "/a//b": it has two slashes in a row"#,
    ),
    (
        r#"$app->get('/a', fn () => 1)->host('a.org:80');"#,
        r#":5: route "/a": host "a.org:80": it is a name or an address, without a port"#,
    ),
    (
        r#"$app->get('/a', fn () => 1)->header('a b');"#,
        r#":5: route "/a": "a b" is not the name of a header"#,
    ),
    (
        r#"$app->get('/a', fn () => 1)->where('b', 'x');"#,
        r#":5: there is no parameter "b" in "/a""#,
    ),
    (
        "$app->get('/x/{a}', fn () => 1);\n$app->map('get', '/x/{b}', fn () => 2);",
        r#":6: route "/x/{b}" takes GET requests that "/x/{a}" takes already: "#,
    ),
    (
        r#"$app->map('GE T', '/x', fn () => 1);"#,
        r#":5: "GE T" is no method of a request"#,
    ),
    (
        r#"$app->map([], '/x', fn () => 1);"#,
        r#":5: "" is no method of a request"#,
    ),
    (
        "$app->get('/a', fn () => 1)->name('x');\n$app->get('/b', fn () => 1)->name('x');",
        r#":6: there are two routes with the name "x""#,
    ),
    // Handlers.
    (
        r#"$app->get('/users', ['NoSuchClass', 'method']);"#,
        r#":5: the handler for "GET /users" cannot be called: NoSuchClass::method"#,
    ),
    (
        r#"$app->get('/users', [1, 'method']);"#,
        r#":5: the handler for "GET /users" cannot be called: array"#,
    ),
    (
        r#"$app->get('/users', 'NoSuch::method');"#,
        r#":5: the handler for "GET /users" cannot be called: "NoSuch::method""#,
    ),
    (
        r#"$app->get('/users', new stdClass());"#,
        r#":5: the handler for "GET /users" cannot be called: stdClass"#,
    ),
    (
        r#"$app->get('/users/{id}', fn ($name) => 1);"#,
        r#":5: parameter $name of the handler for "GET /users/{id}" is no parameter of the path"#,
    ),
    (
        r#"$app->get('/users/{id}', fn (stdClass $id) => 1);"#,
        r#":5: parameter $id of the handler for "GET /users/{id}" has a type that no text in a request becomes: stdClass"#,
    ),
    (
        r#"$app->get('/users/{id?}', fn ($id) => 1);"#,
        r#":5: parameter $id of the handler for "GET /users/{id?}" is optional in the path"#,
    ),
    (
        r#"class C { #[Get('/x')] protected function x() {} } $app->controllers(C::class);"#,
        r#":5: C::x() has a route, but is not public"#,
    ),
    (
        r#"class C { #[Get()] public function x() {} } $app->controllers(C::class);"#,
        r#":5: #[Get]: Too few arguments"#,
    ),
    (
        r#"$app->controllers('NoSuch');"#,
        r#":5: "NoSuch" is neither a class nor a folder"#,
    ),
    (
        r#"$app->folder('/', '/nowhere');"#,
        r#":5: there is no folder "/nowhere""#,
    ),
    (
        r#"$app->pages('/', '/nowhere');"#,
        r#":5: there is no folder "/nowhere""#,
    ),
    (
        r#"$app->load('/nowhere.php');"#,
        r#":5: there is no file "/nowhere.php""#,
    ),
    (
        r#"$app->resource('/x', 'NoSuch');"#,
        r#":5: NoSuch is no class"#,
    ),
    (
        r#"class E {} $app->resource('/x', E::class);"#,
        r#":5: E has none of the methods of a resource"#,
    ),
    (
        r#"return 'done';"#,
        r#" must return a Surus\App, a closure that takes a request, or a PSR-15 handler; it returned string"#,
    ),
    (
        r#"return 1;"#,
        r#" must return a Surus\App, a closure that takes a request, or a PSR-15 handler; it returned nothing: is there a "return $app;""#,
    ),
    // Services.
    (
        r#"$app->get('/', fn (NoSuch $x) => 1);"#,
        r#":5: parameter $x of the handler for "GET /" is no parameter of the path"#,
    ),
    (
        r#"class S { public function __construct(PDO $x) {} } $app->get('/', fn (S $s) => 1);"#,
        r#":5: parameter $s of the handler for "GET /" is a service that cannot be made: parameter $dsn of the constructor of PDO is no service and has no default: declare PDO with singleton() or scoped() (S needs PDO)"#,
    ),
    (
        r#"class A { public function __construct(B $b) {} } class B { public function __construct(A $a) {} } $app->get('/', fn (A $a) => 1);"#,
        r#":5: parameter $a of the handler for "GET /" is a service that cannot be made: Services need each other: A, B, A"#,
    ),
    (
        "class S { public function __construct(Surus\\Http\\Request $r) {} }\n$app->singleton(S::class);",
        ":6: the service S cannot be made: all requests would share it, but each has its own Surus\\Http\\Request, which it needs",
    ),
    (
        r#"$app->singleton('NoSuch');"#,
        r#":5: the service NoSuch cannot be made: There is no service NoSuch: declare one"#,
    ),
    // Groups.
    (
        r#"$app->mount('/a', (new App())->fallback(fn () => 1));"#,
        r#":5: a fallback, error handlers and a container belong to the outermost application"#,
    ),
    (
        r#"$app->mount('/a', (new App())->container(new Surus\Container()));"#,
        r#":5: a fallback, error handlers and a container belong to the outermost application"#,
    ),
    (
        r#"$group = new App(); $app->mount('/a', $group); $app->mount('/b', $group);"#,
        r#":5: this application is mounted already"#,
    ),
    // Middleware and error handlers.
    (
        r#"$app->use('no_such_function')->get('/', fn () => 1);"#,
        r#":5: the middleware "no_such_function" is neither a class nor a function"#,
    ),
    (
        r#"$app->use(new stdClass())->get('/', fn () => 1);"#,
        r#":5: stdClass is no middleware"#,
    ),
    (
        r#"$app->use(Surus\Middleware\Cors::class)->get('/', fn () => 1);"#,
        r#":5: the middleware Surus\Middleware\Cors cannot be made: "#,
    ),
    (
        r#"$app->error(200, fn () => 1);"#,
        r#":5: "200" is neither a status from 400 to 599 nor a class of exceptions"#,
    ),
    (
        r#"$app->error('NoSuch', fn () => 1);"#,
        r#":5: "NoSuch" is neither a status from 400 to 599 nor a class of exceptions"#,
    ),
    (
        r#"$app->error(404, fn (Throwable $e, $request, $more) => 1);"#,
        r#":5: the handler for errors "404" takes the exception and the request, nothing else"#,
    ),
    // Connections that all requests would share.
    (
        r#"$app->singleton(PDO::class, fn () => new PDO('sqlite::memory:'));"#,
        r#":5: the service PDO is a connection, and all requests would share it, so that they would get each other's answers: declare it scoped(), or use a Surus\Pool (guide, page Databases)"#,
    ),
    (
        r#"$app->singleton('database', fn (): PDO => new PDO('sqlite::memory:'));"#,
        r#":5: the service database holds a PDO, and all"#,
    ),
    (
        r#"class Repository { public function __construct(private ?PDO $database = null) {} } class Shop { private Repository $repository; }
$app->singleton(Shop::class);"#,
        r#":6: the service Shop holds a PDO in Shop::$repository, and all"#,
    ),
    (
        r#"class Users { private mysqli|PDO $link; } $app->singleton(Users::class, fn () => new Users());"#,
        r#":5: the service Users holds a mysqli in Users::$link, and all"#,
    ),
    // Input.
    (
        r#"class D { public function __construct(#[Length(min: 1)] public string $a) {} } $app->post('/', fn (?D $d) => 1);"#,
        r#":5: parameter $d of the handler for "POST /" is a body, which no request can leave out"#,
    ),
    (
        r#"$app->post('/', fn (#[Body] array $a) => 1);"#,
        r#":5: parameter $a of the handler for "POST /" is marked as a body: its type has to be a class"#,
    ),
    (
        r#"class D { #[Length(min: 1)] public string $a; } $app->post('/', fn (D $d) => 1);"#,
        r#":5: parameter $d of the handler for "POST /" is a D, which has rules on its property $a"#,
    ),
    (
        r#"class D { public function __construct(#[Length(minimum: 1)] public string $a) {} } $app->post('/', fn (D $d) => 1);"#,
        r#":5: parameter $a: #[Length]: Unknown named parameter $minimum"#,
    ),
    (
        r#"class D { public function __construct(#[Pattern('/^a$/')] public string $a) {} } $app->post('/', fn (D $d) => 1);"#,
        r#":5: parameter $a: #[Pattern]: write "/^a$/" without delimiters"#,
    ),
    (
        r#"class D { public function __construct(#[Length(min: 1)] public int $a) {} } $app->post('/', fn (D $d) => 1);"#,
        r#":5: parameter $a of D::__construct(): #[Length] has no meaning for its type"#,
    ),
];

/// As above; {file} is the file's name.
const MISLEADING: &[(&str, &str)] = &[
    (
        r#"$app->get('/users/{id', fn (int $id) => 1);"#,
        r#":5: route "/users/{id": a { without its }"#,
    ),
    (
        r#"$app->get('/users/id}', fn (int $id) => 1);"#,
        r#":5: route "/users/id}": a } without its {"#,
    ),
    (
        "class C {\n#[Get('/{id:number}')] public function one(int $id) { return 1; } }\n$app->controllers(C::class);",
        r#":6: route "/{id:number}": unknown constraint "number""#,
    ),
    (
        "class C {\n#[Surus\\Attribute\\Route('GE T', '/')] public function one() { return 1; } }\n$app->controllers(C::class);",
        r#":6: "GE T" is no method of a request"#,
    ),
    // Dependencies.
    (
        r#"interface I {} class S { public function __construct(I $x) {} } $app->get('/', fn (S $s) => 1);"#,
        r#":5: parameter $s of the handler for "GET /" is a service that cannot be made: {file}:5: parameter $x (I) of the constructor of S is no service and has no default (I is an interface: declare which class it is, with singleton() or scoped())"#,
    ),
    (
        r#"class S { public function __construct(Mailer $x) {} } $app->get('/', fn (S $s) => 1);"#,
        r#":5: parameter $s of the handler for "GET /" is a service that cannot be made: {file}:5: parameter $x (Mailer) of the constructor of S is no service and has no default (there is no class Mailer: is its import missing?)"#,
    ),
    // Attributes without their import.
    (
        r#"class I { public function __construct(#[Email] public string $e) {} } $app->post('/', fn (I $i) => 1);"#,
        r#":5: parameter $e: there is no attribute #[Email] (Email): add "use Surus\Schema\Email;""#,
    ),
    (
        r#"class I { public function __construct(#[Length(max: 3)] public string $e, #[Lenght(max: 3)] public string $f) {} } $app->post('/', fn (I $i) => 1);"#,
        r#":5: parameter $f: there is no attribute #[Lenght] (Lenght): is its import missing?"#,
    ),
    (
        r#"class D { public function __construct(#[Uuid] public string $e) {} } class I { public function __construct(public D $d) {} } $app->post('/', fn (#[Body] I $i) => 1);"#,
        r#":5: parameter $e: there is no attribute #[Uuid] (Uuid): add "use Surus\Schema\Uuid;""#,
    ),
    (
        r#"class I { public function __construct(public string $e) {} } $app->post('/', fn (#[Form] I $i) => 1);"#,
        r#":5: parameter $i: there is no attribute #[Form] (Form): add "use Surus\Attribute\Form;""#,
    ),
    (
        "class C {\n#[Post('/')] public function one() { return 1; } }\n$app->controllers(C::class);",
        r#":6: there is no attribute #[Post] (Post): add "use Surus\Attribute\Post;""#,
    ),
    (
        r#"#[Group('/x')] class C { #[Get('/')] public function one() { return 1; } } $app->controllers(C::class);"#,
        r#":5: there is no attribute #[Group] (Group): add "use Surus\Attribute\Group;""#,
    ),
    // Types of doc comments.
    (
        "class I {\n/** @param array{a: int,\n * b: string} $m */ public function __construct(#[Length(max: 3)] public string $e, public array $m) {} } $app->post('/', fn (I $i) => 1);",
        r#":7: parameter $m of I::__construct(): the type "array{a: int, b: string}" of its doc comment cannot be validated: declare a class with these members"#,
    ),
    (
        "class I {\n/** @param list<Missing> $m */ public function __construct(#[Length(max: 3)] public string $e, public array $m) {} } $app->post('/', fn (I $i) => 1);",
        r#":6: parameter $m of I::__construct(): the type "list<Missing>" of its doc comment cannot be validated: is a class in it not there, or its import missing?"#,
    ),
];

#[test]
fn what_is_wrong_is_named_where_it_is() {
    let folder = TempDir::new("misleading");
    for (code, message) in MISLEADING {
        let head = "<?php\nuse Surus\\App; use Surus\\Attribute\\{Body, Get};\nuse Surus\\Schema\\{Length, Pattern};\n";
        let script = folder.file(
            "app.php",
            &format!("{head}$app = new App();\n{code}\nreturn $app;\n"),
        );
        let error = Surus::serve(&script).boot_error();
        let name = script.display().to_string();
        let wanted = format!("{name}{}", message.replace("{file}", &name));
        assert!(error.contains(&wanted), "{code}: no {wanted} in {error}");
        assert!(!error.contains("Stack trace"), "{code}: {error}");
    }
}

/// Packages bring attributes that nobody reads: they need not be installed.
#[test]
fn attributes_of_packages_that_are_not_there_are_left_alone() {
    let folder = TempDir::new("foreign");
    let script = folder.file(
        "app.php",
        "<?php namespace Mine; use JetBrains\\PhpStorm\\Pure; use Surus\\App; use Surus\\Schema\\Length;
        final class Input { public function __construct(#[Pure] #[Length(max: 3)] public string $e) {} }
        $app = new App(); $app->get('/', #[Pure, \\Override] fn () => 'hello'); $app->post('/', fn (Input $i) => 1); return $app;",
    );
    let server = Surus::serve(&script).start();
    assert_eq!(ask(&server, "GET /").text(), "hello");
}

/// `middleware` and `use` are one thing, and `surus routes` shows it.
#[test]
fn attributes_of_routes_take_middleware() {
    let folder = TempDir::new("around");
    let script = folder.file(
        "app.php",
        r#"<?php
        use Surus\App; use Surus\Attribute\{Get, Group}; use Surus\Http\{Middleware, Request, Response}; use Surus\Middleware\Cors;
        final class Mark implements Middleware {
            public function handle(Request $request, Closure $next): Response { return $next($request)->withHeader('x-mark', '1'); }
        }
        final class Outer implements Middleware {
            public function handle(Request $request, Closure $next): Response { return $next($request)->withHeader('x-outer', '1'); }
        }
        #[Group('/c', middleware: [Outer::class])]
        final class C { #[Get('/one', name: 'one', middleware: [Mark::class])] public function one() { return 'one'; } }
        $app = new App();
        $app->use(Mark::class)->controllers(C::class);
        $app->get('/shared', fn () => 'shared')->use(new Cors(['https://shop.example']));
        return $app;"#,
    );
    let server = Surus::serve(&script).start();
    let response = ask(&server, "GET /c/one").expect(200);
    assert_eq!(
        (response.header("x-mark"), response.header("x-outer")),
        (Some("1"), Some("1"))
    );
    let preflight = Request::new("OPTIONS", "/shared")
        .header("Origin", "https://shop.example")
        .header("Access-Control-Request-Method", "GET");
    assert_eq!(preflight.send(server.address()).status, 204);
    let (code, text) = Surus::run(&["routes", script.to_str().expect("a path")]);
    assert_eq!(code, Some(0), "{text}");
    let lines: Vec<String> = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        lines,
        [
            "GET /c/one C::one (one) < Mark, Outer, Mark",
            "GET /shared app.php:13 < Mark, Surus\\Middleware\\Cors",
        ]
    );
}

#[test]
fn what_is_wrong_is_said_at_boot() {
    let folder = TempDir::new("mistakes");
    for (code, message) in MISTAKES {
        let head = "<?php\nuse Surus\\App; use Surus\\Attribute\\{Body, Get};\nuse Surus\\Schema\\{Length, Pattern};\n";
        let script = folder.file(
            "app.php",
            &format!("{head}$app = new App();\n{code}\nreturn $app;\n"),
        );
        let error = Surus::serve(&script).boot_error();
        let said = format!("{}{message}", script.display());
        let wanted = format!("app.php did not boot: {said}");
        assert!(error.contains(&wanted), "{code}: {error}");
        assert_eq!(error.matches(&said).count(), 1, "{code}: {error}");
        assert!(!error.contains("Stack trace"), "{code}: {error}");
    }
}

/// The examples of documents are typed without it.
#[test]
fn a_script_without_php_in_it_is_named() {
    let folder = TempDir::new("mistakes");
    let script = folder.file(
        "app.php",
        "use Surus\\App;\n$app = new App();\nreturn $app;\n",
    );
    let error = Surus::serve(&script).boot_error();
    assert!(
        error.contains(r#"it returned nothing: there is no "<?php" at its beginning"#),
        "{error}"
    );
}

/// What PHP itself reports is said once, too; errors that a boot survives are in the log.
#[test]
fn errors_of_php_are_said_once() {
    let folder = TempDir::new("mistakes");
    for (code, message) in [
        ("throw new RuntimeException('no');", "RuntimeException: no"),
        ("foo(;", "syntax error, unexpected token"),
        ("require '/nowhere.php';", "Failed opening required"),
    ] {
        let script = folder.file("app.php", &format!("<?php\n{code}\n"));
        let error = Surus::serve(&script).boot_error();
        assert_eq!(error.matches(message).count(), 1, "{code}: {error}");
    }
    let script = folder.file(
        "app.php",
        "<?php Surus\\Internal\\report(new LogicException('noted')); return fn () => 1;",
    );
    let server = Surus::serve(&script).start();
    let log = server.log();
    assert_eq!(log.matches("LogicException: noted").count(), 1, "{log}");
}

#[test]
fn a_page_that_declares_something_does_not_boot() {
    let error = Surus::serve(&fixture("routing/broken/pages.php")).boot_error();
    assert!(
        error.contains("declares.php:12: a page runs for each request"),
        "{error}"
    );
}

/// What only a request shows names the handler or the middleware, as no frame of the application is left by then.
#[test]
fn wrong_results_name_who_has_returned_them() {
    let folder = TempDir::new("results");
    let script = folder.file(
        "app.php",
        r#"<?php
        $app = new Surus\App();
        $routes = function (Surus\App $app) {
            $app->get('/bool', fn () => false);
            $app->get('/status', fn () => 99);
            $app->get('/number', fn () => [NAN]);
            $app->get('/text', fn () => ["\xff"]);
        };
        $routes($app);
        $app->group('/through', $routes)->use(fn ($request, $next) => $next($request));
        $app->get('/forgets', fn () => 'never')->use(function ($request, $next) {
            $next($request);
        });
        #[Surus\Attribute\Scoped]
        final class Scoped
        {
            public function run() { return 1.5; }
        }
        $app->get('/scoped', [Scoped::class, 'run']);
        return $app;"#,
    );
    let server = Surus::serve(&script).start();
    for (path, message) in [
        ("/bool", "app.php:4 returned bool: return a string"),
        ("/status", "app.php:5 returned 99: an integer must be"),
        (
            "/number",
            "app.php:6 returned what has no JSON form: Inf and NaN",
        ),
        (
            "/text",
            "app.php:7 returned what has no JSON form: Malformed UTF-8",
        ),
        (
            "/through/bool",
            "The handler for \"GET /through/bool\" (app.php:4) returned bool: return a string",
        ),
        (
            "/through/status",
            "The handler for \"GET /through/status\" (app.php:5) returned 99: an integer must be",
        ),
        ("/through/number", "Inf and NaN cannot be JSON encoded"),
        (
            "/forgets",
            "The middleware app.php:11 returned nothing: return what $next($request) gives",
        ),
        ("/scoped", "app.php:17 returned float: return a string"),
    ] {
        ask(&server, &format!("GET {path}")).expect(500);
        assert!(server.log().contains(message), "{path}: {}", server.log());
    }
}

/// What HTTP does not allow never becomes another header; who has made it is told which one is missing, and where.
#[test]
fn headers_that_http_does_not_allow_are_named_in_the_log() {
    let folder = TempDir::new("headers");
    let script = folder.file(
        "app.php",
        r#"<?php
        use Surus\Http\Response;
        $app = new Surus\App();
        $app->get('/line', fn () => new Response('x', headers: ['x-line' => "1\r\nx-injected: 2"]));
        $app->get('/list', fn () => new Response('x', headers: ['x-list' => ["1\nx-injected: 2", '3']]));
        $app->get('/type', fn () => new Response('x', headers: ['content-type' => "text/plain\nx-injected: 2"]));
        $app->get('/name', fn () => new Response('x', headers: ["x name" => '1']));
        $app->get('/last', fn () => (new Response('x'))->withTrailers(['x-last' => "1\nx-injected: 2"]));
        $app->get('/control', function () {
            header("x-control: \x01");
            return 'x';
        });
        return $app;"#,
    );
    let server = Surus::serve(&script).start();
    for (path, name, line) in [
        ("/line", "x-line", 4),
        ("/list", "x-list", 5),
        ("/type", "content-type", 6),
        ("/name", "x name", 7),
        ("/last", "x-last", 8),
        ("/control", "x-control", 9),
    ] {
        let answer = ask(&server, &format!("GET {path}")).expect(200);
        assert_eq!(answer.header("x-injected"), None, "{:?}", answer.headers);
        let said = format!(
            "name=\"{name}\" request=GET {path} handler=\"{}:{line}\"",
            script.display()
        );
        assert!(server.log().contains(&said), "{path}: {}", server.log());
    }
    let script = folder.file("index.php", "<?php header(\"x-control: \\x01\"); echo 1;");
    let server = Surus::serve(&script).mode(Mode::Classic).start();
    ask(&server, "GET /").expect(200);
    let said = format!(
        "name=\"x-control\" request=GET / script={}",
        script.display()
    );
    assert!(server.log().contains(&said), "{}", server.log());
}

/// What cannot be known before is refused when it is first made.
#[test]
fn shared_connections_are_refused_at_their_first_use() {
    let folder = TempDir::new("mistakes");
    let script = folder.file(
        "app.php",
        "<?php
use Surus\\App;
class Hidden { private array $all; public function __construct() { $this->all = ['x' => [new PDO('sqlite::memory:')]]; } }
class Outer { public $inner; public function __construct() { $this->inner = new Hidden(); } }
class Lone { private $it; public function __construct() { $this->it = new Hidden(); } }
class Clean { public $pool; public function __construct() { $this->pool = fn () => new Hidden(); } }
$app = new App();
$app->singleton(Outer::class, fn () => new Outer());
$app->singleton(Clean::class);
$app->get('/outer', fn (Outer $it) => 'served');
$app->get('/lone', fn (Lone $it) => 'served');
$app->get('/clean', fn (Clean $it) => 'served');
return $app;
",
    );
    let server = Surus::serve(&script).start();
    for (path, status) in [
        ("/outer", 500),
        ("/lone", 500),
        ("/clean", 200),
        ("/outer", 500),
    ] {
        let answer = Request::get(path).send(server.address());
        assert_eq!(answer.status, status, "{path} {}", server.log());
    }
    let log = server.log();
    let file = script.display();
    for said in [
        format!("{file}:8: the service Outer holds a PDO in Outer::$inner, and all requests would share it"),
        format!("{file}:5: the service Lone holds a PDO in Lone::$it, and all requests would share it"),
    ] {
        assert!(log.contains(&said), "{said}: {log}");
    }
}
