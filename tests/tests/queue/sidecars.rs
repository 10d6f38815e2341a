//! Programs that run beside the workers: `[process.NAME]`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use surus_tests::http::Request;
use surus_tests::surus::{Mode, Surus};
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

fn pid(server: &Surus, name: &str) -> Option<i32> {
    let status = server.status();
    let mut processes = status["processes"].as_array()?.iter();
    let found = processes.find(|process| process["process"] == name)?;
    i32::try_from(found["pid"].as_i64()?).ok()
}

#[test]
fn they_are_kept_running_and_end_with_the_server() {
    let folder = TempDir::new("sidecar");
    folder.file("index.php", "<?php echo 'ok';");
    let told = folder.path().join("told");
    let script = folder.file(
        "beside.sh",
        "trap 'echo ended >> told; exit 3' TERM\necho \"hello from $$\"\necho begun >> told\nwhile :; do sleep 0.02; done\n",
    );
    let config = format!(
        "[process.beside]\ncommand = [\"sh\", \"{}\"]\nfolder = \"{}\"\n\n\
         [process.wrong]\ncommand = [\"/no/such/program\"]\n",
        script.display(),
        folder.path().display()
    );
    let mut server = Surus::serve(folder.path())
        .mode(Mode::Classic)
        .config(&config)
        .start();
    let noted = |what: &str| {
        let text = fs::read_to_string(&told).unwrap_or_default();
        text.lines().filter(|line| *line == what).count()
    };
    wait_for("it does not run", || noted("begun") == 1);
    let first = pid(&server, "beside").expect("a process");
    wait_for("its output is not in the log", || {
        server.log().contains(&format!("hello from {first}"))
    });
    kill(Pid::from_raw(first), Signal::SIGKILL).expect("a process");
    wait_for("it does not run again", || noted("begun") == 2);
    // A reload starts it anew.
    let second = pid(&server, "beside");
    let (code, said) = server.command(&["reload"]);
    assert_eq!(code, Some(0), "{said}");
    wait_for("it was not started anew", || {
        noted("ended") == 1 && noted("begun") == 3
    });
    assert_ne!(pid(&server, "beside"), second);
    wait_for("what does not start is not named", || {
        let log = server.log();
        log.contains("/no/such/program") && log.contains("starting another in 100 ms")
    });
    server.process().signal(Signal::SIGTERM);
    wait_for("the server does not end", || {
        server.process().ended().is_some()
    });
    assert_eq!(noted("ended"), 2);
}

#[test]
fn they_die_with_the_master() {
    let folder = TempDir::new("sidecar");
    folder.file("index.php", "<?php echo 'ok';");
    let config = "[process.beside]\ncommand = [\"sleep\", \"1000\"]\ninstances = 2\n";
    let mut server = Surus::serve(folder.path())
        .mode(Mode::Classic)
        .config(config)
        .start();
    let mut pids = Vec::new();
    wait_for("they do not run", || {
        pids = ["beside.1", "beside.2"]
            .map(|name| pid(&server, name))
            .to_vec();
        pids.iter().all(Option::is_some)
    });
    server.process().signal(Signal::SIGKILL);
    wait_for("they are left", || {
        let is_there =
            |pid: &Option<i32>| pid.is_some_and(|pid| kill(Pid::from_raw(pid), None).is_ok());
        !pids.iter().any(is_there)
    });
}

/// A program that had the file of the log open itself would write to the old one for ever. Nor would the process with the jobs.
#[test]
fn what_they_print_follows_a_log_that_is_rotated() {
    let folder = TempDir::new("sidecar");
    folder.file("index.php", "<?php echo 'ok';");
    let log = folder.path().join("error.log");
    let config = format!(
        "[server]\nerror_log = {log:?}\n[app.app]\nqueue_folder = \"{folder}/jobs\"\n\
         [process.beside]\ncommand = [\"sh\", \"-c\", \"echo begun; while ! [ -e go ]; do sleep 0.02; done; printf 'last words'\"]\n\
         restart = \"on-failure\"\nfolder = \"{folder}\"\n\
         [process.again]\ncommand = [\"sh\", \"-c\", \"[ -e go ] || exit 0; echo again >> told; sleep 1000\"]\nfolder = \"{folder}\"\n",
        folder = folder.path().display()
    );
    let server = Surus::serve(folder.path())
        .mode(Mode::Classic)
        .config(&config)
        .start();
    let text = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    wait_for("it has printed nothing", || {
        text("error.log").contains("begun\n")
    });
    let beside = pid(&server, "beside").expect("a process");
    let queue = pid(&server, "queue").expect("a process");
    fs::rename(&log, folder.path().join("old.log")).expect("a log");
    let master = server.status()["pid"].as_i64().expect("a process");
    kill(Pid::from_raw(master as i32), Signal::SIGUSR1).expect("a server");
    wait_for("there is no new log", || log.exists());
    folder.file("go", "");
    wait_for(
        "its last line, which has no end, is not in the new log",
        || text("error.log").contains("last words\n"),
    );
    // One with 0 has ended, and the other one starts again.
    wait_for("it has not ended", || pid(&server, "beside").is_none());
    assert!(text("error.log").contains("process beside has ended"));
    wait_for("it does not run again", || text("told") == "again\n");
    for process in [beside, queue] {
        let files = fs::read_dir(format!("/proc/{process}/fd"));
        let open = files.into_iter().flatten().flatten();
        let mut paths = open.filter_map(|entry| fs::read_link(entry.path()).ok());
        assert!(!paths.any(|path| path.ends_with("old.log")));
    }
}

/// Whoever may not have so many processes has the server still, and what it lacks as soon as it may.
#[test]
fn what_cannot_be_started_is_tried_again() {
    const USER: [&str; 3] = ["--reuid=61357", "--regid=61357", "--clear-groups"];
    // A user that nothing else runs as.
    let wrapper = format!(
        "chmod 777 \"$TMPDIR\"; exec setpriv {} \"$@\"",
        USER.join(" ")
    );
    let folder = TempDir::new("sidecar");
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(folder.path(), open).expect("a folder");
    folder.file("app.php", "<?php return fn () => 'ok';");
    let config = format!(
        "[process.beside]\ncommand = [\"sleep\", \"1000\"]\nfolder = {:?}\n",
        folder.path()
    );
    let server = Surus::serve(folder.path())
        .under(&["sh", "-c", &wrapper, "sh"])
        .workers(2)
        .config(&config)
        .start();
    wait_for("they do not run", || {
        pid(&server, "beside").is_some() && pid(&server, "queue").is_some()
    });
    let status = server.status();
    let master = status["pid"].as_i64().expect("a process");
    let limit = |most: &str| {
        let most = format!("--nproc={most}:");
        let done = Command::new("setpriv")
            .args(USER)
            .args(["prlimit", "--pid", &master.to_string(), &most])
            .status();
        assert!(done.expect("prlimit").success());
    };
    limit("1");
    let workers = server.workers();
    for process in [pid(&server, "queue"), pid(&server, "beside")] {
        let process = process.expect("a process");
        kill(Pid::from_raw(process), Signal::SIGKILL).expect("a process");
    }
    kill(Pid::from_raw(workers[0]), Signal::SIGKILL).expect("a process");
    wait_for("it is not said", || {
        let log = server.log();
        let all = ["process queue", "process beside", "worker "];
        let said = |what: &&str| {
            let mut lines = log.lines().filter(|line| line.contains(*what));
            lines.any(|line| line.contains("could not be started: Try again"))
        };
        all.iter().all(said)
    });
    assert_eq!(
        Request::get("/").send(server.address()).expect(200).text(),
        "ok"
    );
    limit("1000");
    wait_for("they do not run again", || {
        let all = [pid(&server, "beside"), pid(&server, "queue")];
        all.iter().all(Option::is_some) && server.workers().len() == 2
    });
}
