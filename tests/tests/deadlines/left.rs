//! What clients that leave cost: nothing that stays.

use std::thread;
use std::time::Duration;

use surus_tests::http::{Connection, Request};
use surus_tests::surus::{Mode, Surus};
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

/// Each waits in another way, and has something to undo.
const WAITS: &str = r"
function wait(string $how): string
{
    $cycle = new ArrayObject();
    $cycle['self'] = $cycle;
    switch ($how) {
        case 'socket':
            [$one, $other] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
            return (string) fread($one, 10);

        case 'fiber':
            $fiber = new Fiber(function (): void {
                sleep(50);
                Fiber::suspend();
            });
            $fiber->start();
            return '';

        case 'output':
            return str_repeat('x', 1_000_000);

        default:
            try {
                sleep(50);
            } finally {
                usleep(1000);
            }
            return '';
    }
}
";

const HOW: [&str; 5] = ["socket", "fiber", "output", "sleep", "body"];
const CLIENTS: usize = 50;
/// Of a stage.
const ROUNDS: usize = 10;
/// How many were at work at a time decides what is kept for the next ones. Where the machine is slow there are more, so the
/// most is found out as it goes: memory has to stay as it is for so many stages in a row, sooner or later.
const WINDOW: usize = 4;
const STAGES: usize = 24;
/// Bytes. A leak of 130 for each client is more, in every window.
const NOISE: u64 = 256 * 1024;

/// They leave in the middle, all at once.
fn leave(server: &Surus, round: usize) {
    let clients: Vec<Connection> = (0..CLIENTS)
        .map(|number| {
            let how = HOW[(number + round) % HOW.len()];
            let request = match how {
                "body" => Request::post("/?how=body").body("text/plain", vec![b'x'; 100_000]),
                _ => Request::get(&format!("/?how={how}")),
            };
            let mut bytes = request.bytes(server.address());
            // Some have not said all.
            if how == "body" && number % 2 == 0 {
                bytes.truncate(60_000);
            }
            let mut connection = Connection::open(server.address()).expect("a connection");
            connection.write(&bytes).expect("a request");
            connection
        })
        .collect();
    thread::sleep(Duration::from_millis(10 + 7 * (round as u64 % 10)));
    drop(clients);
    wait_for("they do not end", || {
        let status = server.status();
        let workers = status["workers"].as_array().expect("workers");
        workers
            .iter()
            .all(|worker| worker["in_flight"].as_u64().unwrap_or(0) == 0)
    });
}

#[test]
fn clients_that_leave_leave_no_memory_behind() {
    for mode in Mode::ALL {
        let folder = TempDir::new("left");
        folder.file("wait.php", &format!("<?php {WAITS}"));
        folder.file(
            "index.php",
            "<?php require_once __DIR__ . '/wait.php'; echo wait($_GET['how']);",
        );
        folder.file(
            "app.php",
            "<?php require_once __DIR__ . '/wait.php'; return fn () => wait($_GET['how']);",
        );
        let processes = match mode {
            Mode::Process => "[app.app]\nprocesses = 8\n",
            _ => "",
        };
        let server = Surus::serve(&mode.script(folder.path()))
            .mode(mode)
            .cancel_on_disconnect()
            .config(processes);
        let mut server = server.start();
        let mut sizes = Vec::new();
        let settled = |sizes: &[u64]| {
            let before = sizes.len().checked_sub(WINDOW + 1);
            before.is_some_and(|at| sizes[sizes.len() - 1] <= sizes[at] + NOISE)
        };
        while !settled(&sizes) {
            assert!(sizes.len() < STAGES, "{mode:?} grows: {sizes:?}");
            for round in 0..ROUNDS {
                leave(&server, round);
            }
            sizes.push(server.process().memory());
        }
    }
}

/// After a burst of them a site has as much memory as before, but for what malloc and PHP have kept of it.
#[test]
fn a_classic_site_gives_back_what_a_burst_took() {
    let folder = TempDir::new("burst");
    folder.file(
        "index.php",
        "<?php $kept = str_repeat('x', 300_000); usleep(isset($_GET['long']) ? 60_000_000 : 0); echo 'hello';",
    );
    let mut server = Surus::serve(folder.path())
        .cancel_on_disconnect()
        .config("[app.app]\nmode = 'classic'\nisolates = { idle = '1s' }\n")
        .start();
    Request::get("/").send(server.address()).expect(200);
    let before = server.process().memory();
    let clients: Vec<Connection> = (0..60)
        .map(|_| {
            let mut connection = Connection::open(server.address()).expect("a connection");
            let request = Request::get("/?long").bytes(server.address());
            connection.write(&request).expect("a request");
            connection
        })
        .collect();
    server.wait_for_in_flight(60);
    let taken = server.process().memory() - before;
    assert!(taken > 20 << 20, "{taken}");
    drop(clients);
    let mut left = 0;
    wait_for("it is not given back", || {
        left = server.process().memory().saturating_sub(before);
        left < taken / 5
    });
}
