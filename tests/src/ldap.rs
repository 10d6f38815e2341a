//! An LDAP server: OpenLDAP's slapd with a small directory.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::process::Command;
use std::sync::OnceLock;

use nix::sys::signal::Signal;

use crate::ports;
use crate::process::{self, Process};
use crate::temp::TempDir;

#[derive(Debug)]
pub struct Ldap {
    port: u16,
    _process: Process,
    _folder: TempDir,
}

impl Ldap {
    /// The top of the directory. Below it are `cn=user0` to `cn=user9`, each a `person` whose `sn` is its number and whose
    /// password is `elephant`.
    pub const BASE: &'static str = "dc=surus,dc=test";
    /// Who may do everything.
    pub const ADMIN: &'static str = "cn=admin,dc=surus,dc=test";
    pub const PASSWORD: &'static str = "elephant";
    pub const USERS: usize = 10;

    /// The test binary's server.
    pub fn shared() -> &'static Self {
        static SERVER: OnceLock<Ldap> = OnceLock::new();
        SERVER.get_or_init(Self::start)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// A server of one's own, which ends with its value.
    pub fn start() -> Self {
        let folder = TempDir::new("ldap");
        let data = folder.folder("data");
        let config = folder.file(
            "slapd.conf",
            &format!(
                "include /etc/ldap/schema/core.schema\n\
                 pidfile {pid}\n\
                 modulepath /usr/lib/ldap\n\
                 moduleload back_mdb\n\
                 database mdb\n\
                 maxsize 16777216\n\
                 dbnosync\n\
                 suffix \"{base}\"\n\
                 rootdn \"{admin}\"\n\
                 rootpw {password}\n\
                 directory {data}\n",
                pid = folder.path().join("pid").display(),
                base = Self::BASE,
                admin = Self::ADMIN,
                password = Self::PASSWORD,
                data = data.display(),
            ),
        );
        let entries = folder.file("entries.ldif", &entries());
        let mut add = Command::new(program("slapadd"));
        add.arg("-f").arg(&config).arg("-l").arg(&entries);
        process::run(add);

        let port = ports::free();
        let mut command = Command::new(program("slapd"));
        command
            .args(["-h", &format!("ldap://127.0.0.1:{port}/")])
            .arg("-f")
            .arg(&config)
            // Any level of debugging keeps it in the foreground.
            .args(["-d", "0"]);
        let mut process = Process::start("slapd", command, Signal::SIGKILL, folder.path());
        process.wait_until(|_| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok());
        Self {
            port,
            _process: process,
            _folder: folder,
        }
    }
}

fn entries() -> String {
    let base = Ldap::BASE;
    let mut text = format!(
        "dn: {base}\nobjectClass: dcObject\nobjectClass: organization\ndc: surus\no: Surus\n\n"
    );
    for number in 0..Ldap::USERS {
        text.push_str(&format!(
            "dn: cn=user{number},{base}\nobjectClass: person\ncn: user{number}\nsn: {number}\nuserPassword: {}\n\n",
            Ldap::PASSWORD
        ));
    }
    text
}

/// Debian keeps slapd's programs out of the PATH of ordinary users.
fn program(name: &str) -> String {
    let path = format!("/usr/sbin/{name}");
    assert!(fs::metadata(&path).is_ok(), "slapd is not installed");
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found() {
        let server = Ldap::start();
        let output = Command::new("ldapsearch")
            .args(["-x", "-LLL", "-b", Ldap::BASE, "(cn=user7)", "sn"])
            .args(["-H", &format!("ldap://127.0.0.1:{}/", server.port())])
            .output()
            .expect("ldapsearch is installed");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("sn: 7"), "{text}");
    }
}
