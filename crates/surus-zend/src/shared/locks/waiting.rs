//! Requests of this process that wait for locks. What another process has granted to one of them, it tells by a datagram without
//! content; a process that died tells nothing, so they look for such once in a while.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    io,
    os::{
        fd::OwnedFd,
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixDatagram},
    },
    rc::Rc,
    time::Duration,
};

use tokio::{sync::Notify, task::spawn_local, time::timeout};

use super::{
    table::{Claim, Seat},
    Lock, Locks,
};
use crate::high::lifted;

/// How long a lock may stay with a process that died.
const LOOK: Duration = Duration::from_millis(250);

thread_local! {
    static WAITING: RefCell<HashMap<Claim, Rc<Notify>>> = RefCell::default();
    static IS_LISTENING: Cell<bool> = const { Cell::new(false) };
    /// The socket to send from.
    static SENDS: RefCell<Option<UnixDatagram>> = const { RefCell::new(None) };
}

/// Whoever is in the map; also if its future is dropped.
struct Waiting(Claim);

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITING.with_borrow_mut(|all| all.remove(&self.0));
    }
}

fn address(locks: &Locks, seat: usize) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("surus-locks-{:016x}-{seat}", locks.name))
}

/// The lock when it is held; `None` after `time`.
pub(super) async fn wait(locks: &'static Locks, lock: Lock, time: Duration) -> Option<Lock> {
    if time.is_zero() {
        return None;
    }
    let granted = Rc::new(Notify::new());
    WAITING.with_borrow_mut(|all| all.insert(lock.claim, granted.clone()));
    let _waiting = Waiting(lock.claim);
    listen(locks, lock.seat);
    let holds = || {
        locks
            .table
            .open()
            .is_some_and(|open| open.holds(lock.claim))
    };
    let come = async {
        // It may have been granted before anybody listened.
        while !holds() {
            granted.notified().await;
        }
    };
    let came = timeout(time, come).await.is_ok();
    (came || holds()).then_some(lock)
}

/// Tells those that wait for these claims.
pub(super) fn wake(locks: &Locks, own: Seat, granted: impl IntoIterator<Item = Claim>) {
    for claim in granted {
        if claim.seat() == own.number {
            WAITING.with_borrow(|all| {
                if let Some(waiting) = all.get(&claim) {
                    waiting.notify_one();
                }
            });
        } else if let Err(error) = tell(locks, claim.seat()) {
            // It looks by itself, later.
            tracing::debug!(%error, "a process is not told that it has a lock");
        }
    }
}

fn tell(locks: &Locks, seat: usize) -> io::Result<()> {
    SENDS.with_borrow_mut(|sends| {
        let socket = match sends {
            Some(socket) => socket,
            None => sends.insert(high(UnixDatagram::unbound()?)?),
        };
        match socket.send_to_addr(b"", &address(locks, seat)?) {
            // A full queue tells it as well.
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    })
}

fn high(socket: UnixDatagram) -> io::Result<UnixDatagram> {
    socket.set_nonblocking(true)?;
    Ok(UnixDatagram::from(OwnedFd::from(lifted(
        std::fs::File::from(OwnedFd::from(socket)),
    ))))
}

/// While somebody waits.
fn listen(locks: &'static Locks, seat: Seat) {
    if IS_LISTENING.replace(true) {
        return;
    }
    let bound = address(locks, seat.number).and_then(|address| {
        tokio::net::UnixDatagram::from_std(high(UnixDatagram::bind_addr(&address)?)?)
    });
    if let Err(error) = &bound {
        tracing::warn!(%error, "requests that wait for locks look for them by themselves");
    }
    spawn_local(async move {
        let mut nothing = [0; 1];
        while WAITING.with_borrow(|all| !all.is_empty()) {
            match &bound {
                Ok(socket) => {
                    let _ = timeout(LOOK, socket.recv(&mut nothing)).await;
                    while socket.try_recv(&mut nothing).is_ok() {}
                }
                Err(_) => tokio::time::sleep(LOOK / 25).await,
            }
            look(locks, seat);
        }
        IS_LISTENING.set(false);
    });
}

/// Wakes those that hold their locks now.
fn look(locks: &Locks, seat: Seat) {
    let Some(open) = locks.table.open() else {
        return;
    };
    let granted = open.reap(seat);
    WAITING.with_borrow(|all| {
        for (claim, waiting) in all {
            if open.holds(*claim) {
                waiting.notify_one();
            }
        }
    });
    drop(open);
    wake(locks, seat, granted);
}
