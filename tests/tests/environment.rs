//! The environment that PHP sees: php-fpm's `clear_env` and `env[NAME]`, and the user's `HOME` and `USER`.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fs::{set_permissions, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use nix::unistd::{Uid, User};
use surus_tests::http::Request;
use surus_tests::surus::{binary, Mode, Options, Surus};
use surus_tests::temp::TempDir;

const ANSWER: &str = r#"
function answer(): string
{
    return json_encode([
        'all' => getenv(),
        'env' => array_intersect_key($_ENV, getenv()),
        'server' => array_intersect_key($_SERVER, getenv()),
        'left' => getenv('LEFT_OUTSIDE'),
        'sh' => trim((string) shell_exec('env | sort')),
        'array' => (static function (): string {
            $process = proc_open(['id', '-un'], [1 => ['pipe', 'w']], $pipes);
            return (string) stream_get_contents($pipes[1]);
        })(),
    ], JSON_FORCE_OBJECT | JSON_THROW_ON_ERROR);
}
"#;

fn site() -> TempDir {
    let folder = TempDir::new("environment");
    folder.file(
        "index.php",
        &format!("<?php {ANSWER} header('Content-Type: application/json'); echo answer();"),
    );
    folder.file(
        "app.php",
        &format!(
            "<?php {ANSWER} $app = new Surus\\App();
            $app->get('/', fn () => new Surus\\Http\\Response(answer(), 200, ['Content-Type' => 'application/json']));
            return $app;"
        ),
    );
    set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("open a folder");
    folder
}

/// With variables of its own, of which PHP is told nothing but what the configuration says.
fn server(mode: Mode, folder: &TempDir, config: &str) -> Options {
    Surus::serve(&mode.script(folder.path()))
        .mode(mode)
        .config(&format!("{config}\n[php]\nvariables_order = 'EGPCS'\n"))
        .env("SURUS_ENV", "{}")
        .env("LEFT_OUTSIDE", "a secret")
        .env("PASSED_ON", "of the server's")
        .env("HOME", "/root")
        .env("USER", "root")
        .env("LOGNAME", "root")
}

fn ask(server: &Surus) -> serde_json::Value {
    Request::get("/").send(server.address()).expect(200).json()
}

fn map(value: &serde_json::Value) -> BTreeMap<String, String> {
    serde_json::from_value(value.clone()).expect("names and values")
}

fn me() -> User {
    User::from_uid(Uid::effective())
        .expect("users")
        .expect("a user")
}

#[test]
fn it_is_clean_but_for_the_user_and_what_the_configuration_says() {
    let me = me();
    let home = me.dir.to_str().expect("a path");
    for mode in Mode::ALL {
        let folder = site();
        let config = "[env]\nAPP_ENV = 'prod'\nAPP_DEBUG = 0\nPRICE = '$$5'\nSENT = '$PASSED_ON'\nMISSING = '$NOT_THERE'\n";
        let server = server(mode, &folder, config).start();
        let got = ask(&server);
        let expected = [
            ("APP_DEBUG", "0"),
            ("APP_ENV", "prod"),
            ("HOME", home),
            ("LOGNAME", &me.name),
            ("PRICE", "$5"),
            ("SENT", "of the server's"),
            ("USER", &me.name),
        ];
        let expected: BTreeMap<String, String> = expected
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        assert_eq!(map(&got["all"]), expected, "{mode:?}");
        assert_eq!(map(&got["env"]), expected, "{mode:?}");
        assert_eq!(got["left"], false, "{mode:?}");
        // What PHP starts has the same one, and is found without PATH.
        let sh = got["sh"].as_str().expect("text");
        assert!(
            sh.contains("APP_ENV=prod") && !sh.contains("LEFT_OUTSIDE"),
            "{sh}"
        );
        assert_eq!(got["array"].as_str().map(str::trim), Some(me.name.as_str()));
        if mode != Mode::Coroutine {
            // As under php-fpm; frameworks look there.
            assert_eq!(map(&got["server"]), expected, "{mode:?}");
        }
        let log = server.log();
        assert!(
            log.contains("MISSING") && log.contains("NOT_THERE"),
            "{log}"
        );
    }
}

#[test]
fn it_is_the_servers_where_it_is_not_cleared() {
    for mode in Mode::ALL {
        let folder = site();
        let config = "[app.site]\nclear_env = false\n[env]\nPASSED_ON = 'mine'\n";
        let server = server(mode, &folder, config).start();
        let all = map(&ask(&server)["all"]);
        let get = |name: &str| all.get(name).map(String::as_str);
        assert_eq!(get("LEFT_OUTSIDE"), Some("a secret"), "{mode:?}");
        assert_eq!(get("PASSED_ON"), Some("mine"), "{mode:?}");
        assert_eq!(get("PATH"), std::env::var("PATH").ok().as_deref());
    }
}

#[test]
fn home_and_user_are_those_of_the_configured_user() {
    assert!(Uid::effective().is_root(), "this test needs root");
    let nobody = User::from_name("nobody").expect("users").expect("nobody");
    let home = nobody.dir.to_str();
    for mode in Mode::ALL {
        for clear in [true, false] {
            let folder = site();
            let config = format!("[server]\nuser = 'nobody'\n[app.site]\nclear_env = {clear}\n");
            let server = server(mode, &folder, &config).start();
            let all = map(&ask(&server)["all"]);
            let get = |name: &str| all.get(name).map(String::as_str);
            assert_eq!(get("USER"), Some("nobody"), "{mode:?} {clear}");
            assert_eq!(get("LOGNAME"), Some("nobody"), "{mode:?} {clear}");
            assert_eq!(get("HOME"), home, "{mode:?} {clear}");
        }
        // What the configuration says wins, as with php-fpm.
        let folder = site();
        let config = "[server]\nuser = 'nobody'\n[env]\nHOME = '/srv/site'\n";
        let server = server(mode, &folder, config).start();
        assert_eq!(map(&ask(&server)["all"])["HOME"], "/srv/site", "{mode:?}");
    }
}

/// A change of one request's is not the next one's, whatever the environment began as.
#[test]
fn it_is_the_same_for_each_request_of_an_isolate() {
    for mode in [Mode::Classic, Mode::Process] {
        let folder = TempDir::new("changes");
        folder.file(
            "index.php",
            "<?php echo json_encode([getenv('A'), getenv('B'), putenv('A=changed'), putenv('B=new'), putenv('USER'), getenv('A'), getenv('USER')]);",
        );
        let server = Surus::serve(&mode.script(folder.path()))
            .mode(mode)
            .env("SURUS_ENV", "{ A = \"one\" }")
            .start();
        for _ in 0..20 {
            let text = Request::get("/").send(server.address()).expect(200).text();
            assert_eq!(
                text, r#"["one",false,true,true,true,"changed",false]"#,
                "{mode:?}"
            );
        }
    }
}

#[test]
fn what_cannot_be_a_variable_is_an_error_that_names_it() {
    let folder = site();
    for (config, part) in [
        ("[env]\n'A=B' = 'x'\n", "A=B"),
        ("[env]\n'' = 'x'\n", "env"),
        (
            "[env]\nA = ['x']\n",
            "expected a string, a number or a boolean",
        ),
        ("[app.site]\nenv = { A = 'x' }\n", "[env]"),
        (
            "[env]\nA = '${HOME}'\n",
            r#"line 2: env: A = "${HOME}": "$NAME" stands for a whole variable"#,
        ),
    ] {
        let file = folder.file("surus.toml", config);
        let output = Command::new(binary())
            .args(["check", "--listen", "0", "--config"])
            .arg(file)
            .arg(folder.path())
            .output()
            .expect("surus runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(part), "no {part:?} in {text}");
    }
}

#[test]
fn the_command_line_has_its_own() {
    let folder = TempDir::new("command");
    let script = folder.file("script.php", "<?php echo getenv('LEFT_OUTSIDE');");
    let output = Command::new(binary())
        .arg("php")
        .arg(script)
        .env("LEFT_OUTSIDE", "here")
        .output()
        .expect("surus runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "here");
}

/// What an application says of itself, it says in the environment that it is served in.
#[test]
fn routes_are_those_of_the_environment_that_is_served() {
    let folder = TempDir::new("routes");
    folder.file(
        "app.php",
        "<?php $app = new Surus\\App(); $app->get('/' . (getenv('AREA') ?: 'none') . '/' . (getenv('LEFT_OUTSIDE') ?: 'clean'), fn () => 1); return $app;",
    );
    let output = Command::new(binary())
        .arg("routes")
        .arg(folder.path())
        .args(["--set", "env.AREA=shop"])
        .env("LEFT_OUTSIDE", "here")
        .output()
        .expect("surus runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("/shop/clean"),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
