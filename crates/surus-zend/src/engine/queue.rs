//! A queue of waiting tasks. Only the first one is ever woken.

use std::{
    collections::VecDeque,
    task::{Context, Poll, Waker},
};

/// Tasks in order of arrival.
#[derive(Default)]
pub(crate) struct Queue {
    /// Their numbers and wakers.
    waiting: VecDeque<(u64, Option<Waker>)>,
    next: u64,
}

impl Queue {
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Joins the end of the queue. The caller must [`Queue::leave`] it.
    pub(crate) fn join(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        self.waiting.push_back((number, None));
        number
    }

    /// Ready if `number` is the first one and the resource of the queue is `free`.
    pub(crate) fn poll(&mut self, number: u64, free: bool, cx: &mut Context<'_>) -> Poll<()> {
        let place = self.waiting.iter().position(|it| it.0 == number);
        let Some(at) = place.filter(|at| *at > 0 || !free) else {
            return Poll::Ready(());
        };
        self.waiting[at].1 = Some(cx.waker().clone());
        Poll::Pending
    }

    pub(crate) fn leave(&mut self, number: u64) {
        self.waiting.retain(|it| it.0 != number);
    }

    /// The waker of the first task, to be woken when the queue is no longer borrowed.
    pub(crate) fn take_first(&mut self) -> Option<Waker> {
        self.waiting.front_mut().and_then(|it| it.1.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_one_goes_and_only_when_it_is_free() {
        let mut cx = Context::from_waker(Waker::noop());
        let mut queue = Queue::default();
        let (first, second, third) = (queue.join(), queue.join(), queue.join());
        assert!(queue.poll(second, true, &mut cx).is_pending());
        assert!(queue.take_first().is_none(), "it has not been asked for");
        assert!(queue.poll(first, false, &mut cx).is_pending());
        assert!(queue.take_first().is_some() && queue.take_first().is_none());
        assert!(queue.poll(first, true, &mut cx).is_ready());
        queue.leave(second);
        assert!(queue.poll(third, true, &mut cx).is_pending());
        queue.leave(first);
        assert!(queue.take_first().is_some());
        assert!(queue.poll(third, true, &mut cx).is_ready());
        queue.leave(third);
        assert!(queue.is_empty());
    }
}
