//! Settings that bound a site: they hold for the site, and cost neither the start nor the isolates.

use surus_tests::http::Request;
use surus_tests::parallel::together;
use surus_tests::surus::{Mode, Surus};
use surus_tests::temp::TempDir;

/// Each of two requests at once makes its own what it may, waits, and looks again.
const SITE: &str = r#"<?php
$id = (int) $_GET['id'];
$has = fn (string $function): bool => function_exists($function);
// Whatever the one before has left is not there.
$before = [$has('umask') ? umask() : 0, $has('getenv') ? getenv('HARDENED') : false, getcwd(), ini_get('precision')];
$has('putenv') && putenv("HARDENED=$id");
$has('umask') && umask(0o20 + $id);
$has('ini_set') && ini_set('precision', (string) (3 + $id));
$has('set_time_limit') && set_time_limit(50 + $id);
chdir(['/usr', '/var'][$id]);
date_default_timezone_set(['Europe/Rome', 'Africa/Tunis'][$id]);
usleep(200_000);
$own = [
    !$has('putenv') || getenv('HARDENED') === "$id",
    !$has('umask') || umask() === 0o20 + $id,
    !$has('ini_set') || ini_get('precision') === (string) (3 + $id),
    !$has('set_time_limit') || ini_get('max_execution_time') === (string) (50 + $id),
    getcwd() === ['/usr', '/var'][$id],
    date_default_timezone_get() === ['Europe/Rome', 'Africa/Tunis'][$id],
];
echo json_encode(['pid' => getmypid(), 'before' => $before, 'own' => $own, 'disabled' => ini_get('disable_functions')]);
"#;

fn site(name: &str) -> TempDir {
    let folder = TempDir::new(name);
    folder.file("index.php", SITE);
    folder
}

fn serve(folder: &TempDir, settings: &[&str]) -> Surus {
    let server = Surus::serve(folder.path()).mode(Mode::Classic);
    let server = settings.iter().fold(server, |server, setting| {
        server.argument("--set").argument(format!("php.{setting}"))
    });
    let server = server.start();
    let log = server.log();
    assert!(!log.contains("cannot be isolated"), "{settings:?}: {log}");
    server
}

/// Two rounds of two requests at once, in one process: their answers.
fn overlap(server: &Surus) -> Vec<serde_json::Value> {
    let ask = |id: usize| Request::get(&format!("/?id={}", id % 2)).send(server.address());
    let answers = (0..2).flat_map(|_| together(2, ask).0);
    answers.map(|answer| answer.expect(200).json()).collect()
}

#[test]
fn disabled_functions_cost_no_isolates_and_requests_stay_apart() {
    for functions in [
        "putenv",
        "set_time_limit",
        "ini_set",
        "umask",
        "putenv,set_time_limit,ini_set,umask",
        // What the self-test and the search for hidden state call as well.
        "define,in_array,array_keys,strtok,spl_autoload_register,opendir,gc_collect_cycles,usort,mt_rand,strrev",
    ] {
        let folder = site("disabled");
        let server = serve(&folder, &[&format!("disable_functions={functions}")]);
        let answers = overlap(&server);
        for answer in &answers {
            assert_eq!(answer["disabled"], functions);
            assert_eq!(answer["pid"], answers[0]["pid"], "in processes");
            assert_eq!(answer["before"], answers[0]["before"], "{functions}");
            let own = answer["own"].as_array().expect("a list");
            assert!(own.iter().all(|it| it == true), "{functions}: {answer}");
        }
    }
}

#[test]
fn what_is_disabled_is_not_there() {
    let folder = TempDir::new("gone");
    folder.file(
        "index.php",
        "<?php echo function_exists('putenv') ? 'there' : 'gone', function_exists('exec') ? 'there' : 'gone', \
         (new ReflectionClass('SplFixedArray'))->hasMethod('toArray') ? 'there' : 'gone';",
    );
    folder.file(
        "app.php",
        "<?php return fn () => (function_exists('putenv') ? 'there' : 'gone') . (function_exists('exec') ? 'there' : 'gone') \
         . ((new ReflectionClass('SplFixedArray'))->hasMethod('toArray') ? 'there' : 'gone');",
    );
    for mode in Mode::ALL {
        let server = Surus::serve(&mode.script(folder.path()))
            .mode(mode)
            .argument("--set=php.disable_functions=putenv, exec")
            .argument("--set=php.disable_classes=SplFixedArray")
            .start();
        let answer = Request::get("/").send(server.address()).expect(200);
        assert_eq!(answer.text(), "gonegonegone", "{mode:?}");
    }
}

#[test]
fn every_function_can_be_disabled() {
    let folder = TempDir::new("all");
    let list = folder.file(
        "all.php",
        "<?php echo implode(',', get_defined_functions()['internal']);",
    );
    let (_, all) = Surus::run(&["php", list.to_str().expect("a path")]);
    folder.file("index.php", "<?php echo 'hello';");
    let server = serve(&folder, &[&format!("disable_functions={all}")]);
    assert_eq!(
        Request::get("/").send(server.address()).expect(200).text(),
        "hello"
    );
}

#[test]
fn what_runs_with_each_request_and_bounds_it_costs_no_isolates() {
    let folder = site("prepended");
    let prints = folder.file("prints.php", "<?php echo ' ';");
    let prints = prints.display();
    let path = folder.path().display();
    for settings in [
        vec![format!("auto_prepend_file={prints}")],
        vec![format!("auto_append_file={prints}")],
        vec![
            format!("open_basedir={path}:/usr:/var"),
            "error_prepend_string=error".to_owned(),
            "display_errors=1".to_owned(),
        ],
    ] {
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let server = serve(&folder, &settings);
        let answers = overlap(&server);
        for answer in &answers {
            assert_eq!(answer["pid"], answers[0]["pid"], "in processes");
            let own = answer["own"].as_array().expect("a list");
            assert!(own.iter().all(|it| it == true), "{settings:?}: {answer}");
        }
    }
}

#[test]
fn classes_that_php_needs_cannot_be_disabled() {
    if Surus::php() >= 80_500 {
        return; // there is no such setting any more
    }
    let folder = TempDir::new("needed");
    folder.file("index.php", "<?php echo 'hello';");
    for class in ["Exception", "error", "TypeError", "Closure", "Generator"] {
        let text = Surus::serve(folder.path())
            .argument(format!("--set=php.disable_classes=Phar {class}"))
            .boot_error();
        let wanted = "disable_classes: PHP cannot run without the class ";
        assert!(text.contains(wanted), "{class}: {text}");
        assert!(
            text.to_lowercase().contains(&class.to_lowercase()),
            "{text}"
        );
    }
    for class in [
        "ArrayObject",
        "Fiber",
        "DOMNode",
        "ReflectionClass",
        "DateTimeZone",
    ] {
        let server = serve(&folder, &[&format!("disable_classes={class}")]);
        assert_eq!(
            Request::get("/").send(server.address()).expect(200).text(),
            "hello"
        );
    }
}
