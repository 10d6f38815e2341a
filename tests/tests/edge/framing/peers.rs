//! nginx and Apache as proxies in front of a server that writes down what it is sent: what they take for requests.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;
use surus_tests::nginx;
use surus_tests::ports;
use surus_tests::process::Process;
use surus_tests::temp::TempDir;

/// A request as somebody has understood it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) method: String,
    /// The path: proxies send on no more of an absolute target.
    pub(super) target: String,
    pub(super) body: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Program {
    Nginx,
    Apache,
}

/// A proxy that passes on to one server, which the tests speak to at `address`.
#[derive(Debug)]
pub(super) struct Proxy {
    pub(super) address: SocketAddr,
    _process: Process,
    _folder: TempDir,
}

impl Proxy {
    pub(super) fn start(program: Program, to: SocketAddr) -> Self {
        let folder = TempDir::new("proxy");
        let port = ports::free();
        let mut command = match program {
            Program::Nginx => {
                let config = folder.file("nginx.conf", &nginx(folder.path(), port, to));
                let mut command = Command::new("/usr/sbin/nginx");
                command.arg("-p").arg(folder.path()).arg("-c").arg(config);
                command.args(["-e", "stderr"]);
                command
            }
            Program::Apache => {
                let config = folder.file("apache.conf", &apache(folder.path(), port, to));
                let mut command = Command::new("/usr/sbin/apache2");
                command.arg("-f").arg(config).arg("-DFOREGROUND");
                command
            }
        };
        command.current_dir(folder.path());
        let name = format!("{program:?}").to_lowercase();
        let mut process = Process::start(&name, command, Signal::SIGTERM, folder.path());
        process.wait_until(|_| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok());
        Proxy {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            _process: process,
            _folder: folder,
        }
    }
}

/// Connections to the server are kept, so that what is read differently there would be seen.
fn nginx(folder: &Path, port: u16, to: SocketAddr) -> String {
    let http = format!(
        "    client_header_timeout 5s;
    client_body_timeout 5s;
    keepalive_timeout 5s;
    lingering_close off;
    upstream server {{ server {to}; keepalive 8; }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://server;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_set_header Host $http_host;
            proxy_ignore_client_abort on;
        }}
    }}"
    );
    nginx::configuration(folder, &http)
}

fn apache(folder: &Path, port: u16, to: SocketAddr) -> String {
    const MODULES: &str = "/usr/lib/apache2/modules";
    assert!(
        Path::new(MODULES).exists(),
        "no {MODULES}: run bin/setup test"
    );
    let modules: String = [
        "mpm_event",
        "authz_core",
        "proxy",
        "proxy_http",
        "reqtimeout",
    ]
    .iter()
    .map(|name| format!("LoadModule {name}_module {MODULES}/mod_{name}.so\n"))
    .collect();
    let path = folder.display();
    format!(
        "ServerName a
DefaultRuntimeDir {path}
PidFile {path}/apache.pid
ErrorLog {path}/error.log
User nobody
Group nogroup
Listen 127.0.0.1:{port}
{modules}
StartServers 1
ServerLimit 1
ThreadsPerChild 64
MaxRequestWorkers 64
RequestReadTimeout handshake=5 header=5 body=5
KeepAliveTimeout 5
Timeout 10
AllowEncodedSlashes NoDecode
ProxyPass \"/\" \"http://{to}/\" nocanon
"
    )
}

/// A server that reads what proxies send, which is never ambiguous, and keeps it.
#[derive(Debug)]
pub(super) struct Recorder {
    pub(super) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Recorder {
    pub(super) fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let seen = Arc::<Mutex<Vec<Seen>>>::default();
        let all = Arc::clone(&seen);
        // Ends with the test program.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let all = Arc::clone(&all);
                thread::spawn(move || record(stream, &all));
            }
        });
        Ok(Recorder { address, seen })
    }

    /// The requests whose target ends in one of these.
    pub(super) fn requests(&self, names: &[String]) -> Vec<Seen> {
        let seen = self.seen.lock().expect("nobody panics with it");
        let named = |seen: &&Seen| names.iter().any(|name| seen.target.ends_with(name));
        seen.iter().filter(named).cloned().collect()
    }
}

fn record(stream: TcpStream, all: &Mutex<Vec<Seen>>) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    let mut answers = stream.try_clone()?;
    let mut stream = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let mut words = line.split(' ').map(str::to_owned);
        let (method, target) = (words.next(), words.next());
        let (mut length, mut chunked) = (0, false);
        loop {
            let mut line = String::new();
            stream.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else {
                break;
            };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().map_err(io::Error::other)?,
                "transfer-encoding" => chunked = true,
                _ => {}
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body)?;
        while chunked {
            let mut line = String::new();
            stream.read_line(&mut line)?;
            let size = usize::from_str_radix(line.trim_end(), 16).map_err(io::Error::other)?;
            let mut chunk = vec![0; size + 2];
            stream.read_exact(&mut chunk)?;
            body.extend_from_slice(&chunk[..size]);
            chunked = size > 0;
        }
        all.lock().expect("nobody panics with it").push(Seen {
            method: method.unwrap_or_default(),
            target: target.unwrap_or_default(),
            body,
        });
        answers.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")?;
    }
}
