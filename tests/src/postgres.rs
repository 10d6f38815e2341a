//! A PostgreSQL server (Debian's, whichever version is installed).

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use nix::sys::signal::Signal;

use crate::ports;
use crate::process::{self, Process};
use crate::temp::TempDir;

#[derive(Debug)]
pub struct Postgres {
    port: u16,
    _process: Process,
    _folder: TempDir,
}

impl Postgres {
    /// The test binary's server: user `postgres` without a password, database `postgres`.
    pub fn shared() -> &'static Self {
        static SERVER: OnceLock<Postgres> = OnceLock::new();
        SERVER.get_or_init(Self::start)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Runs statements.
    pub fn execute(&self, statements: &str) {
        let mut psql = Command::new(program("psql"));
        psql.args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1"])
            .args(["-h", "127.0.0.1", "-p", &self.port.to_string()])
            .args(["-U", "postgres", "-c", statements, "postgres"]);
        process::run(psql);
    }

    fn start() -> Self {
        let user = process::user("postgres");
        let folder = TempDir::new("postgres").owned_by(&user);
        let data = folder.path().join("data");
        let mut initdb = process::command_as(&user, &program("initdb"));
        initdb
            .args([
                "--no-sync",
                "--auth=trust",
                "--username=postgres",
                "--encoding=UTF8",
                "--locale=C",
                "-D",
            ])
            .arg(&data)
            .current_dir(folder.path());
        process::run(initdb);

        let port = ports::free();
        let mut command = process::command_as(&user, &program("postgres"));
        command.arg("-D").arg(&data).current_dir(folder.path());
        let sockets = folder.path().display();
        for setting in [
            format!("port={port}"),
            "listen_addresses=127.0.0.1".to_owned(),
            format!("unix_socket_directories={sockets}"),
            "max_connections=600".to_owned(),
            "fsync=off".to_owned(),
        ] {
            command.arg("-c").arg(setting);
        }
        // SIGQUIT: stops at once, and removes its shared memory.
        let mut process = Process::start("postgres", command, Signal::SIGQUIT, folder.path());
        process.wait_until(|process| process.stderr().contains("ready to accept connections"));
        Self {
            port,
            _process: process,
            _folder: folder,
        }
    }
}

/// Debian keeps the server's programs out of the PATH, by version.
fn program(name: &str) -> String {
    let mut found: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .expect("PostgreSQL is installed")
        .filter_map(Result::ok)
        .map(|version| version.path().join("bin").join(name))
        .filter(|path| path.exists())
        .collect();
    found.sort();
    let program = found
        .pop()
        .unwrap_or_else(|| panic!("no {name} of PostgreSQL"));
    program.display().to_string()
}
