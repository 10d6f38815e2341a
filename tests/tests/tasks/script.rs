//! Tasks in scripts of the command line.

use std::process::{Command, Output};

use serde_json::{json, Value};
use surus_tests::fixture;
use surus_tests::postgres::Postgres;
use surus_tests::surus::binary;
use surus_tests::temp::TempDir;

use super::expected;

fn php(arguments: &[&str]) -> Output {
    Command::new("timeout")
        .arg("60")
        .arg(binary())
        .arg("php")
        .args(arguments)
        .env("POSTGRES", Postgres::shared().port().to_string())
        .output()
        .expect("a script runs")
}

fn run(cases: &[&str]) -> (Option<i32>, String, String) {
    let script = fixture("tasks").join("script.php");
    let script = script.to_str().expect("a path in UTF-8");
    let output = php(&[&["-d", "memory_limit=64M", script], cases].concat());
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[test]
fn tasks_of_a_script_wait_at_the_same_time() {
    let mut all = expected();
    all.retain(|(case, _)| *case != "left");
    // First: what has had tasks gets no persistent connections any more.
    let kept = json!([6, "persistent stream", ["stream", "stream"]]);
    all.insert(0, ("persistent", kept));
    let cases: Vec<&str> = all.iter().map(|(case, _)| *case).collect();
    let (code, text, errors) = run(&cases);
    assert_eq!(code, Some(0), "{errors}");
    let answers: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
        .collect();
    assert_eq!(answers.len(), all.len(), "{text}");
    for ((case, answer), got) in all.iter().zip(answers) {
        assert_eq!(&got, answer, "{case}");
    }
    assert!(errors.contains("nobody awaits this"), "{errors}");
    assert!(!errors.contains("this is ignored"), "{errors}");
}

#[test]
fn what_ends_a_task_for_good_ends_the_script() {
    assert_eq!(run(&["exit", "race"]).0, Some(0));
    assert_eq!(run(&["exit", "race"]).1, "off and on");
    for case in ["fatal", "overflow", "abandoned"] {
        let (code, text, errors) = run(&[case, "race"]);
        assert_eq!(code, Some(255), "{case}: {text} {errors}");
        assert!(!text.contains("fast"), "{case}: {text}");
    }
    let (code, text, _) = run(&["shutdown", "race"]);
    let late = "The script has ended: shutdown functions and destructors after it have no tasks";
    assert_eq!(code, Some(0));
    assert!(text.ends_with(late), "{text}");
}

/// Each line of code, what it prints, and its exit status.
const SCRIPTS: &[(&str, &str, i32)] = &[
    (
        "register_shutdown_function(fn () => print('second ')); Surus\\defer(fn () => print('third')); echo 'first ';",
        "first second third",
        0,
    ),
    ("Surus\\all([fn () => exit(7), fn () => sleep(60)]); echo 'no';", "", 7),
    ("Surus\\async(function () { try { sleep(60); } finally { echo 'ended'; } }); usleep(1000);", "ended", 0),
    (
        "try { Surus\\all([function () { echo 'a'; pcntl_fork(); }]); } catch (Error $e) { echo $e->getMessage(); }",
        "apcntl_fork() while tasks run: await them before",
        0,
    ),
    (
        "Surus\\all([fn () => usleep(1)]); if ($child = pcntl_fork()) { pcntl_waitpid($child, $status); echo pcntl_wexitstatus($status); }
         else { try { Surus\\async(fn () => 1); } catch (Error $e) { echo $e->getMessage(), ' '; exit(3); } }",
        "Tasks are not for a process that a script has forked 3",
        0,
    ),
    (
        "pcntl_async_signals(true); pcntl_signal(SIGUSR1, fn () => print('signal '));
         Surus\\all([fn () => usleep(50000), fn () => posix_kill(getmypid(), SIGUSR1), fn () => usleep(20000)]); echo 'done';",
        "signal done",
        0,
    ),
    (
        "$app = new Surus\\App(); $app->get('/', fn () => Surus\\all([fn () => 'a', fn () => 'b']));
         $client = Surus\\Testing\\Client::of($app);
         echo $client->get('/')->body;
         try { Surus\\all([fn () => $client->get('/')]); } catch (Error $e) { echo ' ', $e->getMessage(); }
         echo Surus\\timeout(1, fn () => 'z'), $client->get('/')->body;",
        "[\"a\",\"b\"] A request in process cannot be sent while tasks of the script runz[\"a\",\"b\"]",
        0,
    ),
    (
        "$children = array_map(fn ($i) => fn () => stream_get_contents(popen(\"sleep 0.2; echo -n $i\", 'r')), range(1, 5));
         $began = microtime(true); echo implode(Surus\\all($children)), microtime(true) - $began < 0.8 ? '' : ' slow';",
        "12345",
        0,
    ),
];

#[test]
fn scripts_with_tasks_end_as_others_do() {
    let folder = TempDir::new("script");
    for (code, expected, status) in SCRIPTS {
        let script = folder.file("script.php", &format!("<?php {code}"));
        let output = php(&[script.to_str().expect("a path in UTF-8")]);
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(text, *expected, "{code}\n{errors}");
        assert_eq!(output.status.code(), Some(*status), "{code}\n{errors}");
    }
}
