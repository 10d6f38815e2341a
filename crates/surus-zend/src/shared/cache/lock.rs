//! A lock between processes. Who dies with it leaves it to the next one, who is told.

use std::{cell::UnsafeCell, mem::MaybeUninit};

/// Whoever holds it copies some bytes: longer than this only somebody does who was stopped, and the requests of this worker
/// should not stop with him.
const PATIENCE_NANOSECONDS: i64 = 50_000_000;

/// In memory that processes share; it does not move.
#[repr(transparent)]
pub(super) struct Lock(UnsafeCell<libc::pthread_mutex_t>);

/// It is held until this is dropped.
pub(super) struct Held<'a> {
    lock: &'a Lock,
    /// Its last holder died: what it protects may be half written.
    pub(super) is_orphan: bool,
}

impl Lock {
    /// # Safety
    ///
    /// `place` is where it will stay, in shared memory that nobody uses yet.
    pub(super) unsafe fn make(place: *mut Lock) -> bool {
        // SAFETY: the attributes are initialised by the first call; the caller vouches for the place.
        unsafe {
            let mut attributes = MaybeUninit::<libc::pthread_mutexattr_t>::uninit();
            if libc::pthread_mutexattr_init(attributes.as_mut_ptr()) != 0 {
                return false;
            }
            let attributes = attributes.as_mut_ptr();
            let good = libc::pthread_mutexattr_setpshared(attributes, libc::PTHREAD_PROCESS_SHARED)
                == 0
                && libc::pthread_mutexattr_setrobust(attributes, libc::PTHREAD_MUTEX_ROBUST) == 0
                && libc::pthread_mutex_init((*place).0.get(), attributes) == 0;
            libc::pthread_mutexattr_destroy(attributes);
            good
        }
    }

    /// None if it is not to be had soon.
    pub(super) fn hold(&self) -> Option<Held<'_>> {
        // SAFETY: the mutex was made; the time is writable, and given as the clock says it.
        let result = unsafe {
            match libc::pthread_mutex_trylock(self.0.get()) {
                libc::EBUSY => {
                    let mut until = libc::timespec {
                        tv_sec: 0,
                        tv_nsec: 0,
                    };
                    libc::clock_gettime(libc::CLOCK_REALTIME, &mut until);
                    let nanoseconds = until.tv_nsec + PATIENCE_NANOSECONDS;
                    until.tv_sec += nanoseconds / 1_000_000_000;
                    until.tv_nsec = nanoseconds % 1_000_000_000;
                    libc::pthread_mutex_timedlock(self.0.get(), &until)
                }
                other => other,
            }
        };
        match result {
            0 => Some(false),
            libc::EOWNERDEAD => {
                // SAFETY: it is held by this thread, and its holder has died.
                unsafe { libc::pthread_mutex_consistent(self.0.get()) };
                Some(true)
            }
            _ => None,
        }
        .map(|is_orphan| Held {
            lock: self,
            is_orphan,
        })
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // SAFETY: it is held by this thread.
        unsafe { libc::pthread_mutex_unlock(self.lock.0.get()) };
    }
}
