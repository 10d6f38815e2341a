//! A MariaDB server.

use std::fs;
use std::process::Command;
use std::sync::OnceLock;

use nix::sys::signal::Signal;

use crate::ports;
use crate::process::{self, Process};
use crate::temp::TempDir;

#[derive(Debug)]
pub struct MariaDb {
    port: u16,
    _process: Process,
    _folder: TempDir,
}

impl MariaDb {
    /// The user that PHP connects as over TCP; it may do everything.
    pub const USER: &'static str = "surus";
    pub const PASSWORD: &'static str = "elephant";

    /// The test binary's server.
    pub fn shared() -> &'static Self {
        static SERVER: OnceLock<MariaDb> = OnceLock::new();
        SERVER.get_or_init(Self::start)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    fn start() -> Self {
        let user = process::user("mysql");
        let folder = TempDir::new("mariadb").owned_by(&user);
        let data = folder.path().join("data");
        // With --no-defaults nothing of /etc/mysql counts: neither its socket nor skip-networking.
        let mut install = process::command_as(&user, "mariadb-install-db");
        install
            .args([
                "--no-defaults",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
            ])
            .arg(format!("--datadir={}", data.display()))
            // A server that starts removes the temporary tables of all others in its folder for them.
            .env("TMPDIR", folder.path())
            .current_dir(folder.path());
        process::run(install);

        let port = ports::free();
        // One statement a line: the server takes the file so.
        let init = folder.file(
            "init.sql",
            &format!(
                "CREATE USER '{0}'@'%' IDENTIFIED BY '{1}';\nGRANT ALL ON *.* TO '{0}'@'%';\n",
                Self::USER,
                Self::PASSWORD
            ),
        );
        let socket = folder.path().join("socket");
        let mut command = process::command_as(&user, server());
        command
            .arg("--no-defaults")
            .arg(format!("--datadir={}", data.display()))
            .arg(format!("--socket={}", socket.display()))
            .arg(format!(
                "--pid-file={}",
                folder.path().join("pid").display()
            ))
            .arg(format!("--init-file={}", init.display()))
            .arg(format!("--port={port}"))
            .args([
                "--bind-address=127.0.0.1",
                "--skip-name-resolve",
                "--max-connections=1000",
            ])
            // Nothing here survives the test, so nothing is synced.
            .args([
                "--innodb-flush-log-at-trx-commit=0",
                "--innodb-flush-method=nosync",
            ])
            .args(["--character-set-server=utf8mb4", "--performance-schema=off"])
            .env("TMPDIR", folder.path())
            .current_dir(folder.path());
        let mut process = Process::start("mariadb", command, Signal::SIGKILL, folder.path());
        process.wait_until(|process| process.stderr().contains("ready for connections"));
        Self {
            port,
            _process: process,
            _folder: folder,
        }
    }

    /// Creates an empty database.
    pub fn create(&self, database: &str) {
        self.execute(&format!("CREATE DATABASE {database}"));
    }

    /// The same where it may be there.
    pub fn create_once(&self, database: &str) {
        self.execute(&format!("CREATE DATABASE IF NOT EXISTS {database}"));
    }

    /// Runs statements.
    pub fn execute(&self, statement: &str) {
        let mut client = Command::new("mariadb");
        client
            .args(["--no-defaults", "--host=127.0.0.1"])
            .arg(format!("--port={}", self.port))
            .arg(format!("--user={}", Self::USER))
            .arg(format!("--password={}", Self::PASSWORD))
            .arg(format!("--execute={statement}"));
        process::run(client);
    }
}

fn server() -> &'static str {
    const PATH: &str = "/usr/sbin/mariadbd";
    assert!(fs::metadata(PATH).is_ok(), "MariaDB is not installed");
    PATH
}
