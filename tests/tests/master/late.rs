//! New code that does not boot for a long time: who has asked is told, and nothing changes but that.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use surus_tests::http::Request;
use surus_tests::process::cpu_time;
use surus_tests::surus::{binary, Surus, CONTROL};
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

fn server(folder: &TempDir, settings: &str) -> Surus {
    folder.file("app.php", "<?php return fn () => 'old';");
    Surus::serve(&folder.path().join("app.php"))
        .workers(1)
        .config(settings)
        .start()
}

fn get(server: &Surus) -> String {
    Request::get("/").send(server.address()).expect(200).text()
}

#[test]
fn a_boot_without_end_is_given_up_and_ended() {
    thread::scope(|scope| {
        for place in ["", "processes = 1"] {
            scope.spawn(move || check_late_boots(place));
        }
    });
}

fn check_late_boots(place: &str) {
    let folder = TempDir::new("late");
    // It is told after two seconds what is waited for.
    let settings = format!("[server]\nboot_timeout = \"8s\"\n[app.app]\n{place}\n");
    let server = server(&folder, &settings);
    for forever in ["while (true) {}", "sleep(10_000);"] {
        folder.file(
            "app.php",
            &format!("<?php {forever} return fn () => 'new';"),
        );
        let (code, text) = server.command(&["reload"]);
        assert_eq!(code, Some(1), "{place} {forever}: {text}");
        assert!(
            text.contains("did not boot within boot_timeout, 8s"),
            "{text}"
        );
        let waited = text.contains("waiting for worker 1 to boot the new version")
            || text.contains("waiting for process 2 to boot the new version");
        assert!(
            waited && text.contains("at most"),
            "{place} {forever}: {text}"
        );
        assert_eq!(get(&server), "old");
        // What nobody waits for any more does not go on to compute, or to serve.
        wait_for("it computes on", || {
            let status = server.status();
            let all = status["workers"].as_array().expect("a list");
            let pids: Vec<i32> = all
                .iter()
                .filter_map(|it| it["pid"].as_i64().map(|pid| pid as i32))
                .collect();
            let sum = || pids.iter().map(cpu_time).sum::<Duration>();
            let before = sum();
            thread::sleep(Duration::from_millis(400));
            pids.len() == 1 + usize::from(!place.is_empty())
                && sum().saturating_sub(before) <= Duration::from_millis(40)
        });
        assert_eq!(get(&server), "old");
    }
    folder.file("app.php", "<?php return fn () => 'newer';");
    let (code, text) = server.command(&["reload"]);
    assert!(code == Some(0) && text.starts_with("reloaded\n"), "{text}");
    assert_eq!(get(&server), "newer");
}

/// Who interrupts the command has stopped to look, no more.
#[test]
fn an_interrupted_wait_leaves_the_server_alone() {
    let folder = TempDir::new("interrupted");
    let server = server(&folder, "");
    folder.file(
        "app.php",
        "<?php while (!file_exists(__DIR__ . '/go')) { usleep(10_000); clearstatcache(); }
        return fn () => 'new';",
    );
    // Whoever started the tests in the background has them ignore it.
    let mut command = Command::new("env")
        .arg("--default-signal=INT")
        .arg(binary())
        .arg("reload")
        .env("RUNTIME_DIRECTORY", server.folder().join(CONTROL))
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command");
    let stderr = command.stderr.take().expect("its error output");
    let said = BufReader::new(stderr).lines().next();
    let said = said.expect("a line").expect("a line");
    assert!(said.contains("waiting for worker 1"), "{said}");
    kill(Pid::from_raw(command.id() as i32), Signal::SIGINT).expect("SIGINT");
    command.wait().expect("its end");
    assert_eq!(get(&server), "old");
    // Told at once, also if a worker does not answer in time.
    wait_for("it does not say what it waits for", || {
        let (_, text) = server.command(&["status", "--json"]);
        let status: serde_json::Value = serde_json::from_str(&text).expect("a status in JSON");
        status["reloads"]["waits_for"].is_string()
    });
    folder.file("go", "");
    wait_for("it is not reloaded", || get(&server) == "new");
}

/// Nobody would know why the server does not come up, nor would it ever end.
#[test]
fn a_first_boot_without_end_is_ended_and_says_where_it_was() {
    for forever in ["while (true) {}", "sleep(10_000);"] {
        let folder = TempDir::new("first");
        let script = folder.file(
            "app.php",
            &format!(
                "<?php function endless() {{ {forever} }}\nendless();\nreturn fn () => 'new';"
            ),
        );
        let error = Surus::serve(&script)
            .config("[server]\nboot_timeout = \"2s\"\n")
            .boot_error();
        for part in [
            "slow boot: for ",
            "endless",
            "app.php did not boot within boot_timeout, 2s",
        ] {
            assert!(error.contains(part), "{forever}: {error}");
        }
    }
}

/// A call into C that does not return: only the master can end that.
#[test]
fn a_first_boot_that_nothing_can_interrupt_is_killed() {
    let folder = TempDir::new("bound");
    let script = folder.file(
        "app.php",
        "<?php password_hash('a', PASSWORD_BCRYPT, ['cost' => 31]);\nreturn fn () => 'new';",
    );
    let error = Surus::serve(&script)
        .config("[server]\nboot_timeout = \"1s\"\n")
        .boot_error();
    let expected = "worker 1 did not boot within boot_timeout, 1s, nor does it end; killing it";
    assert!(error.contains(expected), "{error}");
}
