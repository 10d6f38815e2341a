//! Tokens that the application issues: it takes them itself, and so does OpenSSL.

use std::process::Command;

use serde_json::Value;
use surus_tests::http::Request;
use surus_tests::surus::Surus;
use surus_tests::temp::TempDir;

const APP: &str = r#"<?php
use Surus\App;
use Surus\Auth\{BearerAuth, Jwt, Key, Keys, User};
use Surus\Http\Request;

$pem = fn (string $name): string => (string) file_get_contents(__DIR__ . "/$name.pem");
$app = new App();
foreach ([
    'secret' => [Key::secret(str_repeat('k', 32)), Key::secret(str_repeat('k', 32))],
    'rsa' => [Key::private($pem('rsa'), 'one'), Key::pem($pem('rsa.public'), 'one')],
    'ec' => [Key::private($pem('ec'), 'two'), Key::pem($pem('ec.public'), 'two')],
    'zero' => [Key::private($pem('zero')), Key::pem($pem('zero.public'))],
    'locked' => [Key::private($pem('locked'), passphrase: 'open'), Key::pem($pem('rsa.public'))],
] as $name => [$private, $public]) {
    $issuer = new Jwt(Keys::of($private), 'https://here.example', 'api');
    $other = new Jwt(Keys::of($public), 'https://here.example', 'api');
    $claims = ['sub' => 'ann', 'scope' => ['a/b', 'ä'], 'iss' => 'https://elsewhere.example', 'exp' => 1];
    $app->get("/$name", fn () => $issuer->issue($claims, 60));
    $app->get("/$name/user", fn (Request $request) => User::of($request))->use(new BearerAuth($other->verify(...)));
}
$app->get('/public', fn () => (new Jwt(Keys::of(Key::pem($pem('rsa.public'))), 'i', 'a'))->issue([]));
$app->get('/short', fn () => Key::private($pem('short')));
$app->get('/none', fn () => Key::private('no key'));
$app->get('/passphrase', fn () => Key::private($pem('locked'), passphrase: 'wrong'));
$app->error(LogicException::class, fn (LogicException $e) => Surus\Http\Response::text($e->getMessage(), 400));
return $app;
"#;

/// Verifies with stock PHP: the token and the public key, of which ES256's signature has to be rewritten.
const VERIFY: &str = r#"
[$head, $body, $signature] = explode('.', $argv[1]);
$raw = base64_decode(strtr($signature, '-_', '+/'));
if (strlen($raw) === 64) {
    $integer = fn ($n) => (ord($n[0]) > 127 ? "\0" : '') . $n;
    [$r, $s] = array_map(fn ($n) => $integer(ltrim($n, "\0")), str_split($raw, 32));
    $both = "\x02" . chr(strlen($r)) . $r . "\x02" . chr(strlen($s)) . $s;
    $raw = "\x30" . chr(strlen($both)) . $both;
}
echo openssl_verify("$head.$body", $raw, file_get_contents($argv[2]), OPENSSL_ALGO_SHA256),
    base64_decode(strtr($body, '-_', '+/'));
"#;

/// A private key of P-256 whose second coordinate begins with a zero, which OpenSSL leaves out; one key in 128 is so.
const ZERO: &str = "-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgODSdQsjtvnHpqF0R
Ek2pziug8WFVOZMoxFLXpeDCC8ChRANCAASrXAOQsJNWNBOWvFQFjRpotg7krCHt
euPt4B024jecTgAQqQITsE5dEmGJbkZWV0jxpgUaQcHYuRXqoF7PkpNr
-----END PRIVATE KEY-----
";

fn openssl(folder: &TempDir, arguments: &str) {
    let output = Command::new("openssl")
        .args(arguments.split(' '))
        .current_dir(folder.path())
        .output()
        .expect("openssl");
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn issued_tokens_are_good_elsewhere() {
    let folder = TempDir::new("issued");
    folder.file("zero.pem", ZERO);
    for arguments in [
        "genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out rsa.pem",
        "genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:1024 -out short.pem",
        "genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out ec.pem",
        "pkey -in rsa.pem -aes256 -passout pass:open -out locked.pem",
        "pkey -in rsa.pem -pubout -out rsa.public.pem",
        "pkey -in ec.pem -pubout -out ec.public.pem",
        "pkey -in zero.pem -pubout -out zero.public.pem",
    ] {
        openssl(&folder, arguments);
    }
    let server = Surus::serve(&folder.file("app.php", APP)).start();
    let get = |path: &str, token: &str| {
        let request = Request::get(path).header("authorization", &format!("Bearer {token}"));
        request.send(server.address())
    };
    let mut tokens = Vec::new();
    for name in ["secret", "rsa", "ec", "zero", "locked"] {
        let token = get(&format!("/{name}"), "").expect(200).text();
        let user = get(&format!("/{name}/user"), &token).expect(200).json();
        assert_eq!(user["sub"], "ann");
        assert_eq!(user["scope"], serde_json::json!(["a/b", "ä"]));
        assert_eq!(
            user["iss"], "https://here.example",
            "what the server says is not the caller's"
        );
        let lives = user["exp"].as_i64().expect("a time") - user["iat"].as_i64().expect("a time");
        assert_eq!(lives, 60);
        if name != "secret" {
            let public = if name == "locked" { "rsa" } else { name };
            let output = Command::new("php8.2")
                .args(["-r", VERIFY, &token, &format!("{public}.public.pem")])
                .current_dir(folder.path())
                .output()
                .expect("PHP");
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let claims: Value =
                serde_json::from_str(text.strip_prefix('1').expect(&text)).expect("claims");
            assert_eq!(claims, user);
        }
        tokens.push((name, token));
    }
    // Nobody else's, and no other text.
    for (name, token) in &tokens {
        for (other, _) in tokens.iter().filter(|(other, _)| other != name) {
            let same_key = [*name, *other]
                .iter()
                .all(|name| ["rsa", "locked"].contains(name));
            let status = get(&format!("/{other}/user"), token).status;
            assert!(status == 401 || same_key, "{name} at {other}: {status}");
        }
        let cut = &token[..token.len() - 4];
        assert_eq!(get(&format!("/{name}/user"), cut).status, 401);
    }
    for (path, message) in [
        ("/public", "None of the keys can sign"),
        (
            "/short",
            "The key is neither RSA from 2048 bits on nor P-256",
        ),
        ("/none", "This is no private key in PEM"),
        ("/passphrase", "or its passphrase is another one"),
    ] {
        let text = get(path, "").expect(400).text();
        assert!(text.contains(message), "{text}");
    }
}
