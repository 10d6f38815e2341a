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
    (status.code(), text(stdout), said(&text(stderr)))
}

/// Standard error without what root is told, which these tests may be run as.
fn said(text: &str) -> String {
    let lines = text.split_inclusive('\n');
    lines
        .filter(|line| !line.contains("PHP runs as root"))
        .collect()
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
            .set_read_timeout(Some(Duration::from_secs(30)))
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
        (self.child.wait().unwrap().code(), said(&text))
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
            begun.elapsed() < Duration::from_secs(30),
            "nothing happened for 30 s"
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
        "<?php return function () {{ try {{ touch('{0}.begun'); usleep(300_000); }} finally {{ touch('{0}'); }} return ''; }};",
        file.display()
    );
    fs::write(folder.0.join("app.php"), app).unwrap();
    let begun = folder.0.join("done.begun");
    let server = Server::start(folder, 1);
    let mut client = server.connect();
    client.send();
    wait_until(|| begun.exists());
    drop(client);
    kill(server.pid(), Signal::SIGTERM).unwrap();
    wait_until(|| file.exists() || !alive(server.pid()));
    assert!(file.exists());
    assert_eq!(server.ended().0, Some(0));
}

#[test]
fn a_second_signal_ends_at_once() {
    let app = "<?php return function () { touch(__DIR__ . '/begun'); sleep(60); };";
    let folder = Folder::with("app.php", app);
    let sleeps = folder.0.join("begun");
    let server = Server::start(folder, 1);
    let mut client = server.connect();
    client.send();
    wait_until(|| sleeps.exists());
    kill(server.pid(), Signal::SIGTERM).unwrap();
    // Two that are on their way at once would be one.
    wait_until(|| TcpStream::connect(server.address).is_err());
    assert!(alive(server.pid()));
    let begun = Instant::now();
    kill(server.pid(), Signal::SIGTERM).unwrap();
    assert_eq!(server.ended().0, Some(0));
    // Thirty seconds are the default for the first one.
    assert!(begun.elapsed() < Duration::from_secs(15));
}

#[test]
fn a_second_server_on_the_same_port_is_refused() {
    let server = Server::start(Folder::with("app.php", HELLO), 2);
    let listen = server.address.to_string();
    let other = Folder::with("app.php", HELLO);
    let (code, _, log) = run(&["serve", other.0.to_str().unwrap(), "--listen", &listen]);
    let expected = format!(
        "surus: cannot listen on {listen}: another process does already (--listen takes another address)\n"
    );
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
    // Before it there may be warnings: that PHP runs as root, for one.
    assert!(lines.any(|line| line.unwrap().contains("surus ready")));
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
    let folder = Folder::with("app.php", "<?php shell_exec('kill -9 ' . getmypid());");
    let (code, log) = serve_and_fail(&folder.0);
    assert_eq!(code, Some(1), "{log}");
    assert!(
        log.contains(
            "was killed by SIGKILL, for the 5th time in a row right after its start; giving up"
        ),
        "{log}"
    );
}

/// Each says what is wrong with which input.
#[test]
fn wrong_usage_ends_with_2() {
    let folder = Folder::with("app.php", HELLO);
    let file = |name: &str| folder.0.join(name).to_str().unwrap().to_owned();
    fs::create_dir(file("empty")).unwrap();
    fs::write(file("notes.txt"), "").unwrap();
    fs::write(file("broken.toml"), "[server]\nworkers = [").unwrap();
    nix::unistd::mkfifo(Path::new(&file("pipe.php")), nix::sys::stat::Mode::S_IRWXU).unwrap();
    for (arguments, says) in [
        (
            "serve EMPTY",
            "has no app.php, no public/index.php, no index.php; make one, or name a script",
        ),
        ("check EMPTY", "has no app.php"),
        ("routes EMPTY", "has no app.php"),
        ("openapi EMPTY", "has no app.php"),
        (
            "serve EMPTY --mode coroutine",
            "empty has no app.php; make one",
        ),
        ("serve /nonexistent", "/nonexistent: no such file or folder"),
        (
            "serve NOTES",
            "notes.txt is neither a PHP script nor a folder",
        ),
        (
            "serve PIPE",
            "pipe.php is neither a PHP script nor a folder",
        ),
        (
            "serve APP --workers none",
            "\"none\" is not \"auto\" or a number from 1 to 1024",
        ),
        ("serve APP --workers 0", "number from 1 to 1024"),
        ("serve APP --workers -1", "number from 1 to 1024"),
        (
            "serve APP --mode fast",
            "invalid value 'fast' for '--mode <MODE>'",
        ),
        (
            "serve APP --listen nowhere",
            "cannot listen on \"nowhere\": not ADDRESS:PORT",
        ),
        (
            "serve APP --listen 99999",
            "cannot listen on \"99999\": not ADDRESS:PORT, and no port up to 65535",
        ),
        (
            "serve APP --listen 192.0.2.1:80",
            "cannot listen on 192.0.2.1:80: this machine has no such address",
        ),
        (
            "serve APP --config /nonexistent",
            "cannot read /nonexistent: No such file",
        ),
        (
            "serve APP --config BROKEN",
            "broken.toml: TOML parse error at line 2, column 12",
        ),
        (
            "serve APP --set max_request=1",
            "--set max_request: there is no such key; is `--set max_requests` meant?",
        ),
        (
            "serve APP --set max_requests",
            "--set max_requests: it takes KEY=VALUE",
        ),
        (
            "serve APP --set request_timeout=soon",
            "\"soon\" is not a duration such as \"30s\"",
        ),
        ("serve APP --fast", "unexpected argument '--fast'"),
        ("serve APP more", "unexpected argument 'more'"),
        (
            "status --pid 999999999",
            "no server with the process id 999999999 was found in FOLDER:",
        ),
        (
            "stop /var/www",
            "no server of /var/www was found in FOLDER:",
        ),
        ("top --every 0", "\"0\" is not a number from 0.1 to 3600"),
        (
            "top --every nan",
            "\"nan\" is not a number from 0.1 to 3600",
        ),
        ("internals --isolates 0", "0 is not in 1..=65535"),
        ("new /proc", "/proc: the folder is not empty"),
        ("stubs /proc/nowhere", "/proc/nowhere: "),
        ("fly", "unrecognized subcommand 'fly'"),
        ("", "Usage: surus <COMMAND>"),
    ] {
        let words: Vec<String> = arguments
            .split_whitespace()
            .map(|word| match word {
                "APP" => file("app.php"),
                "EMPTY" => file("empty"),
                "NOTES" => file("notes.txt"),
                "PIPE" => file("pipe.php"),
                "BROKEN" => file("broken.toml"),
                word => word.to_owned(),
            })
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut command = surus(&words);
        let output = command.env("RUNTIME_DIRECTORY", &folder.0).output();
        let output = output.unwrap();
        let log = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {log}");
        let says = says.replace("FOLDER", folder.0.to_str().unwrap());
        assert!(log.contains(&says), "{arguments}: {log}");
    }
}

/// What a user may not read is said to be so, not to be missing.
#[test]
fn what_may_not_be_read_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::with("app.php", HELLO);
    fs::write(folder.0.join("index.php"), "").unwrap();
    let forbid = |name: &str, mode: u32| {
        let path = folder.0.join(name);
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    // Where anybody may run it.
    let programs = Folder::with("readme.txt", "");
    let program = programs.0.join("surus");
    fs::copy(env!("CARGO_BIN_EXE_surus"), &program).unwrap();
    let said = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.args(arguments).stdin(Stdio::null());
        if nix::unistd::Uid::effective().is_root() {
            command.uid(65534).gid(65534).current_dir("/");
        }
        let output = command.output().unwrap();
        let log = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {log}");
        log
    };
    let path = folder.0.to_str().unwrap();
    for script in ["app.php", "index.php"] {
        let script = format!("{path}/{script}");
        forbid("", 0o755);
        forbid("app.php", 0o200);
        forbid("index.php", 0o200);
        for arguments in [&["serve", &script][..], &["serve", path]] {
            let log = said(arguments);
            assert!(log.contains("surus: cannot read "), "{log}");
            assert!(log.contains(".php: it is not permitted to user "), "{log}");
        }
        forbid("", 0o000);
        for path in [path, &script] {
            let log = said(&["serve", path]);
            let expected = format!("surus: cannot read {path}: it is not permitted to user ");
            assert!(log.contains(&expected), "{log}");
        }
        forbid("", 0o755);
    }
}

/// The reader of a command's output may leave before its end.
#[test]
fn a_reader_that_leaves_is_no_error() {
    let folder = Folder::with("app.php", HELLO);
    let mut child = surus(&[
        "check",
        folder.0.to_str().unwrap(),
        "--dev",
        "--listen",
        "127.0.0.1:0",
    ])
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stderr, b"");
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
