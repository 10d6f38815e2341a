//! A proxy before a MySQL server that lets some packets of each answer through, and no more.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::Arc;
use std::thread;

/// What becomes of a connection whose packets have gone through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It stays open, and nothing comes any more.
    Wait,
    /// The server is gone.
    Close,
}

#[derive(Debug, Default)]
struct State {
    /// How many of the server's packets go through on each connection.
    packets: AtomicUsize,
    /// Connections that were opened before have had their last packet.
    broken: AtomicUsize,
    opened: AtomicUsize,
    /// Connections that the client has not closed.
    open: AtomicUsize,
    /// Connections whose next packet was held back, ever.
    held: AtomicUsize,
}

#[derive(Debug)]
pub struct Dam {
    port: u16,
    state: Arc<State>,
}

impl Dam {
    /// Before the server on that port.
    pub fn start(target: u16, then: Then) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("listen");
        let port = listener.local_addr().expect("the address").port();
        let state = Arc::new(State {
            packets: AtomicUsize::new(usize::MAX),
            ..State::default()
        });
        let shared = state.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let state = shared.clone();
                state.open.fetch_add(1, SeqCst);
                let number = state.opened.fetch_add(1, SeqCst);
                thread::spawn(move || {
                    // Whichever side ends it, the other one's thread ends with it.
                    let _ = between(&client, target, |server| {
                        let _ = answers(server, &client, then, (&state, number));
                    });
                    state.open.fetch_sub(1, SeqCst);
                });
            }
        });
        Self { port, state }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// So many packets go through on each connection from now on.
    pub fn let_through(&self, packets: usize) {
        self.state.packets.store(packets, SeqCst);
    }

    /// No packet goes through any more on the connections that there are.
    pub fn break_all(&self) {
        let opened = self.state.opened.load(SeqCst);
        self.state.broken.store(opened, SeqCst);
    }

    /// Connections that were stopped, ever.
    pub fn held(&self) -> usize {
        self.state.held.load(SeqCst)
    }

    /// Connections that the client has not closed.
    pub fn open(&self) -> usize {
        self.state.open.load(SeqCst)
    }
}

/// Passes on what the client says; `answers` gets what the server says.
pub(crate) fn between(
    client: &TcpStream,
    target: u16,
    answers: impl FnOnce(&TcpStream) + Send,
) -> io::Result<()> {
    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, target))?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    thread::scope(|threads| {
        threads.spawn(|| answers(&server));
        let copied = io::copy(&mut &*client, &mut &server);
        let _ = server.shutdown(Shutdown::Both);
        copied.map(|_| ())
    })
}

/// Packets from the server to the client, until enough have gone through.
fn answers(
    mut server: &TcpStream,
    mut client: &TcpStream,
    then: Then,
    (state, number): (&State, usize),
) -> io::Result<()> {
    let mut passed = 0;
    loop {
        let mut head = [0; 4];
        server.read_exact(&mut head)?;
        let size = u32::from_le_bytes([head[0], head[1], head[2], 0]);
        let mut packet = head.to_vec();
        server.take(size.into()).read_to_end(&mut packet)?;
        if passed >= state.packets.load(SeqCst) || number < state.broken.load(SeqCst) {
            state.held.fetch_add(1, SeqCst);
            if then == Then::Close {
                client.shutdown(Shutdown::Both)?;
            }
            return Ok(());
        }
        passed += 1;
        client.write_all(&packet)?;
    }
}
