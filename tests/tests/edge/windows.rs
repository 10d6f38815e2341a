//! Clients of HTTP/2 that keep windows closed: what waits for one ends, whatever else is asked for on its connection.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use surus_tests::http2::{self, Client, Frame};
use surus_tests::surus::{Mode, Surus};
use surus_tests::waiting::wait_for;

use super::server;

const CANCEL: [u8; 4] = [0, 0, 0, 8];

/// Each stream may be sent so many bytes, until more are asked for.
fn client(server: &Surus, window: u32) -> io::Result<Client> {
    let mut client = Client::open(server.address())?;
    let [a, b, c, d] = window.to_be_bytes();
    client.send(http2::SETTINGS, 0, 0, &[0, 4, a, b, c, d])?;
    Ok(client)
}

/// Asks for something short, and reads it; what has come of other streams meanwhile.
fn ask(client: &mut Client, stream: u32) -> io::Result<Vec<Frame>> {
    // At once: who asks must not be taken for one that does not read.
    let more = http2::frame(http2::WINDOW_UPDATE, 0, stream, &100_u32.to_be_bytes());
    client.write(&[http2::get(stream, "/"), more].concat())?;
    let mut others = Vec::new();
    loop {
        let frame = client.frame()?;
        if frame.stream != stream {
            others.push(frame);
        } else if frame.kind == http2::DATA && frame.flags & http2::END_STREAM != 0 {
            return Ok(others);
        } else {
            assert_ne!(frame.kind, http2::RST_STREAM, "{frame:?}");
        }
    }
}

#[test]
fn a_stream_that_is_not_read_ends_beside_others_that_are() -> io::Result<()> {
    let config = "[server]\nwrite_timeout = \"1s\"\nkeep_alive = \"60s\"\n";
    for mode in Mode::ISOLATES {
        let server = server(mode, config).start();
        for window in [0, 1, 1000] {
            for target in ["/large?kilobytes=200", "/print?kilobytes=4096"] {
                let mut client = client(&server, window)?;
                client.get(1, target)?;
                let begun = Instant::now();
                let mut came = 0;
                let end = (3..).step_by(2).find_map(|stream| {
                    thread::sleep(Duration::from_millis(50));
                    let others = ask(&mut client, stream).expect("an answer");
                    let data = others.iter().filter(|frame| frame.kind == http2::DATA);
                    came += data.map(|frame| frame.payload.len()).sum::<usize>();
                    let end = others
                        .into_iter()
                        .find(|frame| frame.stream == 1 && frame.kind == http2::RST_STREAM);
                    let is_late = begun.elapsed() > Duration::from_secs(30);
                    (end.is_some() || is_late).then_some(end)
                });
                let end = end.flatten().map(|frame| frame.payload);
                assert_eq!(end, Some(CANCEL.to_vec()), "{mode:?} {window} {target}");
                assert_eq!(came, window as usize, "{mode:?} {target}");
                wait_for("PHP is not told", || {
                    server.status()["workers"][0]["in_flight"] == 0
                });
            }
        }
    }
    Ok(())
}

/// A window that is opened little by little: all comes, in whatever pieces.
#[test]
fn what_is_read_in_small_pieces_comes_whole() -> io::Result<()> {
    for mode in Mode::ISOLATES {
        let server = server(mode, "").start();
        for window in [0, 1, 700] {
            let mut client = client(&server, window)?;
            client.get(1, "/large?kilobytes=60")?;
            let (mut body, mut step) = (Vec::new(), 0);
            loop {
                let frame = client.frame()?;
                match frame.kind {
                    http2::HEADERS => {}
                    http2::DATA => body.extend(frame.payload),
                    _ => continue,
                }
                if frame.flags & http2::END_STREAM != 0 {
                    break;
                }
                step += 997;
                client.send(http2::WINDOW_UPDATE, 0, 1, &u32::to_be_bytes(step))?;
            }
            assert_eq!(body.len(), 60 << 10, "{mode:?} {window}");
            assert!(body.chunks(16).all(|piece| piece == b"0123456789abcdef"));
        }
    }
    Ok(())
}
