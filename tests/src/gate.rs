//! A proxy before a TCP server that can be closed: what the server says then waits in it, until it is opened again.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use crate::dam::between;

#[derive(Debug, Default)]
struct State {
    is_closed: bool,
    /// How often something had to wait since it was closed.
    held: usize,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    opened: Condvar,
}

/// For any protocol in which the client asks and the server answers. Dropped, it is open.
#[derive(Debug)]
pub struct Gate {
    port: u16,
    shared: Arc<Shared>,
}

impl Gate {
    /// An open one, before the server on that port of this machine.
    pub fn start(target: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("listen");
        let port = listener.local_addr().expect("the address").port();
        let shared = Arc::new(Shared::default());
        let gate = shared.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let gate = gate.clone();
                // Whichever side ends it, the other one's thread ends with it.
                thread::spawn(move || {
                    let _ = between(&client, target, |server| {
                        let _ = answers(server, &client, &gate);
                        let _ = client.shutdown(Shutdown::Both);
                    });
                });
            }
        });
        Self { port, shared }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Nothing of what the server says goes through from now on.
    pub fn close(&self) {
        let mut state = self.shared.state();
        state.is_closed = true;
        state.held = 0;
    }

    pub fn open(&self) {
        self.shared.state().is_closed = false;
        self.shared.opened.notify_all();
    }

    /// Whether the server has said something since the gate was closed, which waits.
    pub fn holds(&self) -> bool {
        self.shared.state().held > 0
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.open();
    }
}

impl Shared {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when it is open.
    fn pass(&self) {
        let mut state = self.state();
        state.held += usize::from(state.is_closed);
        while state.is_closed {
            state = self
                .opened
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn answers(mut server: &TcpStream, mut client: &TcpStream, gate: &Shared) -> io::Result<()> {
    let mut room = vec![0; 65_536];
    loop {
        let size = server.read(&mut room)?;
        if size == 0 {
            return Ok(());
        }
        gate.pass();
        client.write_all(&room[..size])?;
    }
}
