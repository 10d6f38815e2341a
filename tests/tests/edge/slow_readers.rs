//! Very many clients that do not read: what waits for them is bounded in memory, then in files, and nobody fails for it.

use surus_tests::http::Connection;
use surus_tests::http2::{self, Client};
use surus_tests::surus::{Mode, Surus};
use surus_tests::waiting::wait_for;

use super::{get, server};

const MEGABYTE: usize = 1 << 20;

/// A site or application whose responses may take so much memory and disk.
fn bounded(mode: Mode, memory: &str, disk: &str) -> Surus {
    let processes = match mode {
        Mode::Process => "processes = 4\n",
        Mode::Classic | Mode::Coroutine => "",
    };
    let config = format!(
        "[server]\nworkers = 1\nwrite_timeout = \"60s\"\n[app.app]\n{processes}\
         response_memory = \"{memory}\"\nresponse_disk = \"{disk}\"\nmemory_limit = \"512M\"\n"
    );
    server(mode, &config).start()
}

/// Clients that have asked for a megabyte each and take little of it.
fn readers(server: &Surus, count: usize) -> Vec<Connection> {
    let request = b"GET /large?kilobytes=1024 HTTP/1.1\r\nHost: a\r\n\r\n";
    (0..count)
        .map(|_| {
            let mut client = Connection::open_narrow(4096, server.address()).expect("a connection");
            client.write(request).expect("write");
            client
        })
        .collect()
}

fn expect_whole(client: &mut Connection) {
    let response = client.response("GET").expect("an answer").expect(200);
    assert_eq!(response.body.len(), MEGABYTE);
    let mut pieces = response.body.chunks_exact(16);
    assert!(pieces.all(|piece| piece == b"0123456789abcdef"));
}

#[test]
fn a_thousand_slow_readers_cost_little_in_every_mode() {
    for mode in Mode::ALL {
        let mut server = bounded(mode, "16M", "4G");
        get(&server, "/").expect(200);
        let before = server.process().memory();
        let mut clients = readers(&server, 1000);
        // Behind all of them: by then each request has begun.
        get(&server, "/").expect(200);
        wait_for("not all have their responses", || {
            server.status()["workers"][0]["in_flight"] == 0
        });
        let growth = server.process().memory().saturating_sub(before) / MEGABYTE as u64;
        println!("{mode:?}: {growth} MB for a thousand responses of a megabyte");
        // What was said, and what is on the way to each socket.
        assert!(growth < 16 + 150, "{mode:?}: {growth} MB");
        for client in clients.iter_mut().step_by(25) {
            expect_whole(client);
        }
        drop(clients);
        get(&server, "/").expect(200);
    }
}

#[test]
fn a_thousand_slow_streams_of_http_2_cost_little() {
    const CONNECTIONS: usize = 10;
    for mode in Mode::ISOLATES {
        let mut server = bounded(mode, "16M", "4G");
        get(&server, "/").expect(200);
        let before = server.process().memory();
        let requests: Vec<u8> = (1..200)
            .step_by(2)
            .flat_map(|stream| http2::get(stream, "/large?kilobytes=1024"))
            .collect();
        let mut clients: Vec<Client> = (0..CONNECTIONS)
            .map(|_| {
                let mut client = Client::open(server.address()).expect("a connection");
                client.write(&requests).expect("write");
                client
            })
            .collect();
        for client in &mut clients {
            for _ in 0..100 {
                client.next(http2::HEADERS).expect("a head");
            }
        }
        let growth = server.process().memory().saturating_sub(before) / MEGABYTE as u64;
        println!("{mode:?}: {growth} MB for a thousand streams of a megabyte");
        assert!(growth < 16 + 150, "{mode:?}: {growth} MB");
        get(&server, "/").expect(200);
    }
}

/// Beyond both bounds PHP waits for its client: all get what they have asked for.
#[test]
fn what_has_no_room_waits() {
    for mode in Mode::ISOLATES {
        let server = bounded(mode, "4M", "4M");
        let mut clients = readers(&server, 50);
        get(&server, "/").expect(200);
        for client in &mut clients {
            expect_whole(client);
        }
        get(&server, "/").expect(200);
    }
}
