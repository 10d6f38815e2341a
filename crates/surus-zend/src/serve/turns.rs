//! Turns of the thread for tasks that compute longer than a time slice: round robin, one after the other.
//!
//! Such tasks wait in a queue. Before the first of them resumes, the event loop runs once: sockets are polled, and
//! every other ready task is resumed once, which is often all that it needs. So a short request waits for one or two
//! time slices, however many tasks compute. Tasks that compute are not starved: for every two milliseconds that the
//! others take they get one, and one time slice at least.

use std::{
    cell::RefCell,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use crate::engine::queue::Queue;

/// A task that comes back sooner than this counts as one that never left the queue.
const AT_ONCE: Duration = Duration::from_millis(1);

/// The largest credit, however long another task had the thread, or the machine was stopped.
const MOST_CREDIT: Duration = Duration::from_millis(100);

#[derive(Default)]
struct TurnQueue {
    waiting: Queue,
    /// The time that tasks of this queue may run before the event loop runs again.
    credit: Duration,
    /// The end of the last turn.
    ended: Option<Instant>,
}

thread_local! {
    static QUEUE: RefCell<TurnQueue> = RefCell::default();
}

/// A position in the queue, then a turn. Dropping it ends both, and wakes the next task.
pub(crate) struct Ticket {
    number: u64,
    taken: Instant,
    /// The start of its turn.
    begun: Option<Instant>,
}

impl Ticket {
    /// Joins the end of the queue.
    pub(crate) fn take() -> Self {
        let taken = Instant::now();
        QUEUE.with_borrow_mut(|queue| {
            let is_back = queue.ended.is_some_and(|ended| taken - ended < AT_ONCE);
            if queue.waiting.is_empty() && !is_back {
                queue.credit = Duration::ZERO;
            }
            Ticket {
                number: queue.waiting.join(),
                taken,
                begun: None,
            }
        })
    }

    /// Ready when it is at the head of the queue.
    pub(crate) fn poll_first(&self, cx: &mut Context<'_>) -> Poll<()> {
        QUEUE.with_borrow_mut(|queue| queue.waiting.poll(self.number, true, cx))
    }

    /// Runs the event loop once, unless the queue has credit left; then its turn begins.
    pub(crate) async fn begin(&mut self) {
        if QUEUE.with_borrow(|queue| queue.credit.is_zero()) {
            tokio::task::yield_now().await;
        }
        let now = Instant::now();
        self.begun = Some(now);
        QUEUE.with_borrow_mut(|queue| {
            let since = queue.ended.map_or(self.taken, |at| at.max(self.taken));
            queue.credit = (queue.credit + (now - since) / 2).min(MOST_CREDIT);
        });
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // A thread that exits has no queue any more.
        let next = QUEUE.try_with(|queue| {
            let mut queue = queue.borrow_mut();
            if let Some(begun) = self.begun {
                let now = Instant::now();
                queue.credit = queue.credit.saturating_sub(now - begun);
                queue.ended = Some(now);
            }
            queue.waiting.leave(self.number);
            queue.waiting.take_first()
        });
        if let Ok(Some(waker)) = next {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        cell::Cell,
        future::{poll_fn, Future},
        rc::Rc,
        task::Waker,
    };

    use tokio::task::{spawn_local, yield_now, LocalSet};

    use super::*;

    fn spin(time: Duration) {
        let begun = Instant::now();
        while begun.elapsed() < time {
            std::hint::spin_loop();
        }
    }

    fn run(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        LocalSet::new().block_on(&runtime, test);
    }

    /// Computes for ever, and counts its turns.
    fn compute(turns: &Rc<Cell<usize>>, each: Duration) {
        let turns = Rc::clone(turns);
        spawn_local(async move {
            loop {
                let mut ticket = Ticket::take();
                poll_fn(|cx| ticket.poll_first(cx)).await;
                ticket.begin().await;
                spin(each);
                turns.set(turns.get() + 1);
            }
        });
    }

    #[test]
    fn who_is_ready_waits_for_one_of_those_that_compute() {
        run(async {
            let turns = Rc::new(Cell::new(0));
            for _ in 0..200 {
                compute(&turns, Duration::from_micros(200));
            }
            // Let all tasks start first.
            while turns.get() < 1000 {
                yield_now().await;
            }
            let mut all = [0; 20];
            for passed in &mut all {
                let before = turns.get();
                yield_now().await;
                *passed = turns.get() - before;
            }
            // The median: single values are larger if the machine was stopped meanwhile.
            all.sort_unstable();
            assert!(all[all.len() / 2] <= 2, "{all:?} turns");
        });
    }

    #[test]
    fn those_that_compute_take_turns_and_have_a_third_of_the_time() {
        run(async {
            let computing: Vec<_> = (0..5).map(|_| Rc::new(Cell::new(0))).collect();
            for turns in &computing {
                compute(turns, Duration::from_millis(1));
            }
            let others = Rc::new(Cell::new(0));
            for _ in 0..20 {
                let others = Rc::clone(&others);
                spawn_local(async move {
                    loop {
                        spin(Duration::from_millis(1));
                        others.set(others.get() + 1);
                        yield_now().await;
                    }
                });
            }
            while others.get() < 1000 {
                yield_now().await;
            }
            let turns: Vec<usize> = computing.iter().map(|it| it.get()).collect();
            let sum: usize = turns.iter().sum();
            assert!(sum > 1000 / 3, "{sum} turns");
            assert!(sum < 1000, "{sum} turns");
            let (least, most) = (turns.iter().min(), turns.iter().max());
            assert!(
                most.zip(least)
                    .is_some_and(|(most, least)| most - least <= 1),
                "{turns:?}"
            );
        });
    }

    #[test]
    fn who_leaves_the_line_lets_the_next_one_go_on() {
        let [first, second, third] = [(); 3].map(|()| Ticket::take());
        let mut cx = Context::from_waker(Waker::noop());
        assert!(first.poll_first(&mut cx).is_ready());
        assert!(second.poll_first(&mut cx).is_pending());
        drop(second);
        assert!(third.poll_first(&mut cx).is_pending());
        drop(first);
        assert!(third.poll_first(&mut cx).is_ready());
    }
}
