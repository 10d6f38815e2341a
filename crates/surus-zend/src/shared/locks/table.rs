//! Who holds and who waits for which lock, in memory that all processes of a server share.
//!
//! Each process has a seat, whose mutex it holds for as long as it lives: if its process dies, the kernel tells the next one who
//! tries that mutex. A seat has claims: a lock that one of its requests holds or waits for. A claim is two words, and there is
//! nothing else to keep consistent: the next holder of a lock is the claim with the lowest ticket.

use std::{
    io, process,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use super::super::{
    memory,
    mutex::{Held, Mutex},
};

/// Processes that may use locks at a time.
const SEATS: usize = 256;
/// Locks that the requests of one process may hold or wait for at a time.
const CLAIMS: usize = 16 * 1024;

/// In the state of a claim, beside its ticket.
const HOLDS: u64 = 1 << 63;

pub(super) struct Table {
    /// For all of the table but the seats' own.
    mutex: &'static Mutex,
    seats: &'static [Mutex],
    /// Of each seat: the number of its claims from the first one to the last one in use.
    used: &'static [AtomicU64],
    /// Of each claim: the hash of its lock, and [`HOLDS`] or else its ticket; 0: it is free.
    hashes: &'static [AtomicU64],
    states: &'static [AtomicU64],
    /// The last ticket, and the number of seats from the first one to the last one that was ever taken.
    last_ticket: &'static AtomicU64,
    taken: &'static AtomicU64,
}

/// A seat of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seat {
    pub(super) number: usize,
    process: u32,
}

/// A claim of this process, by its place in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Claim(usize);

/// Why there is no claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoClaim {
    /// The mutex of the table is not available, or no seat is.
    Unavailable,
    TooMany,
}

/// The table, whose mutex is held.
pub(super) struct Open<'a> {
    table: &'a Table,
    _held: Held<'a>,
}

impl Table {
    pub(super) fn new() -> io::Result<Table> {
        let (mutexes, words) = (
            Mutex::several(SEATS + 1)?,
            memory::shared_counters(SEATS + 2)?,
        );
        let (last, used) = words.split_at(2);
        Ok(Table {
            mutex: &mutexes[0],
            seats: &mutexes[1..],
            used,
            hashes: memory::shared_counters(SEATS * CLAIMS)?,
            states: memory::shared_counters(SEATS * CLAIMS)?,
            last_ticket: &last[0],
            taken: &last[1],
        })
    }

    /// `None`: its mutex is held for too long.
    pub(super) fn open(&self) -> Option<Open<'_>> {
        let held = self.mutex.hold()?;
        let open = Open {
            table: self,
            _held: held,
        };
        if open._held.is_orphan {
            open.mend();
        }
        Some(open)
    }
}

impl Seat {
    /// Not of the process that this one is a copy of.
    pub(super) fn is_ours(self) -> bool {
        self.process == process::id()
    }
}

impl Claim {
    pub(super) fn seat(self) -> usize {
        self.0 / CLAIMS
    }
}

impl Open<'_> {
    /// A free seat, which is this process's until it ends.
    pub(super) fn sit_down(&self) -> Option<Seat> {
        let seats = self.table.seats.iter().enumerate();
        let mut free = seats.filter_map(|(number, mutex)| Some((number, mutex.try_hold()?)));
        let (number, held) = free.next()?;
        // Until the process ends.
        std::mem::forget(held);
        let taken = self.table.taken.load(Relaxed).max(number as u64 + 1);
        self.table.taken.store(taken, Relaxed);
        let _ = self.forsake(number);
        Some(Seat {
            number,
            process: process::id(),
        })
    }

    /// A claim for a lock; it holds it if nobody has a claim for it.
    pub(super) fn claim(&self, seat: Seat, hash: u64) -> Result<Claim, NoClaim> {
        let used = self.table.used[seat.number].load(Relaxed) as usize;
        let first = seat.number * CLAIMS;
        let free = (0..used).find(|&at| self.state(first + at) == 0);
        let at = free.unwrap_or(used);
        if at == CLAIMS {
            return Err(NoClaim::TooMany);
        }
        let is_free = self.claims(hash).next().is_none();
        let ticket = self.table.last_ticket.load(Relaxed) + 1;
        self.table.last_ticket.store(ticket, Relaxed);
        self.table.hashes[first + at].store(hash, Relaxed);
        let state = if is_free { HOLDS | ticket } else { ticket };
        // Before the claim counts.
        self.table.states[first + at].store(state, Relaxed);
        self.table.used[seat.number].store(used.max(at + 1) as u64, Relaxed);
        Ok(Claim(first + at))
    }

    pub(super) fn holds(&self, claim: Claim) -> bool {
        self.state(claim.0) & HOLDS != 0
    }

    /// Gives the lock, or the place in its queue, up. The claim that holds it now, if it is a new one.
    pub(super) fn release(&self, claim: Claim) -> Option<Claim> {
        let (seat, hash) = (claim.seat(), self.table.hashes[claim.0].load(Relaxed));
        self.table.states[claim.0].store(0, Relaxed);
        let mut used = self.table.used[seat].load(Relaxed) as usize;
        while used > 0 && self.state(seat * CLAIMS + used - 1) == 0 {
            used -= 1;
        }
        self.table.used[seat].store(used as u64, Relaxed);
        self.grant(hash)
    }

    /// Takes the claims of processes that have died. The claims that hold their locks now.
    pub(super) fn reap(&self, own: Seat) -> Vec<Claim> {
        let taken = self.table.taken.load(Relaxed) as usize;
        let dead = (0..taken).filter(|&number| {
            number != own.number
                && self.table.used[number].load(Relaxed) > 0
                && self.table.seats[number].try_hold().is_some()
        });
        dead.flat_map(|number| self.forsake(number)).collect()
    }

    /// Nobody has this seat any more.
    fn forsake(&self, seat: usize) -> Vec<Claim> {
        let used = self.table.used[seat].load(Relaxed) as usize;
        let all = seat * CLAIMS..seat * CLAIMS + used;
        let claims: Vec<_> = all.filter(|&at| self.state(at) != 0).map(Claim).collect();
        let granted = claims.into_iter().filter_map(|claim| self.release(claim));
        // Its own may have been granted to it first.
        let granted: Vec<_> = granted.filter(|claim| claim.seat() != seat).collect();
        self.table.used[seat].store(0, Relaxed);
        granted
    }

    /// The last holder of the mutex died: it may have granted a lock to nobody.
    fn mend(&self) {
        let taken = self.table.taken.load(Relaxed) as usize;
        for seat in 0..taken {
            // A claim that was not counted yet.
            let used = self.table.used[seat].load(Relaxed) as usize;
            if let Some(next) = self.table.states[seat * CLAIMS..][..CLAIMS].get(used) {
                next.store(0, Relaxed);
            }
            for at in seat * CLAIMS..seat * CLAIMS + used {
                if self.state(at) != 0 {
                    let _ = self.grant(self.table.hashes[at].load(Relaxed));
                }
            }
        }
    }

    /// To who has waited longest, if nobody holds it.
    fn grant(&self, hash: u64) -> Option<Claim> {
        if self.claims(hash).any(|at| self.state(at) & HOLDS != 0) {
            return None;
        }
        let first = self.claims(hash).min_by_key(|&at| self.state(at))?;
        self.table.states[first].store(self.state(first) | HOLDS, Relaxed);
        Some(Claim(first))
    }

    fn state(&self, at: usize) -> u64 {
        self.table.states[at].load(Relaxed)
    }

    /// The places of all claims for a lock.
    fn claims(&self, hash: u64) -> impl Iterator<Item = usize> + '_ {
        let taken = self.table.taken.load(Relaxed) as usize;
        let all = (0..taken).flat_map(|seat| {
            let used = self.table.used[seat].load(Relaxed) as usize;
            seat * CLAIMS..seat * CLAIMS + used
        });
        all.filter(move |&at| self.table.hashes[at].load(Relaxed) == hash && self.state(at) != 0)
    }
}
