//! HTTP/2: what is promised of HTTP/1, and what only HTTP/2 can be asked for.

use std::fs;
use std::io;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use surus_tests::http::Connection;
use surus_tests::http2::{self, frame, Client, Frame};
use surus_tests::surus::{Mode, Surus};

use super::{get, server};

fn curl(server: &Surus, arguments: &[&str], target: &str) -> Output {
    Command::new("curl")
        .args(["-sS", "--http2-prior-knowledge", "--max-time", "30"])
        .args(arguments)
        .arg(format!("http://{}{target}", server.address()))
        .output()
        .expect("curl")
}

/// The status of the answer.
fn status(server: &Surus, arguments: &[&str], target: &str) -> String {
    let asked = [&["-o", "/dev/null", "-w", "%{http_code}"], arguments].concat();
    String::from_utf8_lossy(&curl(server, &asked, target).stdout).into_owned()
}

#[test]
fn by_prior_knowledge() {
    for mode in Mode::ISOLATES {
        let server = server(mode, "").start();
        let vars = curl(&server, &[], "/vars");
        let vars: serde_json::Value = serde_json::from_slice(&vars.stdout).expect("JSON");
        assert_eq!(vars["SERVER_PROTOCOL"], "HTTP/2.0");
        assert_eq!(vars["HTTP_HOST"], server.address().to_string());
        let large = curl(&server, &[], "/print?kilobytes=4096");
        assert_eq!(large.stdout.len(), 4 << 20);
        let file = server.folder().join("upload");
        fs::write(&file, vec![b'x'; 3_000_000]).expect("write");
        let from = format!("@{}", file.display());
        let body = curl(&server, &["--data-binary", &from], "/body");
        let body: serde_json::Value = serde_json::from_slice(&body.stdout).expect("JSON");
        assert_eq!(body["length"], 3_000_000);
        let head = curl(
            &server,
            &["-o", "/dev/null", "-w", "%{http_code} %{http_version}"],
            "/status?code=404",
        );
        assert_eq!(head.stdout, b"404 2");
    }
}

#[test]
fn early_hints() {
    for mode in Mode::ISOLATES {
        let server = server(mode, "").start();
        let page = |target: &str| {
            let output = Command::new("nghttp")
                .args(["-v", "--timeout=30"])
                .arg(format!("http://{}{target}", server.address()))
                .output()
                .expect("nghttp");
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let seen = page("/hints");
        let (before, after) = seen.split_once(":status: 200").expect("a page");
        assert_eq!(before.matches(":status: 103").count(), 1, "{seen}");
        let link = "link: </style.css>; rel=preload; as=style";
        assert!(before.contains(link) && after.contains(link), "{seen}");
        assert!(!before.contains("date: "), "{seen}");
        assert!(
            after.contains("x-sent: 1") && after.contains("page"),
            "{seen}"
        );
        // Several, each with what was known by then; none once the page has begun; and not without end.
        for (times, sent) in [(3, 3), (20, 16)] {
            let seen = page(&format!("/hints/many?times={times}"));
            let (before, after) = seen.split_once(":status: 200").expect("a page");
            assert_eq!(before.matches(":status: 103").count(), sent, "{seen}");
            for i in 0..sent {
                assert!(before.contains(&format!("link: </{i}.css>")), "{seen}");
            }
            let mut said = vec!["1"; sent];
            said.resize(times, "3");
            assert!(after.contains(&format!("{};", said.join(","))), "{seen}");
            assert!(!after.contains(":status:"), "{seen}");
        }
        let body = curl(&server, &[], "/hints/many?times=2");
        assert_eq!(String::from_utf8_lossy(&body.stdout), "1,1;3");
    }
}

/// A proxy before the server may have looked at the one, and the application at the other.
#[test]
fn a_request_has_one_host() -> io::Result<()> {
    let server = server(Mode::Coroutine, "").start();
    for (host, status) in [("a", 200), ("b", 400)] {
        let mut client = Client::open(server.address())?;
        let head = http2::head("GET", "/", &[("host", host)]);
        client.send(http2::HEADERS, http2::END_STREAM, 1, &head)?;
        client.send(http2::CONTINUATION, http2::END_HEADERS, 1, &[])?;
        let seen = client.next(http2::HEADERS)?.status();
        assert_eq!(seen, Some(status), "{host}");
    }
    Ok(())
}

#[test]
fn responses_without_a_body_have_none() {
    for mode in Mode::ISOLATES {
        let server = server(mode, "").start();
        for (arguments, target, said) in [
            (&[][..], "/status?code=204&text=not+this", "204 0"),
            (&[], "/status?code=204&text=not+this&flush=1", "204 0"),
            (&[], "/status?code=205&text=not+this", "205 0"),
            (&[], "/status?code=205&text=not+this&flush=1", "205 0"),
            (&[], "/status?code=304&text=not+this", "304 0"),
            (&[], "/status?code=304&text=not+this&flush=1", "304 0"),
            (&["-I"], "/print?kilobytes=1024", "200 0"),
            (&["-I"], "/", "200 0"),
            (&[], "/", "200 5"),
        ] {
            let format = ["-o", "/dev/null", "-w", "%{http_code} %{size_download}"];
            let output = curl(&server, &[&format, arguments].concat(), target);
            assert!(output.status.success(), "{target}: {output:?}");
            assert_eq!(String::from_utf8_lossy(&output.stdout), said, "{target}");
        }
    }
}

/// Who passes a response on with the length that it announces must not be led to another one.
#[test]
fn the_length_is_what_is_sent() {
    for mode in Mode::ISOLATES {
        let server = server(mode, "").start();
        let whole = curl(&server, &[], "/length?say=5&flush=1");
        assert_eq!(whole.stdout, b"hello");
        let longer = curl(&server, &[], "/length?say=3&flush=1");
        assert!(longer.status.success(), "{longer:?}");
        assert_eq!(longer.stdout, b"hel");
        let shorter = curl(&server, &[], "/length?say=9&flush=1");
        assert!(!shorter.status.success(), "{shorter:?}");
        // It is the stream that ends: the connection serves others.
        let url = format!("http://{}/", server.address());
        let both = curl(&server, &[&url], "/length?say=9&flush=1");
        assert!(both.stdout.starts_with(b"hello"), "{both:?}");
    }
}

/// What concerns a connection of HTTP/1 would make the whole response malformed.
#[test]
fn headers_of_connections_are_left_out() {
    let server = server(Mode::Coroutine, "").start();
    for header in [
        "Keep-Alive: timeout%3D5",
        "Upgrade: h2c",
        "Proxy-Connection: close",
        "Te: gzip",
    ] {
        let target = format!("/type?type=text/x-own&times=1&header={header}").replace(' ', "%20");
        let output = curl(&server, &["-i"], &target);
        let seen = String::from_utf8_lossy(&output.stdout).to_lowercase();
        let (name, _) = header.split_once(':').expect("a header");
        assert!(seen.starts_with("http/2 200"), "{seen}");
        assert!(seen.contains("content-type: text/x-own"), "{seen}");
        assert!(
            !seen.contains(&format!("\n{}:", name.to_lowercase())),
            "{seen}"
        );
    }
}

#[test]
fn heads_and_bodies_are_bounded() {
    let config = "[server]\nmax_header = \"16K\"\nmax_headers = 20\nbody_timeout = \"5s\"\n[app.app]\nmax_body = \"40K\"\n";
    for mode in Mode::ISOLATES {
        let server = server(mode, config).start();
        let header = |count: usize, bytes: usize| {
            let value = "x".repeat(bytes);
            let headers: Vec<_> = (0..count).map(|i| format!("X-{i}: {value}")).collect();
            let arguments: Vec<_> = headers.iter().flat_map(|header| ["-H", header]).collect();
            status(&server, &arguments, "/")
        };
        assert_eq!(header(15, 900), "200");
        assert_eq!(header(25, 1), "431");
        assert_eq!(header(10, 2000), "431");
        for (size, expected) in [(30_000, 200), (60_000, 413)] {
            let body = vec![b'x'; size];
            for announced in [true, false] {
                let mut client = Client::open(server.address()).expect("a connection");
                let length = size.to_string();
                let length = [("content-length", length.as_str())];
                let headers = if announced { &length[..] } else { &[] };
                let head = http2::head("POST", "/body", headers);
                let mut bytes = frame(http2::HEADERS, http2::END_HEADERS, 1, &head);
                for part in body.chunks(10_000) {
                    bytes.extend(frame(http2::DATA, 0, 1, part));
                }
                bytes.extend(frame(http2::DATA, http2::END_STREAM, 1, b""));
                client.write(&bytes).expect("write");
                let head = client.next(http2::HEADERS).expect("an answer");
                assert_eq!(head.status(), Some(expected), "{size} {announced}");
                // The others of the connection are not concerned.
                client.get(3, "/").expect("write");
                while client.next(http2::HEADERS).expect("an answer").stream != 3 {}
            }
        }
        let mut slow = Client::open(server.address()).expect("a connection");
        let head = http2::head("POST", "/body", &[]);
        slow.send(http2::HEADERS, http2::END_HEADERS, 1, &head)
            .expect("write");
        slow.send(http2::DATA, 0, 1, b"begun").expect("write");
        let head = slow.next(http2::HEADERS).expect("an answer");
        assert_eq!(head.status(), Some(408));
    }
}

/// A client that waits to be asked for its body is asked for one that is wanted.
#[test]
fn expect_100_continue() -> io::Result<()> {
    for mode in Mode::ISOLATES {
        let server = server(mode, "[app.app]\nmax_body = \"1K\"\n").start();
        for (length, first) in [("5", 100), ("2000", 413)] {
            let mut client = Client::open(server.address())?;
            let headers = [("content-length", length), ("expect", "100-continue")];
            let head = http2::head("POST", "/body", &headers);
            client.send(http2::HEADERS, http2::END_HEADERS, 1, &head)?;
            assert_eq!(client.next(http2::HEADERS)?.status(), Some(first));
            if first == 100 {
                client.send(http2::DATA, http2::END_STREAM, 1, b"hello")?;
                assert_eq!(client.next(http2::HEADERS)?.status(), Some(200));
                let data = client.next(http2::DATA)?.payload;
                assert!(data.starts_with(b"{\"length\":5,"), "{data:?}");
            }
        }
    }
    Ok(())
}

#[test]
fn requests_of_a_connection_run_at_a_time() -> io::Result<()> {
    for mode in Mode::ISOLATES {
        let server = server(mode, "").start();
        let mut client = Client::open(server.address())?;
        let start = Instant::now();
        let requests = (1..40).step_by(2);
        let bytes: Vec<_> = requests
            .flat_map(|stream| http2::get(stream, "/sleep?seconds=2"))
            .collect();
        client.write(&bytes)?;
        let mut ended = 0;
        while ended < 20 {
            let data = client.next(http2::DATA)?;
            if data.flags & http2::END_STREAM != 0 {
                assert_eq!(data.payload, b"slept");
                ended += 1;
            }
        }
        let took = start.elapsed();
        // One after the other they would take forty seconds.
        assert!(took < Duration::from_secs(20), "{took:?}");
    }
    Ok(())
}

/// As `fairness` has it of HTTP/1: three connections with this many streams each, and always another one behind.
#[test]
fn clients_that_never_stop_asking_do_not_stall_others() {
    for mode in Mode::ISOLATES {
        let server = server(mode, "").start();
        for (target, streams) in [
            ("/status?code=200&text=x", "100"),
            ("/compute?milliseconds=20", "4"),
        ] {
            let mut greedy = Command::new("h2load")
                .args(["-c", "3", "-m", streams, "-n", "100000000"])
                .arg(format!("http://{}{target}", server.address()))
                .stdout(Stdio::null())
                .spawn()
                .expect("h2load");
            let begun = Instant::now();
            let asked = std::panic::catch_unwind(|| {
                for _ in 0..8 {
                    get(&server, "/").expect(200);
                    thread::sleep(Duration::from_millis(20));
                }
                begun.elapsed()
            });
            let _ = greedy.kill();
            let ended = greedy.wait().expect("h2load");
            assert!(!ended.success(), "it has not asked on: {ended}");
            let took = asked.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            assert!(
                took < Duration::from_secs(20),
                "{mode:?} {target}: {took:?}"
            );
        }
    }
}

/// What a client may hold open, it may not hold open for ever.
#[test]
fn a_client_that_does_not_read_is_cut() -> io::Result<()> {
    let config = "[server]\nwrite_timeout = \"1s\"\nkeep_alive = \"1s\"\n";
    for mode in Mode::ISOLATES {
        let server = server(mode, config).start();
        let idle = Client::open(server.address())?;
        let mut held = Client::open(server.address())?;
        held.get(1, "/print?kilobytes=4096")?;
        for mut client in [idle, held] {
            let start = Instant::now();
            client.rest();
            let took = start.elapsed();
            assert!(took < Duration::from_secs(20), "{took:?}");
        }
        get(&server, "/").expect(200);
    }
    Ok(())
}

/// What is in flight is answered, and the client is told that nothing more will be.
#[test]
fn a_drain_finishes_streams() -> io::Result<()> {
    for mode in Mode::ISOLATES {
        let mut server = server(mode, "").start();
        let mut client = Client::open(server.address())?;
        client.get(1, "/sleep?seconds=1.5")?;
        server.wait_for_in_flight(1);
        server.process().signal(Signal::SIGTERM);
        let mut told = false;
        loop {
            let Frame { kind, payload, .. } = client.frame()?;
            told |= kind == http2::GOAWAY;
            if kind == http2::PING {
                // By that the server knows that the client has been told.
                client.send(http2::PING, http2::ACK, 0, &payload)?;
            }
            if kind == http2::DATA && !payload.is_empty() {
                assert_eq!(payload, b"slept");
                break;
            }
        }
        assert!(told, "no GOAWAY");
        client.rest();
        let end = Instant::now() + Duration::from_secs(20);
        while server.process().ended().is_none() {
            assert!(Instant::now() < end, "it does not end");
            thread::sleep(Duration::from_millis(20));
        }
    }
    Ok(())
}

/// A stream that is given up as soon as its request runs makes room for the next one, in the server as well.
#[test]
fn streams_that_are_reset_leave_nothing() -> io::Result<()> {
    const CANCEL: [u8; 4] = [0, 0, 0, 8];
    for mode in Mode::ISOLATES {
        let config =
            "[app.app]\nmax_requests_in_flight = 8\nmax_queue = 8\nqueue_timeout = \"5s\"\n";
        let server = server(mode, config).cancel_on_disconnect().start();
        let mut client = Client::open(server.address())?;
        for i in 0..100 {
            let stream = 2 * i + 1;
            client.get(stream, "/sleep?seconds=60")?;
            // Answered behind it: the request has begun.
            client.send(http2::PING, 0, 0, &[7; 8])?;
            while client.next(http2::PING)?.flags & http2::ACK == 0 {}
            client.send(http2::RST_STREAM, 0, stream, &CANCEL)?;
        }
        client.get(999, "/")?;
        assert_eq!(client.next(http2::DATA)?.payload, b"hello");
        server.wait_for_in_flight(0);
    }
    Ok(())
}

/// Sends `bytes` again and again, until the server ends that.
fn flood(client: &mut Client, bytes: &[u8], mut most: usize) {
    while client.write(bytes).is_ok() {
        most = most.checked_sub(bytes.len()).expect("the end of a flood");
    }
}

/// The code that a client is sent away with.
fn reason(client: &mut Client) -> Option<u32> {
    client.next(http2::GOAWAY).ok()?.code()
}

/// Streams that are opened and reset at once (CVE-2023-44487), heads without an end (CVE-2024-28182), and frames that
/// the server has to answer, from a client that does not read the answers.
#[test]
fn floods_end() -> io::Result<()> {
    let config = "[server]\nwrite_timeout = \"1s\"\n";
    let server = server(Mode::Coroutine, config).start();
    let worker = server.workers()[0];
    let before = memory(worker);

    let mut resets = Client::open(server.address())?;
    let bytes: Vec<u8> = (0..1000)
        .flat_map(|i| {
            let stream = 2 * i + 1;
            let reset = frame(http2::RST_STREAM, 0, stream, &[0, 0, 0, 8]);
            [http2::get(stream, "/sleep?seconds=60"), reset].concat()
        })
        .collect();
    let _ = resets.write(&bytes);
    assert_eq!(reason(&mut resets), Some(http2::ENHANCE_YOUR_CALM));

    let mut heads = Client::open(server.address())?;
    let head = http2::head("GET", "/", &[]);
    heads.send(http2::HEADERS, http2::END_STREAM, 1, &head)?;
    let more = frame(http2::CONTINUATION, 0, 1, &http2::field("x", "y"));
    flood(&mut heads, &more.repeat(100), 64 << 20);

    for bytes in [
        frame(http2::PING, 0, 0, &[7; 8]),
        frame(http2::SETTINGS, 0, 0, &[]),
    ] {
        let mut client = Client::open(server.address())?;
        thread::scope(|scope| {
            let others = scope.spawn(|| (0..20).for_each(|_| _ = get(&server, "/").expect(200)));
            flood(&mut client, &bytes.repeat(1000), 1 << 30);
            others.join().expect("others are served");
        });
    }
    let after = memory(worker);
    assert!(after < before + (16 << 20), "{before} bytes, then {after}");
    server.wait_for_in_flight(0);
    get(&server, "/").expect(200);
    Ok(())
}

/// A head has its time, however it comes: `h2` would wait for the rest for ever. What is whole may come as slowly as it
/// likes.
#[test]
fn heads_that_drip_are_cut() -> io::Result<()> {
    let config = "[server]\nheader_timeout = \"1s\"\nkeep_alive = \"60s\"\n";
    let server = server(Mode::Coroutine, config).start();
    let head = http2::head("GET", "/", &[]);
    let piece = frame(http2::CONTINUATION, 0, 1, &http2::field("x", "y"));
    let open = frame(http2::HEADERS, http2::END_STREAM, 1, &head);
    // More frames; bytes of one frame; of the frame's own head.
    let whole = http2::get(1, "/");
    for (first, rest) in [
        (open.as_slice(), piece.repeat(1000)),
        (&whole[..9], whole[9..].to_vec()),
        (&[], whole[..8].to_vec()),
    ] {
        let mut dripping = Client::open(server.address())?;
        let mut patient = Client::open(server.address())?;
        dripping.write(first)?;
        let start = Instant::now();
        let mut stream = 1;
        let mut drops = rest.iter().cycle();
        while !dripping.has_ended() {
            assert!(start.elapsed() < Duration::from_secs(30), "it may go on");
            let drop = drops.next().copied().expect("a byte");
            // The last byte of what is short is not sent.
            if rest.len() > 1000 || start.elapsed() < Duration::from_millis(500) {
                let _ = dripping.write(&[drop]);
            }
            patient.get(stream, "/")?;
            stream += 2;
            patient.next(http2::DATA)?;
            thread::sleep(Duration::from_millis(100));
        }
        assert!(start.elapsed() > Duration::from_secs(1));
    }
    Ok(())
}

/// Bytes of memory that a process has used at most.
fn memory(process: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kilobytes: Option<u64> = kilobytes.and_then(|text| text.parse().ok());
    kilobytes.expect("how much memory it uses") * 1024
}

/// Many streams of one connection that are not read from cost what their windows let wait.
#[test]
fn streams_that_wait_for_their_window_cost_little() -> io::Result<()> {
    let server = server(Mode::Coroutine, "").start();
    get(&server, "/print?kilobytes=4096").expect(200);
    let worker = server.workers()[0];
    let before = memory(worker);
    let mut client = Client::open(server.address())?;
    let bytes: Vec<_> = (0..100)
        .flat_map(|i| http2::get(2 * i + 1, "/print?kilobytes=65536"))
        .collect();
    client.write(&bytes)?;
    for _ in 0..100 {
        client.next(http2::HEADERS)?;
    }
    // Another connection is served meanwhile.
    let mut other = Connection::open(server.address())?;
    other.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")?;
    other.response("GET")?.expect(200);
    let each = (memory(worker) - before) / 100;
    assert!(each < 2 << 20, "{each} bytes for each of 100 streams");
    Ok(())
}
