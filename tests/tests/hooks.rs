//! What waits keeps nobody waiting: fifty requests that wait in the same call take about as long as one, in one
//! process, and each gets its own answer.
#![forbid(unsafe_code)]

#[path = "hooks/functions.rs"]
mod functions;

use std::net::SocketAddr;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use surus_tests::fixture;
use surus_tests::http::Request;
use surus_tests::mariadb::MariaDb;
use surus_tests::parallel::together;
use surus_tests::postgres::Postgres;
use surus_tests::redis::Redis;
use surus_tests::slow::SlowServer;
use surus_tests::surus::{Mode, Surus};

const REQUESTS: usize = 50;

/// The server of this mode, for the whole test binary.
fn server(mode: Mode) -> SocketAddr {
    static SERVERS: [OnceLock<Surus>; 3] = [const { OnceLock::new() }; 3];
    let server = SERVERS[mode as usize].get_or_init(|| {
        let script = mode.script(&fixture("hooks"));
        Surus::serve(&script).mode(mode).start()
    });
    server.address()
}

/// Attempts: the machine may stand still in some of them.
const ATTEMPTS: usize = 12;

/// Sends one request, then fifty at once, whose `waits` are the time that nothing can shorten.
/// `parameters` go to the script; `answer` is what the request with this number must say.
fn check(
    mode: Mode,
    operation: &str,
    waits: Duration,
    parameters: &str,
    answer: fn(usize) -> String,
) {
    // These tests are about time: one at a time.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let address = server(mode);
    let ask = |number: usize| -> (String, String) {
        let target = format!("/?operation={operation}&id={number}&{parameters}");
        let text = Request::get(&target).send(address).expect(200).text();
        let (pid, said) = text
            .split_once(' ')
            .unwrap_or_else(|| panic!("{operation}: {text}"));
        (pid.to_owned(), said.to_owned())
    };

    let start = Instant::now();
    let (pid, said) = ask(1000);
    let alone = start.elapsed();
    assert_eq!(said, answer(1000), "{operation}");
    assert!(alone >= waits, "{operation} did not wait: {alone:?}");

    let mode = mode.name();
    let at_once = (0..ATTEMPTS).map(|_| {
        let (answers, took) = together(REQUESTS, ask);
        for (number, (worker, said)) in answers.into_iter().enumerate() {
            assert_eq!(said, answer(number), "{operation}");
            assert_eq!(worker, pid, "{operation}: another process answered");
        }
        println!("{mode} {operation}: one {alone:?}, {REQUESTS} at once {took:?}");
        took
    });
    assert!(
        at_once.into_iter().any(|took| took < alone * 3),
        "{mode} {operation}: one took {alone:?}, {REQUESTS} at once much longer"
    );
}

const HALF: Duration = Duration::from_millis(500);

fn port(port: u16) -> String {
    format!("port={port}")
}

fn mysql() -> String {
    let port = MariaDb::shared().port();
    format!(
        "port={port}&user={}&password={}",
        MariaDb::USER,
        MariaDb::PASSWORD
    )
}

fn slow() -> String {
    port(SlowServer::shared().port())
}

/// What the slow server says to a request for `/500/NUMBER`.
fn slow_answer(number: usize) -> String {
    format!("slow {number}")
}

/// Of a program that ends with the request's number.
fn exit_status(number: usize) -> String {
    (number % 256).to_string()
}

fn twice(number: usize) -> String {
    (number * 2).to_string()
}

/// A test for each operation, in each mode.
macro_rules! operations {
    ($($name:ident: $waits:expr, $parameters:expr, $answer:expr;)*) => {
        mod classic {
            use super::*;
            $(#[test] fn $name() { check(Mode::Classic, stringify!($name), $waits, &$parameters, $answer); })*
        }
        mod coroutine {
            use super::*;
            $(#[test] fn $name() { check(Mode::Coroutine, stringify!($name), $waits, &$parameters, $answer); })*
        }
    };
}

operations! {
    sleep: HALF * 2, "", |number| format!("0 {number}");
    usleep: HALF, "", |number| number.to_string();
    time_sleep_until: HALF, "", |number| format!("true {number}");
    time_nanosleep: HALF, "", |number| format!("true {number}");
    proc_close: HALF, "", exit_status;
    pclose: HALF, "", exit_status;
    exec: HALF, "", |number| number.to_string();
    pdo_pgsql: HALF, port(Postgres::shared().port()), twice;
    pgsql: HALF, port(Postgres::shared().port()), twice;
    pdo_mysql: HALF, mysql(), twice;
    mysqli: HALF, mysql(), twice;
    redis: HALF * 2, port(Redis::shared().port()), |number| format!("0 {number}");
    redis_pushed: HALF, port(Redis::shared().port()), |number| format!("item {number}");
    curl: HALF, slow(), slow_answer;
    curl_multi: HALF, slow(), |number| format!("slow {number}a, slow {number}b");
    file_get_contents: HALF, slow(), slow_answer;
    fsockopen: HALF, slow(), slow_answer;
    fgets: HALF, slow(), slow_answer;
    stream_select: HALF, slow(), slow_answer;
    timeout: HALF, slow(), |number| format!("0 true {number}");
    socket_recv: HALF, slow(), slow_answer;
    socket_accept: HALF, "", |number| format!("came {number}");
    stream_socket_accept: HALF, "", |number| format!("came {number}");
    socket_recvfrom: HALF, "", |number| format!("came {number}");
    socket_recvmsg: HALF, "", |number| format!("came {number}");
    socket_write: HALF, "", |number| format!("1000000 1000000 {number}");
    socket_send: HALF, "", |number| format!("1000000 1000000 {number}");
    socket_sendmsg: HALF, "", |number| format!("1000000 1000000 {number}");
    stream_fwrite: HALF, "", |number| format!("1000000 1000000 {number}");
    fwrite_to_program: HALF, "", |number| format!("1000000 1000000 {number}");
}
