//! Jobs of processes that have no connection: they come again, or are dead.

use std::collections::HashMap;

use super::{Book, Peer, Place};
use crate::holder::Holder;
use crate::job::{Ending, Id};
use crate::record::Record;

impl Book {
    /// A connection has ended. Its process may be alive, and come again.
    pub(crate) fn leave(&mut self, peer: Peer, holder: Holder) {
        self.streams.leave(peer);
        let mut held = Vec::new();
        for queue in self.queues.values_mut() {
            queue.unsubscribe(peer);
            held.extend(queue.held_by(peer));
        }
        for id in held {
            self.put(id, Place::Doubted(holder));
        }
    }

    /// A process has come with a new connection, and runs these jobs. What else it was sent has not arrived.
    pub(crate) fn claim(
        &mut self,
        peer: Peer,
        holder: Holder,
        ids: &[Id],
        now: u64,
    ) -> Vec<Record> {
        let its = |place: Option<Place>| place == Some(Place::Doubted(holder));
        for &id in ids {
            if its(self.place(id)) {
                self.put(id, Place::Held(peer));
            }
        }
        let lost: Vec<Id> = self
            .doubted
            .iter()
            .copied()
            .filter(|&id| its(self.place(id)))
            .collect();
        let again = Ending::Again {
            delay: std::time::Duration::ZERO,
            error: None,
            counts: false,
        };
        lost.into_iter()
            .map(|id| self.ended(id, again.clone(), now))
            .collect()
    }

    /// Jobs whose processes have died run again, if they have tries left.
    pub(crate) fn bury(&mut self, is_alive: impl Fn(&Holder) -> bool, now: u64) -> Vec<Record> {
        let mut known: HashMap<Holder, bool> = HashMap::new();
        let mut lost = Vec::new();
        for &id in &self.doubted {
            if !self.can_judge(id) {
                continue;
            }
            if let Some(Place::Doubted(holder)) = self.place(id) {
                if !*known.entry(holder).or_insert_with(|| is_alive(&holder)) {
                    lost.push((id, holder));
                }
            }
        }
        let bury = |(id, holder): (Id, Holder)| {
            let error = format!("its process, {}, has died", holder.pid());
            let job = self.jobs.get(&id).map(|entry| &entry.job);
            let tries = job.and_then(|job| self.queues.get(&job.queue)?.tries);
            let is_over = tries.is_some_and(|tries| job.is_some_and(|job| job.attempts >= tries));
            let ending = match is_over {
                true => Ending::Failed { error },
                false => Ending::Again {
                    delay: std::time::Duration::ZERO,
                    error: Some(error),
                    counts: true,
                },
            };
            self.ended(id, ending, now)
        };
        lost.into_iter().map(bury).collect()
    }

    /// A new owner learns how often a job may run from those who take it. Until then nobody would run it anyway.
    fn can_judge(&self, id: Id) -> bool {
        let job = self.jobs.get(&id).map(|entry| &entry.job);
        let queue = job.and_then(|job| self.queues.get(&job.queue));
        queue.is_some_and(|queue| queue.tries.is_some() || queue.places() > 0)
    }

    /// Whether there are jobs whose process may be dead.
    pub(crate) fn has_doubts(&self) -> bool {
        self.doubted.iter().any(|&id| self.can_judge(id))
    }
}
