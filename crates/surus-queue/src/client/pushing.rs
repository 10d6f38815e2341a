//! What is sent until it is answered.

use tokio::sync::oneshot;

use crate::job::{Id, NewBatch, Push, Pushed};
use crate::message::{Change, ToOwner};

/// A push, under the name of its job, and who waits for the answer.
pub(super) type Unanswered = (Id, Pushing, oneshot::Sender<Result<Pushed, String>>);

#[derive(Clone)]
pub(super) enum Pushing {
    Job(Push),
    Batch(Box<NewBatch>),
    Change(Change),
}

impl Pushing {
    pub(super) fn message(self, request: u64, id: Id) -> ToOwner {
        match self {
            Pushing::Job(push) => ToOwner::Push { request, id, push },
            Pushing::Batch(batch) => ToOwner::Batch { request, id, batch },
            Pushing::Change(change) => ToOwner::Change {
                request,
                id,
                change,
            },
        }
    }
}
