//! Locks by name, between all requests of a server. Who waits is parked, and served in order. A lock ends with its request, and
//! with the process that holds it.

mod table;
mod waiting;

#[cfg(test)]
mod tests;

use std::{
    cell::Cell,
    hash::{BuildHasher, RandomState},
    sync::OnceLock,
    time::Duration,
};

pub(crate) use table::NoClaim;
use table::{Claim, Seat, Table};

/// To give a lock back.
const TRIES: usize = 20;

struct Locks {
    table: Table,
    hash: RandomState,
    /// Of the sockets that wake processes: nobody else can guess it.
    name: u64,
}

static LOCKS: OnceLock<Option<Locks>> = OnceLock::new();

thread_local! {
    static SEAT: Cell<Option<Seat>> = const { Cell::new(None) };
}

/// Before any fork.
pub(crate) fn start() {
    locks();
}

/// On the command line they are made on first use, and the process's own.
fn locks() -> Option<&'static Locks> {
    let locks = LOCKS.get_or_init(|| {
        let table = Table::new();
        if let Err(error) = &table {
            tracing::error!(%error, "there are no locks between requests");
        }
        Some(Locks {
            table: table.ok()?,
            hash: RandomState::new(),
            name: RandomState::new().hash_one("surus"),
        })
    });
    locks.as_ref()
}

/// A lock that is held until this is dropped, or its process dies.
#[derive(Debug)]
pub(crate) struct Lock {
    claim: Claim,
    seat: Seat,
}

impl Lock {
    /// Takes the lock with this name; `None`: others hold it for longer than `wait`. Without a wait it does not park.
    pub(crate) async fn take(name: &[u8], wait: Duration) -> Result<Option<Lock>, NoClaim> {
        let locks = locks().ok_or(NoClaim::Unavailable)?;
        let hash = locks.hash.hash_one(name);
        let lock = {
            let open = locks.table.open().ok_or(NoClaim::Unavailable)?;
            let seat = match SEAT.get().filter(|seat| seat.is_ours()) {
                Some(seat) => seat,
                None => {
                    let seat = open.sit_down().ok_or(NoClaim::Unavailable)?;
                    SEAT.set(Some(seat));
                    seat
                }
            };
            let claim = open.claim(seat, hash)?;
            let lock = Lock { claim, seat };
            if !open.holds(claim) {
                let granted = open.reap(seat);
                let holds = open.holds(claim);
                drop(open);
                waiting::wake(locks, seat, granted);
                if !holds {
                    return Ok(waiting::wait(locks, lock, wait).await);
                }
            }
            lock
        };
        Ok(Some(lock))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Not of the process that this one is a copy of.
        let Some(locks) = locks().filter(|_| self.seat.is_ours()) else {
            return;
        };
        // Each try waits for a while: only a process that was stopped holds the table for longer.
        let Some(open) = (0..TRIES).find_map(|_| locks.table.open()) else {
            tracing::error!("a lock stays until this process ends: another one holds their table");
            return;
        };
        let granted = open.release(self.claim);
        drop(open);
        waiting::wake(locks, self.seat, granted);
    }
}
