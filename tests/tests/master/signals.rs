//! What operators' scripts send means what it means for nginx and php-fpm, or nothing: no signal is an outage by accident.

use std::fs;

use nix::errno::Errno;
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;

use surus_tests::http::Request;
use surus_tests::surus::{Mode, Surus};
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

fn site(mode: Mode) -> (TempDir, Surus) {
    let folder = TempDir::new("signals");
    folder.file("app.php", "<?php return fn () => 'ok';");
    folder.file("index.php", "<?php echo 'ok';");
    let server = Surus::serve(&mode.script(folder.path()))
        .mode(mode)
        .workers(2)
        .start();
    (folder, server)
}

fn master(server: &mut Surus) -> Pid {
    Pid::from_raw(server.process().id() as i32)
}

fn is_there(pid: i32) -> bool {
    fs::exists(format!("/proc/{pid}")).unwrap()
}

/// To all processes of the server, as `killall` and service managers do.
#[test]
fn signals_that_are_no_end_end_nothing() {
    for mode in Mode::ALL {
        let (_folder, mut server) = site(mode);
        let workers: Vec<i32> = all(&server);
        for signal in [
            Signal::SIGUSR1,
            Signal::SIGWINCH,
            Signal::SIGPIPE,
            Signal::SIGHUP,
            Signal::SIGUSR1,
        ] {
            server.process().signal(signal);
            for _ in 0..4 {
                Request::get("/").send(server.address()).expect(200);
            }
        }
        // A reload is over when there is another.
        assert_eq!(server.command(&["reload"]).0, Some(0));
        assert!(server.process().ended().is_none());
        if mode != Mode::Process {
            assert_eq!(all(&server), workers);
        }
        for worker in all(&server) {
            for signal in [
                Signal::SIGUSR1,
                Signal::SIGUSR2,
                Signal::SIGHUP,
                Signal::SIGQUIT,
                Signal::SIGINT,
            ] {
                match kill(Pid::from_raw(worker), signal) {
                    // A reload replaces these, and may not be done with the last one.
                    Err(Errno::ESRCH) if mode == Mode::Process => {}
                    sent => sent.unwrap(),
                }
            }
        }
        for _ in 0..8 {
            Request::get("/").send(server.address()).expect(200);
        }
        assert_eq!(server.command(&["reload"]).0, Some(0));
        for status in server.status()["workers"].as_array().unwrap() {
            assert!(mode == Mode::Process || status["restarts"] == 0, "{status}");
        }
    }
}

fn all(server: &Surus) -> Vec<i32> {
    let status = server.status();
    let workers = status["workers"].as_array().unwrap().iter();
    workers
        .filter_map(|worker| worker["pid"].as_i64())
        .map(|pid| pid as i32)
        .collect()
}

/// As for nginx and php-fpm: what has begun is finished.
#[test]
fn sigquit_ends_gracefully() {
    for mode in Mode::ALL {
        let folder = TempDir::new("quit");
        let code = "touch(sys_get_temp_dir() . '/begun'); usleep(500_000); return 'late';";
        folder.file(
            "app.php",
            &format!("<?php return function () {{ {code} }};"),
        );
        folder.file(
            "index.php",
            &format!("<?php echo (function () {{ {code} }})();"),
        );
        let mut server = Surus::serve(&mode.script(folder.path())).mode(mode).start();
        let address = server.address();
        let asked = std::thread::spawn(move || Request::get("/").send(address));
        let begun = server.folder().join("begun");
        wait_for("it does not begin", || begun.exists());
        let workers = all(&server);
        // Ctrl-\ sends it to all of a terminal's.
        server.process().signal(Signal::SIGQUIT);
        assert_eq!(asked.join().unwrap().expect(200).text(), "late");
        wait_for("it does not end", || server.process().ended().is_some());
        assert_eq!(server.process().ended().unwrap().code(), Some(0));
        assert!(workers.iter().all(|&pid| !is_there(pid)), "{workers:?}");
    }
}

/// A script that rotates logs comes at any time.
#[test]
fn sigusr1_while_it_boots_ends_nothing() {
    let folder = TempDir::new("early");
    let code = "<?php touch(sys_get_temp_dir() . '/boots'); while (!file_exists(sys_get_temp_dir() . '/go')) { usleep(1000); } return fn () => 'ok';";
    let script = folder.file("app.php", code);
    let temporary = TempDir::new("early-tmp");
    let path = temporary.path().to_owned();
    let starting = std::thread::spawn(move || {
        // What the server's own TMPDIR is set to comes last, so PHP asks for this one.
        Surus::serve(&script)
            .argument("--set")
            .argument(format!("php.sys_temp_dir={}", path.display()))
            .start()
    });
    wait_for("it does not boot", || {
        temporary.path().join("boots").exists()
    });
    let worker = pid_of_booting(temporary.path());
    for pid in [worker.0, worker.1] {
        kill(Pid::from_raw(pid), Signal::SIGUSR1).unwrap();
    }
    fs::write(temporary.path().join("go"), "").unwrap();
    let mut server = starting.join().unwrap();
    Request::get("/").send(server.address()).expect(200);
    assert_eq!(master(&mut server).as_raw(), worker.0);
}

/// The master, and its worker that boots: those with this path among their arguments.
fn pid_of_booting(path: &std::path::Path) -> (i32, i32) {
    let path = path.display().to_string();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<i32>() else {
            continue;
        };
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&line).contains(&path) {
            found.push(pid);
        }
    }
    found.sort_unstable();
    (found[0], found[1])
}
