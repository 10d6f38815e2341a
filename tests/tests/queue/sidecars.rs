//! Programs that run beside the workers: `[process.NAME]`.

use std::fs;

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
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
