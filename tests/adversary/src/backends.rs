//! The servers that PHP talks to, each behind a proxy, and how they go away.

use std::{cell::RefCell, io, process::Stdio, rc::Rc, time::Duration};

use nix::sys::signal::Signal;
use surus_tests::{
    ldap::Ldap,
    mariadb::MariaDb,
    memcached::Memcached,
    nginx, ports,
    postgres::Postgres,
    process::{self, Process},
    redis::Redis,
    temp::TempDir,
};
use tokio::{process::Command, time::sleep};

use crate::{
    echo,
    operation::Backend,
    proxy::{Proxy, Weather},
};

pub(crate) struct Backends {
    proxies: Vec<Rc<Proxy>>,
    memcached: RefCell<Memcached>,
    ldap: RefCell<Ldap>,
    _tls: (Process, TempDir),
}

impl Backends {
    pub(crate) async fn start(seed: u64) -> io::Result<Rc<Backends>> {
        let memcached = Memcached::start();
        let ldap = Ldap::start();
        let (tls, tls_port) = tls();
        let mut proxies = Vec::new();
        for backend in Backend::ALL {
            let port = match backend {
                Backend::Pgsql => Postgres::shared().port(),
                Backend::Mysql => MariaDb::shared().port(),
                Backend::Redis => Redis::shared().port(),
                Backend::Memcached => memcached.port(),
                Backend::Ldap => ldap.port(),
                Backend::Http => echo::http().await?,
                Backend::Tls => tls_port,
                Backend::Lines => echo::lines().await?,
            };
            proxies.push(Proxy::start(port, seed ^ backend as u64).await?);
        }
        let backends = Rc::new(Backends {
            proxies,
            memcached: RefCell::new(memcached),
            ldap: RefCell::new(ldap),
            _tls: tls,
        });
        psql("CREATE TABLE ledger (token text)").await?;
        MariaDb::shared().create("adversary");
        mariadb("CREATE TABLE adversary.ledger (token text) ENGINE=InnoDB").await?;
        Ok(backends)
    }

    pub(crate) fn proxy(&self, backend: Backend) -> &Rc<Proxy> {
        &self.proxies[backend as usize]
    }

    pub(crate) fn set_weather(&self, weather: Weather) {
        for proxy in &self.proxies {
            proxy.set_weather(weather);
        }
    }

    /// What PHP finds in its environment.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (String, String)> + '_ {
        Backend::ALL.into_iter().map(|backend| {
            let name = format!("ADVERSARY_{}", backend.name());
            (name, self.proxy(backend).port().to_string())
        })
    }

    /// Every server ends the connections of its users, each in its own way.
    pub(crate) async fn kill_connections(&self) -> io::Result<()> {
        psql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
        )
        .await?;
        let list = mariadb(
            "SELECT CONCAT('KILL ', id, ';') FROM information_schema.processlist WHERE db = 'adversary'",
        )
        .await?;
        for kill in list.lines() {
            // It may have ended by itself.
            let _ = mariadb(kill).await;
        }
        let port = Redis::shared().port().to_string();
        let kill = ["-p", &port, "CLIENT", "KILL", "TYPE", "normal"];
        output(Command::new("redis-cli").args(kill)).await?;
        // These have no such command.
        for backend in [
            Backend::Memcached,
            Backend::Ldap,
            Backend::Http,
            Backend::Tls,
            Backend::Lines,
        ] {
            self.proxy(backend).reset_all();
        }
        Ok(())
    }

    /// The servers are not there for a moment. What is quick to start is really another one afterwards.
    pub(crate) async fn restart(&self) {
        for proxy in &self.proxies {
            proxy.set_weather(Weather::Down);
            proxy.reset_all();
        }
        sleep(Duration::from_millis(60)).await;
        // The old ones end with their values.
        self.memcached.replace(Memcached::start());
        self.ldap.replace(Ldap::start());
        self.proxy(Backend::Memcached)
            .set_target(self.memcached.borrow().port());
        self.proxy(Backend::Ldap)
            .set_target(self.ldap.borrow().port());
        self.set_weather(Weather::Choppy);
    }

    /// Rows of transactions that nobody should have committed.
    pub(crate) async fn ledgers(&self) -> io::Result<String> {
        let pgsql = psql("SELECT token FROM ledger LIMIT 3").await?;
        let mysql = mariadb("SELECT token FROM adversary.ledger LIMIT 3").await?;
        Ok(format!("{} {}", pgsql.trim(), mysql.trim()))
    }

    pub(crate) async fn clear_ledgers(&self) -> io::Result<()> {
        psql("DELETE FROM ledger").await?;
        mariadb("DELETE FROM adversary.ledger").await.map(drop)
    }
}

async fn psql(statement: &str) -> io::Result<String> {
    let port = Postgres::shared().port().to_string();
    let to = ["-h", "127.0.0.1", "-p", &port, "-U", "postgres"];
    let mut command = Command::new("psql");
    output(
        command
            .args(to)
            .args(["-X", "-q", "-A", "-t", "-c", statement]),
    )
    .await
}

async fn mariadb(statement: &str) -> io::Result<String> {
    output(
        Command::new("mariadb")
            .args(["--no-defaults", "--host=127.0.0.1", "--skip-column-names"])
            .arg(format!("--port={}", MariaDb::shared().port()))
            .arg(format!("--user={}", MariaDb::USER))
            .arg(format!("--password={}", MariaDb::PASSWORD))
            .arg(format!("--execute={statement}")),
    )
    .await
}

async fn output(command: &mut Command) -> io::Result<String> {
    let output = command.stdin(Stdio::null()).output().await?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(io::Error::other(format!("{command:?}: {text}")))
}

/// nginx, which repeats a word of the URL; and its port.
fn tls() -> ((Process, TempDir), u16) {
    let folder = TempDir::new("tls");
    let path = |name: &str| folder.path().join(name);
    let mut make = std::process::Command::new("openssl");
    make.args(["req", "-x509", "-nodes", "-newkey", "ec"])
        .args(["-pkeyopt", "ec_paramgen_curve:P-256"])
        .args(["-days", "2", "-subj", "/CN=127.0.0.1"])
        .arg("-keyout")
        .arg(path("key"))
        .arg("-out")
        .arg(path("certificate"));
    process::run(make);
    let port = ports::free();
    let server = format!(
        "    default_type text/plain;
    server {{
        listen 127.0.0.1:{port} ssl;
        ssl_certificate {};
        ssl_certificate_key {};
        location / {{ return 200 $arg_word; }}
    }}",
        path("certificate").display(),
        path("key").display()
    );
    let configuration = nginx::configuration(folder.path(), &server);
    let file = folder.file("nginx.conf", &configuration);
    let mut command = std::process::Command::new("nginx");
    command.arg("-c").arg(file).arg("-e").arg(path("error"));
    let mut process = Process::start("nginx", command, Signal::SIGTERM, folder.path());
    process.wait_until(|_| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    ((process, folder), port)
}
