//! Functions of PHP that Swoole or TrueAsync names: while a request waits in one of them, the same process serves another
//! one, and nothing but that one ends the wait. docs/internals/hooked-functions.md has all of their functions.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::OnceLock;
use std::thread;

use socket2::{Domain, SockAddr, Socket, Type};
use surus_tests::fixture;
use surus_tests::gate::Gate;
use surus_tests::http::{encode, Request};
use surus_tests::mariadb::MariaDb;
use surus_tests::parallel::together;
use surus_tests::postgres::Postgres;
use surus_tests::surus::{Mode, Surus};
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

/// The server of this mode, for the whole test binary.
fn server(mode: Mode) -> SocketAddr {
    static SERVERS: [OnceLock<Surus>; 3] = [const { OnceLock::new() }; 3];
    let server = SERVERS[mode as usize].get_or_init(|| {
        let folder = fixture("hooked");
        let mailer = folder.join("mailer.sh");
        let config = format!("[php]\nsendmail_path = \"sh {}\"\n", mailer.display());
        Surus::serve(&mode.script(&folder))
            .mode(mode)
            .config(&config)
            .start()
    });
    server.address()
}

/// Two requests to one worker: one that waits in a function, and another one.
struct Case<'a> {
    mode: Mode,
    function: &'a str,
    folder: TempDir,
    port: u16,
}

impl<'a> Case<'a> {
    fn new(mode: Mode, function: &'a str, port: u16) -> Self {
        let folder = TempDir::new(function);
        Self {
            mode,
            function,
            folder,
            port,
        }
    }

    /// What both of them know, and nobody else.
    fn word(&self) -> String {
        format!("{}-{}", self.mode.name(), self.function)
    }

    fn file(&self, ending: &str) -> std::path::PathBuf {
        self.folder.path().join(format!("at{ending}"))
    }

    /// The worker's process, and what the request says.
    fn ask(&self, part: &str) -> (String, String) {
        let Self { function, port, .. } = self;
        let (place, word) = (self.file(""), self.word());
        let place = encode(place.to_str().expect("UTF-8"));
        let (user, password) = (MariaDb::USER, MariaDb::PASSWORD);
        let target = format!(
            "/?part={part}&function={function}&place={place}&word={word}&port={port}&user={user}&password={password}"
        );
        let text = Request::get(&target).send(server(self.mode)).text();
        let (pid, said) = text
            .split_once(' ')
            .unwrap_or_else(|| panic!("{function}: {text}"));
        (pid.to_owned(), said.to_owned())
    }

    /// Has one request wait in the function until `end` returns, which is called once it is about to; `end` is told whether
    /// the request has ended too early, and returns the process that has served others meanwhile.
    fn wait_until(&self, end: impl FnOnce(&dyn Fn() -> bool) -> String) {
        thread::scope(|scope| {
            let waiting = scope.spawn(|| self.ask("wait"));
            let is_over = || waiting.is_finished();
            wait_for("the request does not begin", || {
                self.file(".ready").exists() || is_over()
            });
            let pid = (!is_over()).then(|| end(&is_over));
            let (worker, said) = waiting.join().expect("an answer");
            assert_eq!(said, self.word(), "{}", self.word());
            assert_eq!(pid, Some(worker), "{}: another process", self.word());
        });
    }
}

/// Another request does what the first one waits for.
fn ended_by_another(mode: Mode, function: &str) {
    let case = Case::new(mode, function, 0);
    case.wait_until(|_| {
        let (pid, said) = case.ask("other");
        assert_eq!(said, case.word(), "{}, the other one", case.word());
        pid
    });
}

/// What a server answers is held back until another request has been served.
fn ended_by_a_server(mode: Mode, function: &str) {
    let port = match function.contains("mysql") {
        true => MariaDb::shared().port(),
        false => Postgres::shared().port(),
    };
    let gate = Gate::start(port);
    let case = Case::new(mode, function, gate.port());
    case.wait_until(|is_over| {
        gate.close();
        fs::write(case.file(".go"), "").expect("a sign");
        wait_for("it asks the server nothing", || gate.holds() || is_over());
        let (pid, _) = case.ask("tick");
        gate.open();
        pid
    });
}

/// A Unix socket with no room for another client, until somebody is taken from its queue.
fn full(path: &Path) -> (Socket, UnixStream) {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None).expect("a socket");
    let address = SockAddr::unix(path).expect("an address");
    socket.bind(&address).expect("bind");
    socket.listen(0).expect("listen");
    (socket, UnixStream::connect(path).expect("the first client"))
}

fn connects(mode: Mode) {
    let case = Case::new(mode, "socket_connect", 0);
    let (socket, _first) = full(&case.file(".sock"));
    case.wait_until(|_| {
        let (pid, _) = case.ask("tick");
        socket.accept().expect("the first client");
        pid
    });
}

/// They wait for nothing but a disk; each request has its own.
fn works_side_by_side(mode: Mode, function: &str) {
    let case = Case::new(mode, function, 0);
    let (answers, _) = together(8, |number| case.ask(&format!("side{number}")));
    for (number, (pid, said)) in answers.iter().enumerate() {
        assert_eq!(*said, format!("side{number}"), "{}", case.word());
        assert_eq!(*pid, answers[0].0, "{}: another process", case.word());
    }
}

/// A test for each function, in each mode.
macro_rules! functions {
    ($($check:ident { $($name:ident;)* })*) => {
        mod classic {
            use super::*;
            #[test] fn socket_connect() { connects(Mode::Classic); }
            $($(#[test] fn $name() { $check(Mode::Classic, stringify!($name)); })*)*
        }
        mod coroutine {
            use super::*;
            #[test] fn socket_connect() { connects(Mode::Coroutine); }
            $($(#[test] fn $name() { $check(Mode::Coroutine, stringify!($name)); })*)*
        }
    };
}

functions! {
    ended_by_another {
        fopen;
        fread;
        fgets;
        fgetc;
        fgetcsv;
        fscanf;
        stream_get_line;
        stream_get_contents;
        stream_copy_to_stream;
        fpassthru;
        readfile;
        file;
        file_get_contents;
        file_put_contents;
        copy;
        spl_file_object;
        fwrite;
        fputcsv;
        exec;
        shell_exec;
        system;
        passthru;
        popen;
        proc_open;
        proc_get_status;
        proc_terminate;
        mail;
        socket_accept;
        socket_read;
        socket_recvfrom;
        socket_select;
        stream_select;
        stream_socket_pair;
        stream_socket_recvfrom;
        udp;
        unix;
        udg;
        ssl;
        tls;
        pdo_sqlite;
    }
    ended_by_a_server {
        pdo_mysql_connect;
        pdo_mysql_prepare;
        pdo_mysql_exec;
        pdo_mysql_execute;
        pdo_mysql_fetch;
        pdo_pgsql_connect;
        pdo_pgsql_exec;
        pdo_pgsql_execute;
        pdo_pgsql_fetch;
        mysqli_connect;
        mysqli_query;
        mysqli_prepare;
        mysqli_stmt_execute;
        mysqli_fetch;
        pg_connect;
        pg_query;
        pg_prepare;
        pg_execute;
    }
    works_side_by_side {
        local_files;
        folders;
    }
}
