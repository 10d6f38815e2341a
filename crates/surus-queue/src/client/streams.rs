//! Appending to streams and reading them.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::{Client, Pushing, PATIENCE};
use crate::job::Pushed;
use crate::message::{check_length, Change, Entry, Reading, ToOwner};

/// What is read, and who waits for it.
pub(super) struct Asked {
    pub(super) wanted: Reading,
    pub(super) answer: oneshot::Sender<Result<Vec<Entry>, String>>,
    /// Its time is over: the owner answers it with what there is.
    pub(super) ends: bool,
}

impl Client {
    /// Returns when it is on disk.
    ///
    /// # Errors
    /// It is not; or the owner has not answered in time, and nobody knows.
    pub async fn change(&self, change: Change) -> Result<Pushed, String> {
        match &change {
            Change::Append { payload, .. } => check_length("entry", payload.len())?,
            Change::Acknowledge {
                stream,
                group,
                positions,
            } => {
                self.forget_entries(stream, group, positions);
            }
        }
        self.push_any(Pushing::Change(change)).await
    }

    /// This process does not have these entries any more.
    fn forget_entries(&self, stream: &str, group: &str, positions: &[u64]) {
        let mut state = self.shared.state.borrow_mut();
        let of = (stream.to_owned(), group.to_owned());
        if let Some(own) = state.entries.get_mut(&of) {
            positions
                .iter()
                .for_each(|position| _ = own.remove(position));
            if own.is_empty() {
                state.entries.remove(&of);
            }
        }
    }

    /// Entries that were read for somebody who does not get them go to the next reader.
    pub fn unread(&self, stream: String, group: String, positions: Vec<u64>) {
        self.forget_entries(&stream, &group, &positions);
        self.send(&ToOwner::Claim {
            stream,
            group,
            positions,
            keeps: false,
        });
    }

    /// The next entries for a group of readers, if there are any within this time. This process has them until it acknowledges them.
    ///
    /// # Errors
    /// They cannot be read; or the owner has not said whether there are any.
    pub async fn read(&self, wanted: Reading, wait: Duration) -> Result<Vec<Entry>, String> {
        let (sender, answer) = oneshot::channel();
        let request = {
            let mut state = self.shared.state.borrow_mut();
            state.last_request += 1;
            let request = state.last_request;
            let asked = Asked {
                wanted: wanted.clone(),
                answer: sender,
                ends: false,
            };
            state.reads.insert(request, asked);
            request
        };
        let mut reader = Reader {
            client: self,
            wanted: &wanted,
            request,
            answer,
        };
        self.send(&ToOwner::Read {
            request,
            wanted: wanted.clone(),
        });
        let mut answer = timeout(wait, &mut reader.answer).await;
        if answer.is_err() {
            // Whether there are any is the owner's to say. It may be slow, or have begun a moment ago.
            reader.end();
            answer = timeout(PATIENCE, &mut reader.answer).await;
        }
        let entries = match answer {
            Ok(Ok(result)) => result?,
            Ok(Err(_)) | Err(_) => {
                return Err(self.silence("whether there are entries is not known"))
            }
        };
        drop(reader);
        if !entries.is_empty() {
            let mut state = self.shared.state.borrow_mut();
            let own = state.entries.entry((wanted.stream, wanted.group));
            let positions = entries.iter().map(|entry| entry.position);
            own.or_default().extend(positions);
        }
        Ok(entries)
    }

    pub(super) fn heard_entries(&self, request: u64, result: Result<Vec<Entry>, String>) {
        let asked = self.shared.state.borrow_mut().reads.remove(&request);
        if let Some(asked) = asked {
            if let Err(Ok(entries)) = asked.answer.send(result) {
                self.give_back(&asked.wanted, &entries);
            }
        }
    }

    /// They have come too late.
    fn give_back(&self, wanted: &Reading, entries: &[Entry]) {
        if entries.is_empty() {
            return;
        }
        self.send(&ToOwner::Claim {
            stream: wanted.stream.clone(),
            group: wanted.group.clone(),
            positions: entries.iter().map(|entry| entry.position).collect(),
            keeps: false,
        });
    }
}

/// One who waits for entries. Those that have come go back if nobody looks any more.
struct Reader<'a> {
    client: &'a Client,
    wanted: &'a Reading,
    request: u64,
    answer: oneshot::Receiver<Result<Vec<Entry>, String>>,
}

impl Reader<'_> {
    /// It waits no longer. The owner answers that, so that what crosses it is known.
    fn end(&self) {
        let mut state = self.client.shared.state.borrow_mut();
        let Some(asked) = state.reads.get_mut(&self.request) else {
            return;
        };
        asked.ends = true;
        drop(state);
        let request = self.request;
        self.client.send(&ToOwner::Unread { request });
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        self.answer.close();
        if let Ok(Ok(entries)) = self.answer.try_recv() {
            self.client.give_back(self.wanted, &entries);
        }
        self.end();
    }
}
