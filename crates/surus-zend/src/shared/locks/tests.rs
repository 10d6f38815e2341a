use tokio::{runtime::Builder, task::LocalSet};

use super::{table::Table, *};

fn on_a_loop<T>(work: impl std::future::Future<Output = T>) -> T {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    LocalSet::new().block_on(&runtime, work)
}

fn child(work: impl FnOnce()) -> i32 {
    // SAFETY: the child works with memory that is there, and leaves; glibc keeps the allocator's locks out of a fork.
    match unsafe { libc::fork() } {
        0 => {
            work();
            // SAFETY: ends the child, without what its parent would do at its end.
            unsafe { libc::_exit(0) }
        }
        child => child,
    }
}

fn end(child: i32, signal: i32) {
    let mut status = -1;
    // SAFETY: a child of this process, and a place for its status.
    unsafe {
        libc::kill(child, signal);
        libc::waitpid(child, &mut status, 0);
    }
}

#[test]
fn claims_are_served_in_order() {
    let table = Table::new().expect("memory");
    let open = table.open().expect("the table");
    let seat = open.sit_down().expect("a seat");
    let claims: Vec<_> = (0..4)
        .map(|_| open.claim(seat, 7).expect("a claim"))
        .collect();
    let other = open.claim(seat, 8).expect("a claim");
    assert!(open.holds(claims[0]) && open.holds(other));
    assert!(!claims[1..].iter().any(|claim| open.holds(*claim)));
    assert_eq!(open.release(claims[2]), None);
    assert_eq!(open.release(claims[0]), Some(claims[1]));
    // A place that was given up is another's.
    let late = open.claim(seat, 7).expect("a claim");
    assert_eq!(open.release(claims[1]), Some(claims[3]));
    assert_eq!(open.release(claims[3]), Some(late));
    assert_eq!(open.release(late), None);
    assert!(open.reap(seat).is_empty());
}

#[test]
fn there_is_a_bound() {
    let table = Table::new().expect("memory");
    let open = table.open().expect("the table");
    let seat = open.sit_down().expect("a seat");
    let first = open.claim(seat, 1).expect("a claim");
    while open.claim(seat, 1).is_ok() {}
    assert_eq!(open.claim(seat, 2), Err(NoClaim::TooMany));
    open.release(first);
    assert!(open.claim(seat, 2).is_ok());
}

/// Whoever dies, in the middle of a change or not, what it held is the next one's.
#[test]
fn a_dead_process_holds_nothing() {
    let table = Table::new().expect("memory");
    let seat = table.open().expect("the table").sit_down().expect("a seat");
    for number in 0..300u64 {
        let victim = child(|| {
            let sit = || table.open()?.sit_down();
            let Some(seat) = sit() else { return };
            loop {
                if let Some(open) = table.open() {
                    let claims = [1, 2, 3].map(|hash| open.claim(seat, hash));
                    drop(open);
                    for claim in claims.into_iter().flatten() {
                        table.open().and_then(|open| open.release(claim));
                    }
                }
            }
        });
        std::thread::sleep(Duration::from_micros(200 + number * 37 % 600));
        end(victim, libc::SIGKILL);
        let open = table.open().expect("the table");
        let claims = [1, 2, 3].map(|hash| open.claim(seat, hash).expect("a claim"));
        open.reap(seat);
        for claim in claims {
            assert!(open.holds(claim), "{number}");
            open.release(claim);
        }
    }
}

#[test]
fn requests_wait_for_each_other() {
    on_a_loop(async {
        let wait = Duration::from_secs(20);
        let take = |wait| Lock::take(b"requests", wait);
        let first = take(wait).await.expect("locks").expect("it is free");
        assert!(take(Duration::ZERO).await.expect("locks").is_none());
        assert!(take(Duration::from_millis(20))
            .await
            .expect("locks")
            .is_none());
        let order = std::rc::Rc::new(Cell::new(0));
        let waiters: Vec<_> = (0..50)
            .map(|number| {
                let order = order.clone();
                tokio::task::spawn_local(async move {
                    let lock = Lock::take(b"requests", wait).await.expect("locks");
                    assert_eq!(order.replace(number + 1), number);
                    assert!(lock.is_some());
                })
            })
            .collect();
        tokio::task::yield_now().await;
        drop(first);
        for waiter in waiters {
            waiter.await.expect("it has the lock in its turn");
        }
        assert!(take(Duration::ZERO).await.expect("locks").is_some());
    });
}

#[test]
fn a_lock_of_another_process_comes_with_its_end() {
    start();
    let mut pipe = [0; 2];
    // SAFETY: room for two descriptors.
    assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
    let holder = child(|| {
        let taken = on_a_loop(Lock::take(b"processes", Duration::ZERO));
        let byte = [u8::from(matches!(taken, Ok(Some(_))))];
        // SAFETY: readable bytes; then it waits for its end.
        unsafe {
            libc::write(pipe[1], byte.as_ptr().cast(), 1);
            libc::pause();
        }
    });
    let mut byte = [0];
    // SAFETY: room for a byte.
    unsafe { libc::read(pipe[0], byte.as_mut_ptr().cast(), 1) };
    assert_eq!(byte, [1]);
    on_a_loop(async {
        let take = |wait| Lock::take(b"processes", wait);
        assert!(take(Duration::ZERO).await.expect("locks").is_none());
        let waiter = tokio::task::spawn_local(take(Duration::from_secs(60)));
        tokio::task::yield_now().await;
        end(holder, libc::SIGKILL);
        assert!(waiter.await.expect("it ends").expect("locks").is_some());
    });
}
