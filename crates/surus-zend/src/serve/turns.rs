//! Who computes for longer than a time slice has its next turns behind everybody else's, one after the other.
//!
//! Such requests stand in line. Before the first of them goes on, the event loop goes round once: what has come to sockets
//! is looked at, and whoever else is ready has a step, which may be all that it takes. So a short request waits for a turn
//! or two of those that compute, however many they are. They are not put off for ever: for two milliseconds of the others
//! they have one, and a turn at the least.

use std::{
    cell::RefCell,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use crate::engine::queue::Queue;

/// Who comes back sooner than this has been in line all the time.
const AT_ONCE: Duration = Duration::from_millis(1);

/// However long somebody else had the thread, or the machine stood still.
const MOST_CREDIT: Duration = Duration::from_millis(100);

#[derive(Default)]
struct Line {
    waiting: Queue,
    /// For so long those in line go on without a round in between.
    credit: Duration,
    /// The end of the last turn.
    ended: Option<Instant>,
}

thread_local! {
    static LINE: RefCell<Line> = RefCell::default();
}

/// A place in line, and then a turn. Dropping it ends both, and lets the next one go on.
pub(crate) struct Place {
    number: u64,
    taken: Instant,
    /// The beginning of its turn.
    begun: Option<Instant>,
}

impl Place {
    /// The last one.
    pub(crate) fn take() -> Self {
        let taken = Instant::now();
        LINE.with_borrow_mut(|line| {
            let is_back = line.ended.is_some_and(|ended| taken - ended < AT_ONCE);
            if line.waiting.is_empty() && !is_back {
                line.credit = Duration::ZERO;
            }
            Place {
                number: line.waiting.join(),
                taken,
                begun: None,
            }
        })
    }

    /// Ready when it is the first one.
    pub(crate) fn poll_first(&self, cx: &mut Context<'_>) -> Poll<()> {
        LINE.with_borrow_mut(|line| line.waiting.poll(self.number, true, cx))
    }

    /// Lets the others have their step, unless those in line have time left; then its turn begins.
    pub(crate) async fn begin(&mut self) {
        if LINE.with_borrow(|line| line.credit.is_zero()) {
            tokio::task::yield_now().await;
        }
        let now = Instant::now();
        self.begun = Some(now);
        LINE.with_borrow_mut(|line| {
            let since = line.ended.map_or(self.taken, |at| at.max(self.taken));
            line.credit = (line.credit + (now - since) / 2).min(MOST_CREDIT);
        });
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A thread that ends has none.
        let next = LINE.try_with(|line| {
            let mut line = line.borrow_mut();
            if let Some(begun) = self.begun {
                let now = Instant::now();
                line.credit = line.credit.saturating_sub(now - begun);
                line.ended = Some(now);
            }
            line.waiting.leave(self.number);
            line.waiting.take_first()
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
                let mut place = Place::take();
                poll_fn(|cx| place.poll_first(cx)).await;
                place.begin().await;
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
            // At first all were new.
            while turns.get() < 1000 {
                yield_now().await;
            }
            let mut all = [0; 20];
            for passed in &mut all {
                let before = turns.get();
                yield_now().await;
                *passed = turns.get() - before;
            }
            // More where the machine stood still meanwhile.
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
        let [first, second, third] = [(); 3].map(|()| Place::take());
        let mut cx = Context::from_waker(Waker::noop());
        assert!(first.poll_first(&mut cx).is_ready());
        assert!(second.poll_first(&mut cx).is_pending());
        drop(second);
        assert!(third.poll_first(&mut cx).is_pending());
        drop(first);
        assert!(third.poll_first(&mut cx).is_ready());
    }
}
