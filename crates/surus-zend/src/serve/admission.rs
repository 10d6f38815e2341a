//! The admission queue: requests that wait to run, in order of arrival, bounded in number and in time.

use std::{cell::RefCell, collections::VecDeque, time::Duration};

use tokio::sync::oneshot;

use crate::body::relief::Wanted;

/// Requests that wait for a `T`. If the receiver is dropped during a hand-over, the `T` is dropped: its `Drop` passes
/// it on.
pub(crate) struct AdmissionQueue<T> {
    waiting: RefCell<VecDeque<oneshot::Sender<T>>>,
}

impl<T> Default for AdmissionQueue<T> {
    fn default() -> Self {
        AdmissionQueue {
            waiting: RefCell::default(),
        }
    }
}

impl<T> AdmissionQueue<T> {
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.borrow().is_empty()
    }

    /// The number of requests that wait.
    pub(crate) fn len(&self) -> usize {
        let waiting = self.waiting.borrow();
        waiting.iter().filter(|each| !each.is_closed()).count()
    }

    /// Sends away all that wait.
    pub(crate) fn clear(&self) {
        self.waiting.borrow_mut().clear();
    }

    /// Waits for a turn; `None` if `limit` already wait, or after `patience`. Dropping it leaves the queue.
    pub(crate) async fn wait(&self, limit: usize, patience: Duration) -> Option<T> {
        let turn = {
            let mut waiting = self.waiting.borrow_mut();
            waiting.retain(|each| !each.is_closed());
            if waiting.len() >= limit {
                return None;
            }
            let (sender, turn) = oneshot::channel();
            waiting.push_back(sender);
            turn
        };
        // While this exists, responses to slow clients may be ended to free a place.
        let _wanted = Wanted::begin();
        tokio::time::timeout(patience, turn).await.ok()?.ok()
    }

    /// Gives `what` to the request that has waited longest; returns it as an error if none waits.
    pub(crate) fn hand_over(&self, mut what: T) -> Result<(), T> {
        loop {
            let next = self.waiting.borrow_mut().pop_front();
            let Some(next) = next else { return Err(what) };
            match next.send(what) {
                Ok(()) => return Ok(()),
                Err(back) => what = back,
            }
        }
    }
}
