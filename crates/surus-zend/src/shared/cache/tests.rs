use super::*;

const MINUTE: u64 = 60_000_000_000;

fn text(cache: &Cache, key: &str, now: u64) -> Option<String> {
    let value = cache.read(key.as_bytes(), now)?;
    Some(String::from_utf8(value.bytes).expect("what was written"))
}

fn put(cache: &Cache, key: &str, value: &str) -> bool {
    cache.write(key.as_bytes(), 1, value.as_bytes(), MINUTE)
}

#[test]
fn values_stay_until_their_time() {
    let cache = Cache::new(LEAST_BYTES);
    assert!(put(&cache, "a", "one") && put(&cache, "b", ""));
    assert_eq!(text(&cache, "a", 0).as_deref(), Some("one"));
    assert_eq!(text(&cache, "b", 0).as_deref(), Some(""));
    assert_eq!(text(&cache, "c", 0), None);
    assert_eq!(text(&cache, "a", MINUTE - 1).as_deref(), Some("one"));
    assert_eq!(text(&cache, "a", MINUTE), None);
    assert!(cache.write(b"a", 7, b"two", u64::MAX));
    let value = cache.read(b"a", MINUTE).expect("it is there");
    assert_eq!((value.kind, &*value.bytes), (7, &b"two"[..]));
    cache.remove(b"a");
    assert_eq!(text(&cache, "a", 0), None);
}

#[test]
fn without_memory_nothing_is_kept() {
    let cache = Cache::new(0);
    assert!(!put(&cache, "a", "one"));
    assert_eq!(text(&cache, "a", 0), None);
    cache.remove(b"a");
    cache.clear(b"");
}

#[test]
fn only_keys_with_the_prefix_are_forgotten() {
    let cache = Cache::new(LEAST_BYTES);
    for i in 0..100 {
        assert!(put(&cache, &format!("x\0{i}"), "x") && put(&cache, &format!("xy\0{i}"), "y"));
    }
    cache.clear(b"x\0");
    for i in 0..100 {
        assert_eq!(text(&cache, &format!("x\0{i}"), 0), None);
        assert_eq!(
            text(&cache, &format!("xy\0{i}"), 0).as_deref(),
            Some("y"),
            "{i}"
        );
    }
}

#[test]
fn the_oldest_make_room_and_nothing_is_mixed_up() {
    let cache = Cache::new(LEAST_BYTES);
    let value = |i: usize| format!("{i}:").repeat(1 + i % 700);
    let count = 20_000;
    for i in 0..count {
        assert!(put(&cache, &format!("key {i}"), &value(i)), "{i}");
    }
    let mut found = 0;
    for i in 0..count {
        if let Some(text) = text(&cache, &format!("key {i}"), 0) {
            assert_eq!(text, value(i), "{i}");
            found += 1;
        }
    }
    assert!((100..count / 2).contains(&found), "{found}");
    let last = count - 1;
    assert_eq!(text(&cache, &format!("key {last}"), 0), Some(value(last)));

    let large = "x".repeat(LEAST_BYTES / SHARDS / LARGEST_PART);
    put(&cache, "large", "small");
    assert!(!put(&cache, "large", &large));
    assert_eq!(
        text(&cache, "large", 0),
        None,
        "no old value in place of one that does not fit"
    );
}

#[test]
fn small_entries_fill_the_index_before_the_ring() {
    let cache = Cache::new(LEAST_BYTES);
    let count = 100_000;
    for i in 0..count {
        assert!(put(&cache, &format!("{i}"), "v"));
    }
    let found = (0..count).filter(|i| text(&cache, &format!("{i}"), 0).is_some());
    assert!(found.count() > 4000);
    assert!(text(&cache, &format!("{}", count - 1), 0).is_some());
}

/// Concurrent processes: each value that is read is complete, and was written under its key.
#[test]
fn processes_write_at_the_same_time() {
    let cache = Cache::new(LEAST_BYTES);
    let work = |seed: u32| {
        for round in 0..20_000u32 {
            let mut number = seed.wrapping_mul(2_654_435_761) ^ round.wrapping_mul(40_503);
            number ^= number >> 13;
            let key = (number % 500).to_ne_bytes();
            if number & 0x4000 == 0 {
                let fill = (number >> 16) as u8;
                let mut value = [fill; 300];
                value[..4].copy_from_slice(&key);
                if !cache.write(&key, fill, &value[..4 + usize::from(fill)], MINUTE) {
                    return false;
                }
            } else if let Some(value) = cache.read(&key, 0) {
                let whole = value.bytes.len() == 4 + usize::from(value.kind)
                    && value.bytes[..4] == key
                    && value.bytes[4..].iter().all(|byte| *byte == value.kind);
                if !whole {
                    return false;
                }
            }
        }
        true
    };
    let children: Vec<_> = (0..4)
        .map(|seed| {
            // SAFETY: the child only computes, writes to memory that is there, and leaves; what it allocates could hang
            // only if another thread of this process held the allocator's lock, which glibc keeps out of a fork.
            match unsafe { libc::fork() } {
                0 => unsafe { libc::_exit(i32::from(!work(seed))) },
                child => child,
            }
        })
        .collect();
    assert!(work(99));
    for child in children {
        assert_eq!(wait(child), 0);
    }
}

#[test]
fn who_dies_with_a_lock_leaves_it_to_the_others() {
    let cache = Cache::new(LEAST_BYTES);
    put(&cache, "a", "one");
    let (shard, _) = cache.find(b"a").expect("a shard");
    // SAFETY: the child takes a lock, spoils what it protects, and leaves.
    let child = unsafe {
        match libc::fork() {
            0 => {
                std::mem::forget(shard.lock());
                libc::_exit(0)
            }
            child => child,
        }
    };
    assert_eq!(wait(child), 0);
    assert_eq!(text(&cache, "a", 0), None, "it may have been half written");
    assert!(put(&cache, "a", "two"));
    assert_eq!(text(&cache, "a", 0).as_deref(), Some("two"));
}

fn wait(child: i32) -> i32 {
    let mut status = -1;
    // SAFETY: a child of this process, and a place for its status.
    unsafe { libc::waitpid(child, &mut status, 0) };
    status
}
