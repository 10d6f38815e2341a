//! The processes of `surus serve`, and what its callers see of them: exit codes, messages, signals.

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{kill, killpg, Signal};
use nix::unistd::Pid;

const HELLO: &str = "<?php return fn () => (string) getmypid();";

const SLEEPS: &str = "<?php return function ($request) { usleep(500_000); return 'slept'; };";

/// A folder of its own, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn with(name: &str, text: &str) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("surus-processes-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join(name), text).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn surus(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_surus"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = surus(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

/// A running server, in a process group of its own.
struct Server {
    child: Child,
    ready: String,
    address: SocketAddr,
    /// Removed after the server has ended.
    _folder: Folder,
}

impl Server {
    fn start(folder: Folder, workers: usize) -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let path = folder.0.to_str().unwrap();
        let (listen, workers) = (address.to_string(), workers.to_string());
        let mut child = surus(&["serve", path, "--listen", &listen, "--workers", &workers])
            .env("RUNTIME_DIRECTORY", &folder.0)
            .process_group(0)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut ready)
            .unwrap();
        assert!(ready.starts_with("surus ready"), "{ready:?}");
        Server {
            child,
            ready,
            address,
            _folder: folder,
        }
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32)
    }

    fn workers(&self) -> Vec<Pid> {
        let pid = self.child.id();
        let children =
            fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        children
            .split_whitespace()
            .map(|pid| Pid::from_raw(pid.parse().unwrap()))
            .collect()
    }

    fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        Client(stream)
    }

    fn get(&self) -> String {
        let mut client = self.connect();
        client.send();
        client.body()
    }

    /// Its exit code and what it wrote to stderr, once it has ended by itself.
    fn ended(mut self) -> (Option<i32>, String) {
        wait_until(|| self.child.try_wait().unwrap().is_some());
        let mut text = String::new();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        (self.child.wait().unwrap().code(), text)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Client(TcpStream);

impl Client {
    fn send(&mut self) {
        self.0
            .write_all(b"GET / HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n")
            .unwrap();
    }

    fn body(&mut self) -> String {
        let mut text = String::new();
        self.0.read_to_string(&mut text).unwrap();
        let (_, body) = text.split_once("\r\n\r\n").expect("a response");
        body.to_owned()
    }
}

fn wait_until(mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "nothing happened for 10 s"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn alive(pid: Pid) -> bool {
    // A zombie has ended; who reaps it is another matter.
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn it_says_when_it_is_ready_and_ends_with_0_when_told_to() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let server = Server::start(Folder::with("app.php", HELLO), 2);
        let expected = format!(
            "surus ready on http://{} (2 workers, coroutine app.php)\n",
            server.address
        );
        assert_eq!(server.ready, expected);
        assert_eq!(server.workers().len(), 2);
        // As Ctrl-C does it: to master and workers at once.
        killpg(server.pid(), signal).unwrap();
        assert_eq!(server.ended(), (Some(0), String::new()));
    }
}

#[test]
fn every_worker_gets_connections() {
    let server = Server::start(Folder::with("app.php", HELLO), 2);
    let pids: HashSet<String> = (0..50).map(|_| server.get()).collect();
    let workers: HashSet<String> = server.workers().iter().map(ToString::to_string).collect();
    assert_eq!(pids, workers);
}

#[test]
fn a_worker_that_dies_is_replaced() {
    let server = Server::start(Folder::with("app.php", HELLO), 1);
    std::thread::sleep(Duration::from_millis(1100));
    let first = server.workers()[0];
    kill(first, Signal::SIGKILL).unwrap();
    wait_until(|| server.workers().first().is_some_and(|&pid| pid != first));
    // Connects before the new worker is ready, and is served when it is.
    assert_eq!(server.get(), server.workers()[0].to_string());
    kill(server.pid(), Signal::SIGTERM).unwrap();
    let (code, log) = server.ended();
    assert_eq!(
        (code, log.as_str()),
        (
            Some(0),
            "surus: worker 1 was killed by SIGKILL; starting another\n"
        )
    );
}

#[test]
fn workers_do_not_outlive_their_master() {
    let server = Server::start(Folder::with("app.php", HELLO), 2);
    let workers = server.workers();
    kill(server.pid(), Signal::SIGKILL).unwrap();
    wait_until(|| !workers.iter().any(|&pid| alive(pid)));
}

#[test]
fn requests_in_flight_are_finished() {
    let server = Server::start(Folder::with("app.php", SLEEPS), 1);
    let mut client = server.connect();
    client.send();
    std::thread::sleep(Duration::from_millis(100));
    kill(server.pid(), Signal::SIGTERM).unwrap();
    assert_eq!(client.body(), "slept");
    assert_eq!(server.ended(), (Some(0), String::new()));
}

#[test]
fn requests_of_clients_that_have_left_are_finished_too() {
    let folder = Folder::with("app.php", "");
    let file = folder.0.join("done");
    let app = format!(
        "<?php return function () {{ try {{ usleep(300_000); }} finally {{ touch('{}'); }} return ''; }};",
        file.display()
    );
    fs::write(folder.0.join("app.php"), app).unwrap();
    let server = Server::start(folder, 1);
    let mut client = server.connect();
    client.send();
    std::thread::sleep(Duration::from_millis(100));
    drop(client);
    kill(server.pid(), Signal::SIGTERM).unwrap();
    wait_until(|| file.exists() || !alive(server.pid()));
    assert!(file.exists());
    assert_eq!(server.ended().0, Some(0));
}

#[test]
fn a_second_signal_ends_at_once() {
    let server = Server::start(
        Folder::with("app.php", "<?php return fn () => sleep(60);"),
        1,
    );
    let mut client = server.connect();
    client.send();
    std::thread::sleep(Duration::from_millis(100));
    kill(server.pid(), Signal::SIGTERM).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    assert!(alive(server.pid()));
    let begun = Instant::now();
    kill(server.pid(), Signal::SIGTERM).unwrap();
    assert_eq!(server.ended().0, Some(0));
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[test]
fn a_second_server_on_the_same_port_is_refused() {
    let server = Server::start(Folder::with("app.php", HELLO), 2);
    let listen = server.address.to_string();
    let other = Folder::with("app.php", HELLO);
    let (code, _, log) = run(&["serve", other.0.to_str().unwrap(), "--listen", &listen]);
    let expected = format!("surus: cannot listen on {listen}: another process does already\n");
    assert_eq!((code, log), (Some(2), expected));
}

#[test]
fn requests_are_logged_on_demand() {
    let folder = Folder::with("app.php", HELLO);
    let listen = SocketAddr::from(([127, 0, 0, 1], free_port())).to_string();
    let mut child = surus(&["serve", folder.0.to_str().unwrap(), "--listen", &listen])
        .env("SURUS_ACCESS_LOG", "true")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().starts_with("surus ready"));
    let mut client = Client(TcpStream::connect(&listen).unwrap());
    client.send();
    client.body();
    let line = lines.next().unwrap().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    // Not a terminal: for programs.
    for part in [
        "\"client\":\"127.0.0.1\"",
        "\"method\":\"GET\"",
        "\"target\":\"/\"",
        "\"status\":200",
    ] {
        assert!(line.contains(part), "{line}");
    }
}

fn serve_and_fail(folder: &Path) -> (Option<i32>, String) {
    let listen = free_port().to_string();
    let (code, stdout, stderr) = run(&[
        "serve",
        folder.to_str().unwrap(),
        "--listen",
        &listen,
        "--workers",
        "2",
    ]);
    assert_eq!(stdout, "");
    (code, stderr)
}

#[test]
fn an_application_that_does_not_boot_ends_with_1_and_its_error() {
    let folder = Folder::with("app.php", "<?php throw new Exception('no database today');");
    let (code, log) = serve_and_fail(&folder.0);
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("no database today"), "{log}");
    let folder = Folder::with("app.php", "<?php this is no PHP");
    let (code, log) = serve_and_fail(&folder.0);
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("syntax error"), "{log}");
}

#[test]
fn a_worker_that_dies_again_and_again_is_given_up() {
    let folder = Folder::with("app.php", "<?php posix_kill(getmypid(), 9);");
    let (code, log) = serve_and_fail(&folder.0);
    assert_eq!(code, Some(1), "{log}");
    assert!(
        log.contains(
            "was killed by SIGKILL, for the 5th time in a row right after its start; giving up"
        ),
        "{log}"
    );
}

#[test]
fn wrong_usage_ends_with_2() {
    let empty = Folder::with("readme.txt", "");
    let empty = empty.0.to_str().unwrap();
    for arguments in [
        vec!["serve", empty],
        vec!["serve", "/nonexistent"],
        vec!["serve", empty, "--workers", "none"],
        vec!["check", empty],
        vec!["php", "/nonexistent.php"],
        vec!["fly"],
        vec![],
    ] {
        let (code, _, log) = run(&arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {log}");
        assert!(!log.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_script_on_the_command_line_gets_its_arguments_and_sets_the_exit_code() {
    let script =
        "<?php echo implode(',', array_slice($argv, 1)), ' ', ini_get('precision'); exit(7);";
    let folder = Folder::with("script.php", script);
    let script = folder.0.join("script.php");
    let (code, output, log) = run(&[
        "php",
        "-d",
        "precision=5",
        script.to_str().unwrap(),
        "a",
        "--b=c",
        "-d",
    ]);
    assert_eq!((code, output.as_str()), (Some(7), "a,--b=c,-d 5"), "{log}");
}

/// A console program's script finds what php-cli gives it.
#[test]
fn a_script_on_the_command_line_has_the_callers_folder_and_standard_streams() {
    let script = "#!/usr/bin/env php\n<?php fwrite(STDOUT, PHP_SAPI . ' '); echo $argc, ' ', $argv[0], ' ', \
                  basename(getcwd()), ' ', isset($_SERVER['REQUEST_METHOD']) ? 'request' : 'command', ' ', \
                  fgets(STDIN); fwrite(STDERR, 'to stderr');";
    let folder = Folder::with("script.php", script);
    let caller = folder.0.join("elsewhere");
    fs::create_dir(&caller).unwrap();
    let mut child = surus(&["php", "../script.php"])
        .current_dir(&caller)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"a line\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    assert_eq!(
        (text(output.stdout), text(output.stderr)),
        (
            "cli 1 ../script.php elsewhere command a line\n".to_owned(),
            "to stderr".to_owned()
        )
    );
    assert_eq!(output.status.code(), Some(0));
}
