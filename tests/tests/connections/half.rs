//! Exchanges of more than one call on what requests share: nobody gets in between, and nobody is told without need.

use std::fs;

use surus_tests::memcached::Memcached;
use surus_tests::surus::{Mode, Surus};

use super::shared::{answer, expect_in_use, get, start};
use super::{port, server};

fn query(client: &str) -> String {
    let port = match client {
        "memcached" => Memcached::shared().port(),
        "sqlite_bind" | "sqlite_read" => 0,
        _ => port(client),
    };
    format!("case=half&client={client}&port={port}")
}

fn go_on(server: &Surus, id: &str) {
    fs::write(server.folder().join(format!("{id}.go")), "").expect("a sign");
}

/// Whoever comes in between is told, the first one goes on undisturbed, and who comes later is not told.
fn check(client: &str, class: &str) {
    let server = server(Mode::Coroutine, "").start();
    let query = query(client);
    let bob = || get(&server, &format!("/users?{query}&word=bob&id=&seconds=0"));
    for round in 0..3 {
        let id = format!("alice{round}");
        let alice = start(
            &server,
            &format!("/orders?{query}&word={id}&seconds=0"),
            &id,
        );
        expect_in_use(&bob(), class);
        go_on(&server, &id);
        assert_eq!(answer(alice), id, "{client}");
        assert_eq!(bob(), "bob", "{client}, after its end");
        // One that ends in the middle of it.
        let left = get(
            &server,
            &format!("/orders?{query}&word=left&id=left{round}&seconds=forget"),
        );
        assert_eq!(left, "left");
        assert_eq!(bob(), "bob", "{client}, after one that has left");
    }
}

macro_rules! exchanges {
    ($($name:ident: $class:expr;)*) => {
        $(#[test] fn $name() { check(stringify!($name), $class); })*
    };
}

exchanges! {
    memcached: "Memcached";
    mysqli_async: "mysqli";
    mysqli_unbuffered: "mysqli";
    mysqli_bind: "mysqli_stmt";
    pdo_mysql_unbuffered: "PDO";
    pdo_mysql_bind: "PDOStatement";
    pgsql_send: "PgSql\\Connection";
    pgsql_bind: "PDOStatement";
    pgsql_execute: "PDOStatement";
    curl: "CurlHandle";
    sqlite_bind: "SQLite3Stmt";
    redis_multi: "Redis";
    redis_pipeline: "Redis";
    redis_watch: "Redis";
}

/// Also by who has not asked, and only reads.
#[test]
fn rows_that_foreach_reads_are_of_who_asked() {
    for (client, class) in [
        ("pgsql_foreach", "PDOStatement"),
        ("mysqli_foreach", "mysqli_result"),
    ] {
        let server = server(Mode::Coroutine, "").start();
        let query = query(client);
        for round in 0..3 {
            let id = format!("alice{round}");
            let target = format!("/orders?{query}&word={id}&seconds=0");
            let alice = start(&server, &target, &id);
            let bob = get(&server, &format!("/users?{query}&word=bob&id=&seconds=0"));
            expect_in_use(&bob, class);
            go_on(&server, &id);
            assert_eq!(answer(alice), id, "{client}");
        }
    }
}

/// A statement whose user has had what it wanted is free, but is not read on by that one.
#[test]
fn a_statement_that_was_read_is_free() {
    check_read("pgsql_read", "PDOStatement");
    check_read("pgsql_iterate", "PDOStatement");
    check_read("sqlite_read", "SQLite3Result");
}

fn check_read(client: &str, class: &str) {
    let server = server(Mode::Coroutine, "").start();
    let query = query(client);
    let bob = || get(&server, &format!("/users?{query}&word=bob&id=&seconds=0"));
    for (round, bob_comes) in [false, true, false, true].into_iter().enumerate() {
        let id = format!("alice{round}");
        let alice = start(
            &server,
            &format!("/orders?{query}&word={id}&seconds=0"),
            &id,
        );
        if bob_comes {
            assert_eq!(bob(), "bob");
        }
        go_on(&server, &id);
        let text = answer(alice);
        if bob_comes {
            let told = format!("in use: {class} is in use by another request, which has executed it since: GET /orders");
            assert!(text.starts_with(&told), "{text}");
        } else {
            assert_eq!(text, id);
        }
    }
}
