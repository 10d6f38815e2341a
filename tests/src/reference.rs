//! nginx with php-fpm, set up as Debian's snippets do: what a classic site must behave like.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;

use nix::sys::signal::Signal;

use crate::nginx;
use crate::ports;
use crate::process::Process;
use crate::temp::TempDir;

/// What both servers call themselves in `$_SERVER['SERVER_NAME']` when they are configured so. A client
/// that asks for the address finds a site of that name.
pub const SERVER_NAME: &str = "surus.test";

#[derive(Debug)]
pub struct Reference {
    address: SocketAddr,
    _nginx: Process,
    _fpm: Process,
    _folder: TempDir,
}

impl Reference {
    /// Serves the folder `root` with 16 PHP processes. Requests for what does not exist go to its
    /// `index.php`, if it has one.
    pub fn serve(root: &Path) -> Self {
        let folder = TempDir::new("reference");
        let path = folder.path().display().to_string();
        let fpm = folder.file("fpm.conf", &fpm_conf(&path));
        let mut command = Command::new(fpm_program());
        command
            .args(["--nodaemonize", "--allow-to-run-as-root", "--fpm-config"])
            .arg(fpm)
            .env("TMPDIR", folder.path());
        let mut fpm = Process::start("fpm", command, Signal::SIGTERM, folder.path());
        fpm.wait_until(|process| process.stderr().contains("ready to handle connections"));

        let port = ports::free();
        let nginx = folder.file("nginx.conf", &nginx_conf(&path, port, root));
        let mut command = Command::new("/usr/sbin/nginx");
        command
            .arg("-p")
            .arg(folder.path())
            .arg("-c")
            .arg(nginx)
            .args(["-e", "stderr"]);
        let mut nginx = Process::start("nginx", command, Signal::SIGTERM, folder.path());
        nginx.wait_until(|_| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok());
        Self {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            _nginx: nginx,
            _fpm: fpm,
            _folder: folder,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

fn fpm_conf(path: &str) -> String {
    format!(
        "[global]
error_log = /dev/stderr
[site]
user = root
group = root
listen = {path}/fpm.sock
listen.backlog = 511
pm = static
pm.max_children = 16
env[TMPDIR] = $TMPDIR
"
    )
}

fn nginx_conf(path: &str, port: u16, root: &Path) -> String {
    let missing = if root.join("index.php").exists() {
        "/index.php$is_args$args"
    } else {
        "=404"
    };
    let root = root.display();
    let sites: String = [SERVER_NAME, "127.0.0.1"]
        .iter()
        .map(|name| {
            format!(
                "
    server {{
        listen 127.0.0.1:{port};
        server_name {name};
        root {root};
        index index.php index.html;
        location / {{ try_files $uri $uri/ {missing}; }}
        location ~ [^/]\\.php(/|$) {{
            fastcgi_split_path_info ^(.+?\\.php)(/.*)$;
            try_files $fastcgi_script_name =404;
            set $path_info $fastcgi_path_info;
            fastcgi_param PATH_INFO $path_info;
            fastcgi_index index.php;
            include /etc/nginx/fastcgi.conf;
            fastcgi_buffering off;
            fastcgi_pass unix:{path}/fpm.sock;
        }}
    }}"
            )
        })
        .collect();
    nginx::configuration(
        Path::new(path),
        &format!("    include /etc/nginx/mime.types;\n    client_max_body_size 64m;{sites}"),
    )
}

/// Debian's name has PHP's version in it.
fn fpm_program() -> String {
    fs::read_dir("/usr/sbin")
        .expect("read /usr/sbin")
        .filter_map(Result::ok)
        .map(|file| file.path().display().to_string())
        .filter(|path| path.contains("/php-fpm"))
        .max()
        .expect("php-fpm is installed")
}
