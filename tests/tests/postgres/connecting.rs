//! Ways to a server, and to be let in.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use surus_tests::http::encode;
use surus_tests::postgres::Postgres;
use surus_tests::surus::{Mode, Surus};
use surus_tests::waiting::wait_for;

use super::{ask, server};

fn connect(server: &Surus, to: &str) -> Value {
    ask(server, &format!("step=connect&token=t&to={}", encode(to)))
}

#[test]
fn passwords_are_proved() {
    let postgres = Postgres::shared();
    for (user, encryption) in [
        ("scram", "scram-sha-256"),
        ("hashed", "md5"),
        ("plain", "md5"),
    ] {
        postgres.execute(&format!(
            "SET password_encryption = '{encryption}'; CREATE ROLE {user} LOGIN PASSWORD 'päss ''wörd'"
        ));
    }
    postgres.execute(
        "DO $$ BEGIN EXECUTE format('COPY (SELECT unnest(ARRAY[''host all scram 127.0.0.1/32 scram-sha-256'', \
         ''host all hashed 127.0.0.1/32 md5'', ''host all plain 127.0.0.1/32 password'', ''host all all 127.0.0.1/32 trust'', \
         ''local all all trust''])) TO %L', current_setting('hba_file')); END $$",
    );
    postgres.execute("SELECT pg_reload_conf()");
    let server = server(Mode::Coroutine);
    let port = postgres.port();
    let base = format!("host=127.0.0.1 port={port} dbname=postgres");
    let deadline = Instant::now() + Duration::from_secs(30);
    for user in ["scram", "hashed", "plain"] {
        // The server reads its new rules when it comes to it.
        while connect(&server, &format!("{base} user={user} password=wrong"))["returned"]
            .is_object()
        {
            assert!(Instant::now() < deadline, "{user} is let in");
            thread::sleep(Duration::from_millis(50));
        }
        let right = connect(
            &server,
            &format!(r"{base} user={user} password='päss \'wörd'"),
        );
        assert_eq!(right["returned"]["name"], user, "{right}");
        let wrong = connect(&server, &format!("{base} user={user} password=wrong"));
        let message = wrong["message"].as_str().unwrap_or_default();
        assert!(
            message.contains("password authentication failed"),
            "{wrong}"
        );
        let none = connect(&server, &format!("{base} user={user}"));
        let message = none["message"].as_str().unwrap_or_default();
        assert!(message.contains("add password="), "{none}");
    }
    let url = format!("postgresql://scram:p%C3%A4ss%20%27w%C3%B6rd@127.0.0.1:{port}/postgres");
    assert_eq!(connect(&server, &url)["returned"]["name"], "scram");
    assert!(!server.log().contains("wörd"), "{}", server.log());
}

#[test]
fn names_and_unix_sockets() {
    let server = server(Mode::Coroutine);
    let port = Postgres::shared().port();
    let folder = ask(&server, "step=folder");
    let folder = folder["folder"].as_str().expect("a folder");
    for host in [folder, "localhost"] {
        let found = connect(&server, &format!("host={host} port={port} user=postgres"));
        assert_eq!(found["returned"]["token"], "t", "{found}");
    }
    let none = connect(&server, "host=no.such.host.invalid user=x");
    let message = none["message"].as_str().unwrap_or_default();
    assert!(
        message.starts_with("No connection to PostgreSQL at no.such.host.invalid:5432"),
        "{none}"
    );
}

/// With a certificate of its own, for `localhost`.
#[test]
fn connections_may_be_encrypted() {
    let database = Postgres::shared();
    let server = server(Mode::Coroutine);
    let folder = ask(&server, "step=folder");
    let folder = folder["folder"].as_str().expect("a folder");
    let roots = format!("sslrootcert={folder}/data/server.crt");
    let port = database.port();
    let connect = |host: &str, more: &str| {
        let to = format!("host={host} port={port} user=postgres {more}");
        connect(&server, &to)
    };
    let refused = |host: &str, more: &str, why: &str| {
        let found = connect(host, more);
        let message = found["message"].as_str().unwrap_or_default();
        assert!(message.contains(why), "{host} {more}: {found}");
    };
    refused("127.0.0.1", "sslmode=require", "it has no TLS");
    let plain = connect("127.0.0.1", "sslmode=prefer");
    assert_eq!(plain["returned"]["ssl"], false, "{plain}");
    database.execute(
        "COPY (SELECT 1) TO PROGRAM 'openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
         -subj /CN=localhost -addext basicConstraints=critical,CA:FALSE -addext subjectAltName=DNS:localhost \
         -keyout server.key -out server.crt 2>/dev/null && chmod 0600 server.key'",
    );
    database.execute("ALTER SYSTEM SET ssl = on");
    database.execute("SELECT pg_reload_conf()");
    wait_for("it has TLS", || {
        connect("127.0.0.1", "sslmode=require")["returned"]["ssl"] == true
    });
    for (host, more) in [
        ("127.0.0.1", "sslmode=prefer application_name=other"),
        ("127.0.0.1", &format!("sslmode=require {roots}")),
        ("127.0.0.1", &format!("sslmode=verify-ca {roots}")),
        ("localhost", &format!("sslmode=verify-full {roots}")),
    ] {
        let found = connect(host, more);
        assert_eq!(found["returned"]["ssl"], true, "{host} {more}: {found}");
        assert_eq!(found["returned"]["long"], 300_000, "{host} {more}: {found}");
    }
    assert_eq!(connect("127.0.0.1", "")["returned"]["ssl"], false);
    let other = format!("sslmode=verify-full {roots}");
    refused("127.0.0.1", &other, "certificate");
    refused("localhost", "sslmode=verify-full", "certificate");
    refused("localhost", "sslmode=verify-ca", "certificate");
    refused(
        "localhost",
        "sslmode=verify-ca sslrootcert=/nowhere",
        "/nowhere",
    );
    refused(
        "localhost",
        "sslmode=sometimes",
        "sslmode=sometimes is not known",
    );
}
