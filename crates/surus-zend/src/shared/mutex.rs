//! A mutex between processes. If its holder dies, the next process gets it and is notified of that.

use std::{cell::UnsafeCell, io, mem::MaybeUninit, slice};

use super::memory;

/// A holder only copies some bytes: it takes longer than this only if its process does not run, and the requests of this
/// worker must not wait for that.
const PATIENCE_NANOSECONDS: i64 = 500_000_000;

extern "C" {
    /// Since glibc 2.30; the crate `libc` does not have it. `pthread_mutex_timedlock()` waits by the clock that may be set: for hours
    /// if somebody sets it back meanwhile.
    fn pthread_mutex_clocklock(
        mutex: *mut libc::pthread_mutex_t,
        clock: libc::clockid_t,
        until: *const libc::timespec,
    ) -> libc::c_int;
}

/// A mutex in memory that processes share; it does not move.
/// Each has a cache line: its neighbours are others' to write.
#[repr(C, align(64))]
pub(crate) struct Mutex(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: a mutex that processes share is for threads, too.
unsafe impl Sync for Mutex {}

/// It is held until this is dropped.
pub(crate) struct Held<'a> {
    lock: &'a Mutex,
    /// Its last holder died: what it protects may be half written.
    pub(crate) is_orphan: bool,
}

impl Mutex {
    /// Some, in memory that processes forked from this one share.
    pub(crate) fn several(count: usize) -> io::Result<&'static [Mutex]> {
        let place: *mut Mutex = memory::zeros(count * size_of::<Mutex>())?.cast();
        for i in 0..count {
            // SAFETY: a part of a new mapping of that size, which nobody uses yet and which is never unmapped.
            if !unsafe { Mutex::make(place.add(i)) } {
                return Err(io::Error::other("no lock between processes"));
            }
        }
        // SAFETY: page-aligned, of that size, never unmapped, and all of them are made.
        Ok(unsafe { slice::from_raw_parts(place, count) })
    }

    /// # Safety
    ///
    /// `place` is its final address, in shared memory that is not used yet.
    unsafe fn make(place: *mut Mutex) -> bool {
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

    /// None if it stays locked for [`PATIENCE_NANOSECONDS`].
    pub(crate) fn hold(&self) -> Option<Held<'_>> {
        // SAFETY: the mutex was initialised; the time is writable, and an absolute time of the right clock.
        let result = unsafe {
            match libc::pthread_mutex_trylock(self.0.get()) {
                libc::EBUSY => {
                    let mut until = libc::timespec {
                        tv_sec: 0,
                        tv_nsec: 0,
                    };
                    libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut until);
                    let nanoseconds = until.tv_nsec + PATIENCE_NANOSECONDS;
                    until.tv_sec += nanoseconds / 1_000_000_000;
                    until.tv_nsec = nanoseconds % 1_000_000_000;
                    pthread_mutex_clocklock(self.0.get(), libc::CLOCK_MONOTONIC, &until)
                }
                other => other,
            }
        };
        self.held(result)
    }

    /// None if another thread holds it.
    pub(crate) fn try_hold(&self) -> Option<Held<'_>> {
        // SAFETY: the mutex was initialised.
        self.held(unsafe { libc::pthread_mutex_trylock(self.0.get()) })
    }

    fn held(&self, result: libc::c_int) -> Option<Held<'_>> {
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
