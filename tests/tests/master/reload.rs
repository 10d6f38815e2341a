//! New code beside the old one: every request is answered by one version or the other.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use surus_tests::http::Request;
use surus_tests::surus::{Mode, Surus};
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

use crate::load::during;

/// An application with a class of its own and a file that is included later, so that two versions of both are loaded.
fn write(folder: &Path, version: &str) {
    replace(
        folder,
        "version.php",
        &format!("<?php class Version {{ const NAME = '{version}'; }}"),
    );
    let app = "<?php require_once __DIR__ . '/version.php';
        return function ($request) { usleep(1000); return Version::NAME; };";
    replace(folder, "app.php", app);
    replace(
        folder,
        "index.php",
        "<?php require_once __DIR__ . '/version.php'; usleep(1000); echo Version::NAME;",
    );
}

/// In one step, as a deployment does: a classic site reads its files all the time.
fn replace(folder: &Path, name: &str, text: &str) {
    let new = folder.join(format!("{name}.new"));
    fs::write(&new, text).unwrap();
    fs::rename(new, folder.join(name)).unwrap();
}

fn get(server: &Surus) -> String {
    Request::get("/").send(server.address()).expect(200).text()
}

fn reload(server: &Surus) {
    let (code, text) = server.command(&["reload"]);
    // Where it takes long it has been said what was waited for.
    let is_done = code == Some(0) && text.starts_with("reloaded\n");
    assert!(is_done, "{text}{}", server.log());
}

#[test]
fn a_reload_serves_the_new_code_without_a_lost_request() {
    for mode in Mode::ISOLATES {
        let folder = TempDir::new("reload");
        write(folder.path(), "v0");
        let server = Surus::serve(&mode.script(folder.path()))
            .mode(mode)
            .workers(2)
            .start();
        let workers = server.workers();
        let ((), seen) = during(server.address(), 8, "/", || {
            for version in 1..=5 {
                write(folder.path(), &format!("v{version}"));
                reload(&server);
                assert_eq!(get(&server), format!("v{version}"), "{mode:?}");
            }
        });
        assert_eq!(seen.failures, [""; 0], "{mode:?}");
        assert_eq!(seen.bodies.keys().last().map(String::as_str), Some("v5"));
        assert_eq!(server.workers(), workers, "the processes stay");
    }
}

/// OPcache is told not to look at files, the file keeps its size and its time, and the reload is right after the change.
#[test]
fn opcache_never_serves_a_stale_file() {
    for mode in Mode::ISOLATES {
        let folder = TempDir::new("stale");
        write(folder.path(), "v0");
        let old = fs::File::open("/proc/self/exe")
            .unwrap()
            .metadata()
            .unwrap();
        let age = |folder: &Path| {
            for name in ["version.php", "app.php", "index.php"] {
                let file = fs::File::options()
                    .write(true)
                    .open(folder.join(name))
                    .unwrap();
                file.set_modified(old.modified().unwrap()).unwrap();
            }
        };
        age(folder.path());
        let server = Surus::serve(&mode.script(folder.path()))
            .mode(mode)
            .config(
                "[php]\n'opcache.validate_timestamps' = 0\n'opcache.file_update_protection' = 0\n",
            )
            .start();
        for version in 1..=3 {
            assert_eq!(get(&server), format!("v{}", version - 1), "{mode:?}");
            write(folder.path(), &format!("v{version}"));
            age(folder.path());
            reload(&server);
            assert_eq!(get(&server), format!("v{version}"), "{mode:?}");
        }
    }
}

#[test]
fn a_switched_release_is_followed() {
    for mode in Mode::ISOLATES {
        let folder = TempDir::new("release");
        for version in ["v1", "v2"] {
            write(&folder.folder(version), version);
        }
        let current = folder.path().join("current");
        symlink("v1", &current).unwrap();
        let server = Surus::serve(&mode.script(&current))
            .mode(mode)
            .workers(2)
            .start();
        assert_eq!(get(&server), "v1");
        let ((), seen) = during(server.address(), 4, "/", || {
            for version in ["v2", "v1", "v2"] {
                let next = folder.path().join("next");
                symlink(version, &next).unwrap();
                fs::rename(&next, &current).unwrap();
                reload(&server);
                assert_eq!(get(&server), version, "{mode:?}");
            }
        });
        assert_eq!(seen.failures, [""; 0], "{mode:?}");
    }
}

#[test]
fn a_version_that_does_not_boot_never_serves() {
    let folder = TempDir::new("broken");
    write(folder.path(), "v0");
    let server = Surus::serve(&folder.path().join("app.php"))
        .workers(2)
        .start();
    for (code, message) in [
        ("<?php this is no PHP", "syntax error"),
        (
            "<?php throw new Exception('no database today');",
            "no database today",
        ),
        ("<?php return 7;", "must return"),
    ] {
        let ((), seen) = during(server.address(), 4, "/", || {
            fs::write(folder.path().join("app.php"), code).unwrap();
            let (code, text) = server.command(&["reload"]);
            assert_eq!(code, Some(1), "{text}");
            assert!(text.contains(message), "{text}");
        });
        assert_eq!(seen.failures, [""; 0]);
        assert_eq!(seen.bodies.keys().collect::<Vec<_>>(), ["v0"]);
    }
    let last = &server.status()["reloads"]["last"];
    assert!(
        last["error"].as_str().unwrap().contains("must return"),
        "{last}"
    );
    write(folder.path(), "v1");
    reload(&server);
    assert_eq!(get(&server), "v1");
}

#[test]
fn requests_of_the_old_version_finish_in_it() {
    let folder = TempDir::new("finish");
    let app = |version: &str| {
        format!(
            "<?php return function ($request) {{
                if ($request->path() === '/slow') {{
                    touch(__DIR__ . '/begun');
                    while (!file_exists(__DIR__ . '/go')) {{
                        usleep(10_000);
                        clearstatcache();
                    }}
                }}
                return '{version}';
            }};"
        )
    };
    folder.file("app.php", &app("old"));
    let server = Surus::serve(&folder.path().join("app.php")).start();
    let slow = std::thread::spawn({
        let address = server.address();
        move || Request::get("/slow").send(address).expect(200).text()
    });
    wait_for("no request", || folder.path().join("begun").exists());
    folder.file("app.php", &app("new"));
    reload(&server);
    assert_eq!(get(&server), "new");
    assert!(!slow.is_finished());
    folder.file("go", "");
    assert_eq!(slow.join().unwrap(), "old");
}

#[test]
fn sighup_reloads() {
    let folder = TempDir::new("sighup");
    write(folder.path(), "v0");
    let mut server = Surus::serve(&folder.path().join("app.php")).start();
    write(folder.path(), "v1");
    kill(Pid::from_raw(server.process().id() as i32), Signal::SIGHUP).unwrap();
    wait_for("it is not reloaded", || get(&server) == "v1");
}

/// Who asks while a reload is under way is answered by the next one: the first may have read the files before.
#[test]
fn a_reload_that_is_asked_for_during_another_sees_the_newest_files() {
    let folder = TempDir::new("meanwhile");
    write(folder.path(), "v0");
    let app = "<?php require_once __DIR__ . '/version.php';
        file_put_contents(__DIR__ . '/booting', Version::NAME);
        while (file_exists(__DIR__ . '/hold')) { usleep(5000); }
        return fn () => Version::NAME;";
    replace(folder.path(), "app.php", app);
    let server = Surus::serve(&folder.path().join("app.php")).start();
    write(folder.path(), "v1");
    replace(folder.path(), "app.php", app);
    folder.file("hold", "");
    std::thread::scope(|scope| {
        let first = scope.spawn(|| reload(&server));
        wait_for("it does not boot", || {
            fs::read_to_string(folder.path().join("booting")).unwrap() == "v1"
        });
        replace(
            folder.path(),
            "version.php",
            "<?php class Version { const NAME = 'v2'; }",
        );
        let second = scope.spawn(|| reload(&server));
        // A moment for the second to be asked for: without it the test would show less, but not fail.
        std::thread::sleep(Duration::from_millis(200));
        fs::remove_file(folder.path().join("hold")).unwrap();
        second.join().unwrap();
        assert_eq!(get(&server), "v2", "{}", server.log());
        first.join().unwrap();
    });
}

/// Processes that take one request at a time are replaced, one after the other.
#[test]
fn processes_of_one_request_are_replaced() {
    for mode in ["process", "coroutine"] {
        let folder = TempDir::new("processes");
        write(folder.path(), "v0");
        let (script, settings) = match mode {
            "coroutine" => ("app.php", "[app.app]\nprocesses = 3\n"),
            _ => ("index.php", "[app.app]\nmode = 'process'\nprocesses = 3\n"),
        };
        let server = Surus::serve(&folder.path().join(script))
            .config(settings)
            .start();
        assert_eq!(get(&server), "v0", "{mode}");
        let ((), seen) = during(server.address(), 6, "/", || {
            for version in 1..=3 {
                write(folder.path(), &format!("v{version}"));
                reload(&server);
                assert_eq!(get(&server), format!("v{version}"), "{mode}");
            }
        });
        assert_eq!(seen.failures, [""; 0], "{mode}: {}", server.log());
        if mode == "coroutine" {
            replace(
                folder.path(),
                script,
                "<?php throw new Exception('not today');",
            );
            let (code, text) = server.command(&["reload"]);
            assert_eq!(code, Some(1), "{text}");
            assert!(text.contains("not today"), "{text}");
            assert_eq!(get(&server), "v3");
        }
    }
}
