use super::{change::*, entry, *};

const MINUTE: u64 = 60_000_000_000;
const INT: u8 = 5;

fn text(store: &Store, key: &str, now: u64) -> Option<String> {
    let mut bytes = Vec::new();
    store.read(key.as_bytes(), now, &mut bytes)?;
    Some(String::from_utf8(bytes).expect("what was written"))
}

fn new(value: &str) -> New<'_> {
    New {
        kind: 1,
        number: 0,
        bytes: value.as_bytes(),
        until: MINUTE,
        is_kept: false,
    }
}

fn put(store: &Store, key: &str, value: &str) -> bool {
    store.write(key.as_bytes(), &new(value), 0).is_ok()
}

fn step(store: &Store, key: &str, by: i64) -> Result<i64, NoNumber> {
    let step = Step {
        kind: INT,
        by,
        initial: 10,
        until: MINUTE,
        is_kept: true,
    };
    store.step(key.as_bytes(), &step, 0)
}

/// Counters agree with what is there.
fn check(store: &Store) {
    for shard in &store.shards {
        let counters = shard.counters;
        let counted = || {
            let all = [counters.entries, counters.words, counters.kept];
            all.map(|counter| counter.load(std::sync::atomic::Ordering::Relaxed))
        };
        let before = counted();
        shard.lock().expect("the lock").count_again();
        assert_eq!(before, counted());
    }
}

#[test]
fn values_stay_until_their_time() {
    let store = Store::new(LEAST_BYTES);
    assert!(put(&store, "a", "one") && put(&store, "b", "") && put(&store, "", "empty"));
    assert_eq!(text(&store, "a", 0).as_deref(), Some("one"));
    assert_eq!(text(&store, "b", 0).as_deref(), Some(""));
    assert_eq!(text(&store, "", 0).as_deref(), Some("empty"));
    assert_eq!(text(&store, "c", 0), None);
    assert_eq!(text(&store, "a", MINUTE - 1).as_deref(), Some("one"));
    assert_eq!(text(&store, "a", MINUTE), None);
    assert_eq!(store.touch(b"a", 2 * MINUTE, 0), Ok(true));
    assert_eq!(text(&store, "a", MINUTE).as_deref(), Some("one"));
    assert_eq!(store.remove(b"a", 0), Ok(true));
    assert_eq!(store.remove(b"a", 0), Ok(false));
    assert_eq!(store.touch(b"a", 2 * MINUTE, 0), Ok(false));
    assert_eq!(text(&store, "a", 0), None);
    check(&store);
}

#[test]
fn without_memory_nothing_is_kept() {
    let store = Store::new(0);
    assert!(!put(&store, "a", "one"));
    assert_eq!(text(&store, "a", 0), None);
    assert_eq!(store.remove(b"a", 0), Ok(false));
    assert_eq!(
        step(&store, "a", 1),
        Err(NoNumber::Refused(Refusal::Unavailable))
    );
    store.clear(b"");
}

#[test]
fn changes_have_conditions() {
    let store = Store::new(LEAST_BYTES);
    let is = |bytes| Condition::Is {
        kind: 1,
        number: 0,
        bytes,
    };
    let change = |condition, value| store.write_if(b"a", &condition, &new(value), 0);
    assert_eq!(change(Condition::Present, "one"), Ok(false));
    assert_eq!(change(is(b"one"), "two"), Ok(false));
    assert_eq!(change(Condition::Absent, "one"), Ok(true));
    assert_eq!(change(Condition::Absent, "two"), Ok(false));
    assert_eq!(change(is(b"on"), "two"), Ok(false));
    assert_eq!(change(is(b"one"), "two"), Ok(true));
    assert_eq!(change(Condition::Present, "three"), Ok(true));
    assert_eq!(text(&store, "a", 0).as_deref(), Some("three"));
    // What has expired is absent.
    assert_eq!(
        store.write_if(b"a", &Condition::Absent, &new("four"), MINUTE),
        Ok(true)
    );
    check(&store);
}

#[test]
fn numbers() {
    let store = Store::new(LEAST_BYTES);
    assert_eq!(step(&store, "n", 5), Ok(15));
    assert_eq!(step(&store, "n", -20), Ok(-5));
    assert_eq!(step(&store, "n", i64::MAX), Ok(i64::MAX - 5));
    assert_eq!(step(&store, "n", 6), Err(NoNumber::Overflow));
    assert!(put(&store, "t", "text"));
    assert_eq!(step(&store, "t", 1), Err(NoNumber::Other));
    check(&store);
}

#[test]
fn only_keys_with_the_prefix_are_forgotten() {
    let store = Store::new(LEAST_BYTES);
    for i in 0..100 {
        assert!(put(&store, &format!("x\0{i}"), "x") && put(&store, &format!("xy\0{i}"), "y"));
    }
    store.clear(b"x\0");
    for i in 0..100 {
        assert_eq!(text(&store, &format!("x\0{i}"), 0), None);
        assert_eq!(
            text(&store, &format!("xy\0{i}"), 0).as_deref(),
            Some("y"),
            "{i}"
        );
    }
    check(&store);
}

#[test]
fn what_is_read_stays_and_nothing_is_mixed_up() {
    let store = Store::new(LEAST_BYTES);
    let value = |i: usize| format!("{i}:").repeat(1 + i % 700);
    let count = 20_000;
    assert!(put(&store, "read often", "stays") && put(&store, "read never", "goes"));
    for i in 0..count {
        assert!(put(&store, &format!("key {i}"), &value(i)), "{i}");
        assert!(text(&store, "read often", 0).is_some(), "{i}");
    }
    assert_eq!(text(&store, "read never", 0), None);
    let mut found = 0;
    for i in 0..count {
        if let Some(text) = text(&store, &format!("key {i}"), 0) {
            assert_eq!(text, value(i), "{i}");
            found += 1;
        }
    }
    assert!((100..count / 2).contains(&found), "{found}");
    let last = count - 1;
    assert_eq!(text(&store, &format!("key {last}"), 0), Some(value(last)));
    check(&store);

    let large = "x".repeat(LEAST_BYTES / SHARDS / 4);
    put(&store, "large", "small");
    assert_eq!(
        store.write(b"large", &new(&large), 0),
        Err(Refusal::TooLarge)
    );
    assert_eq!(
        text(&store, "large", 0),
        None,
        "no old value in place of one that does not fit"
    );
    assert!(!put(&store, &large, "its key"));
    check(&store);
}

#[test]
fn small_entries() {
    let store = Store::new(LEAST_BYTES);
    let count = 100_000;
    for i in 0..count {
        assert!(put(&store, &format!("{i}"), "v"));
    }
    let found = (0..count).filter(|i| text(&store, &format!("{i}"), 0).is_some());
    assert!(found.count() > 8000);
    assert!(text(&store, &format!("{}", count - 1), 0).is_some());
    check(&store);
}

#[test]
fn what_is_kept_has_a_bound_and_stays() {
    let store = Store::new(LEAST_BYTES);
    let mut kept = 0;
    let full = loop {
        match step(&store, &format!("n{kept}"), 1) {
            Ok(_) => kept += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(full, NoNumber::Refused(Refusal::Full));
    assert!(kept > 1000, "{kept}");
    for i in 0..50_000 {
        put(&store, &format!("key {i}"), "some value or other");
    }
    check(&store);
    for i in 0..kept {
        assert_eq!(step(&store, &format!("n{i}"), 1), Ok(12), "{i}");
    }
    // Those that have expired make room for others.
    let later = Step {
        kind: INT,
        by: 1,
        initial: 0,
        until: 3 * MINUTE,
        is_kept: true,
    };
    for i in 0..kept / 2 {
        let key = format!("m{i}");
        assert_eq!(store.step(key.as_bytes(), &later, 2 * MINUTE), Ok(1));
    }
    let large = "k".repeat(LEAST_BYTES / SHARDS / 8);
    assert_eq!(
        step(&store, &large, 1),
        Err(NoNumber::Refused(Refusal::TooLarge))
    );
    check(&store);
}

/// A value that is whole only if all of its bytes are one number's.
fn fill(key: u32, byte: u8) -> Vec<u8> {
    let mut value = vec![byte; 4 + 3 * usize::from(byte)];
    value[..4].copy_from_slice(&key.to_ne_bytes());
    value
}

/// Whether each value that is read is complete, and was written under its key.
fn churn(store: &Store, seed: u32, rounds: u32) -> bool {
    let mut bytes = Vec::new();
    for round in 0..rounds {
        let mut number = seed.wrapping_mul(2_654_435_761) ^ round.wrapping_mul(40_503);
        number ^= number >> 13;
        let key = number % 500;
        if number & 0x4000 == 0 {
            let byte = (number >> 16) as u8;
            let value = New {
                kind: byte,
                number: i64::from(byte),
                bytes: &fill(key, byte),
                until: MINUTE,
                is_kept: false,
            };
            match store.write(&key.to_ne_bytes(), &value, 0) {
                // On a busy machine who has the lock may not run for longer than writers wait.
                Ok(_) | Err(Refusal::Unavailable) => {}
                Err(_) => return false,
            }
        } else if let Some(head) = store.read(&key.to_ne_bytes(), 0, &mut bytes) {
            if bytes != fill(key, head.kind) || head.number != i64::from(head.kind) {
                return false;
            }
        }
    }
    true
}

fn child(work: impl FnOnce() -> bool) -> i32 {
    // SAFETY: the child only computes, writes to memory that is there, and leaves; what it allocates could hang
    // only if another thread of this process held the allocator's lock, which glibc keeps out of a fork.
    match unsafe { libc::fork() } {
        0 => unsafe { libc::_exit(i32::from(!work())) },
        child => child,
    }
}

fn wait(child: i32) -> i32 {
    let mut status = -1;
    // SAFETY: a child of this process, and a place for its status.
    unsafe { libc::waitpid(child, &mut status, 0) };
    status
}

#[test]
fn processes_write_at_the_same_time() {
    let store = Store::new(LEAST_BYTES);
    let children: Vec<_> = (0..4)
        .map(|seed| child(|| churn(&store, seed, 20_000)))
        .collect();
    assert!(churn(&store, 99, 20_000));
    for child in children {
        assert_eq!(wait(child), 0);
    }
    check(&store);
}

#[test]
fn who_dies_with_a_lock_leaves_the_old_values() {
    let store = Store::new(LEAST_BYTES);
    put(&store, "a", "one");
    let (shard, _) = store.find(b"a").expect("a shard");
    let dying = child(|| {
        std::mem::forget(shard.lock());
        true
    });
    assert_eq!(wait(dying), 0);
    assert_eq!(text(&store, "a", 0).as_deref(), Some("one"));
    assert!(put(&store, "a", "two"));
    assert_eq!(text(&store, "a", 0).as_deref(), Some("two"));
    check(&store);
}

/// Killed at any instruction: nothing is torn, no lock is held for ever, and what was written before stays.
#[test]
fn a_thousand_deaths_while_writing() {
    let store = Store::new(LEAST_BYTES);
    for number in 0..1000u64 {
        let victim = child(|| loop {
            if !churn(&store, number as u32, 1000) {
                return false;
            }
        });
        // More than a write takes, and another time for each.
        std::thread::sleep(std::time::Duration::from_micros(200 + number * 37 % 600));
        // SAFETY: a child of this process.
        unsafe { libc::kill(victim, libc::SIGKILL) };
        assert_eq!(wait(victim), libc::SIGKILL, "{number}");
        let key = format!("mine {number}");
        assert!(put(&store, &key, &key), "{number}");
        assert_eq!(text(&store, &key, 0), Some(key), "{number}");
    }
    assert!(churn(&store, 1, 20_000));
    check(&store);
}

#[test]
fn sizes_are_whole_units() {
    for (key, value) in [(0, 0), (1, 0), (8, 9), (64 << 10, 17)] {
        assert_eq!(entry::words(key, value) % entry::UNIT, 0);
    }
}
