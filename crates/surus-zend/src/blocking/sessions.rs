//! What a session with PostgreSQL was asked since it was last clean, read from what libpq sends. A session that was only
//! asked to read (`reads.rs`) needs no reset.
//!
//! It is known only from a reset on, and only without encryption: anything that is not a whole message of the protocol
//! counts as more than reading.

use std::{
    cell::{Cell, RefCell},
    collections::HashSet,
    ffi::{c_char, c_int, CStr, CString},
    hash::{BuildHasher, RandomState},
    os::fd::RawFd,
    sync::OnceLock,
};

use super::reads::only_reads;

thread_local! {
    /// Sessions that were only asked to read.
    static READING: RefCell<HashSet<RawFd>> = RefCell::default();
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

fn end(fd: RawFd) {
    if COUNT.get() > 0 {
        let _ = READING.try_with(|all| {
            let mut all = all.borrow_mut();
            all.remove(&fd);
            COUNT.set(all.len());
        });
    }
}

/// Something is about to be sent.
pub(super) fn sends(fd: RawFd, bytes: &[u8]) {
    if COUNT.get() > 0 && surus_rs_session_only_reads(fd) && !are_reads(bytes) {
        end(fd);
    }
}

/// The descriptor is closed, or another one.
pub(super) fn forget(fd: RawFd) {
    end(fd);
}

/// The session has just been reset.
#[no_mangle]
extern "C" fn surus_rs_session_begins(fd: c_int) {
    READING.with_borrow_mut(|all| {
        all.insert(fd);
        COUNT.set(all.len());
    });
}

#[no_mangle]
extern "C" fn surus_rs_session_ends(fd: c_int) {
    end(fd);
}

/// # Safety
/// `text` ends with NUL.
#[no_mangle]
unsafe extern "C" fn surus_rs_text_only_reads(text: *const c_char) -> bool {
    // SAFETY: the caller's promise.
    only_reads(unsafe { CStr::from_ptr(text) }.to_bytes())
}

#[no_mangle]
extern "C" fn surus_rs_session_only_reads(fd: c_int) -> bool {
    COUNT.get() > 0 && READING.with_borrow(|all| all.contains(&fd))
}

/// How names of statements begin that the server keeps for later requests (`csrc/persistent/prepared.c`). Applications have
/// no such names: what they prepare by a name of their own needs a reset.
fn kept() -> &'static CStr {
    static MADE: OnceLock<CString> = OnceLock::new();
    MADE.get_or_init(|| {
        let random = RandomState::new().hash_one(());
        // Without NUL.
        CString::new(format!("surus_{random:016x}_")).unwrap_or_default()
    })
}

#[no_mangle]
extern "C" fn surus_rs_kept_names() -> *const c_char {
    kept().as_ptr()
}

fn split_at_nul(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

/// Whether these are whole messages of a client, none of which asks for more than reading.
fn are_reads(mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        let Some((&[kind, a, b, c, d], rest)) = bytes.split_first_chunk::<5>() else {
            return false;
        };
        let size = u32::from_be_bytes([a, b, c, d]) as usize;
        let Some(body) = size.checked_sub(4).and_then(|size| rest.get(..size)) else {
            return false;
        };
        bytes = &rest[body.len()..];
        let is_read = match kind {
            b'Q' => matches!(split_at_nul(body), Some((text, [])) if only_reads(text)),
            b'P' => split_at_nul(body).is_some_and(|(name, rest)| {
                let is_kept = name.is_empty() || name.starts_with(kept().to_bytes());
                is_kept && split_at_nul(rest).is_some_and(|(text, _)| only_reads(text))
            }),
            // Bind, describe, execute, sync, flush: what was prepared.
            b'B' | b'D' | b'E' | b'S' | b'H' => true,
            _ => false,
        };
        if !is_read {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::{forget, kept, sends, surus_rs_session_begins, surus_rs_session_only_reads};

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let size = (body.len() as u32 + 4).to_be_bytes();
        [&[kind], &size[..], body].concat()
    }

    fn stays_clean(bytes: &[u8]) -> bool {
        surus_rs_session_begins(7);
        sends(7, bytes);
        let stays = surus_rs_session_only_reads(7);
        sends(7, &message(b'Q', b"select 1\0"));
        assert_eq!(surus_rs_session_only_reads(7), stays);
        forget(7);
        assert!(!surus_rs_session_only_reads(7));
        stays
    }

    #[test]
    fn what_was_asked() {
        let prepared = |name: &[u8], text: &[u8]| {
            let body = [name, b"\0", text, b"\0\0\0"].concat();
            [message(b'P', &body), message(b'S', b"")].concat()
        };
        assert!(stays_clean(&message(b'Q', b"select 1\0")));
        assert!(stays_clean(&prepared(b"", b"select 1")));
        let own = [kept().to_bytes(), b"1"].concat();
        assert!(stays_clean(&prepared(&own, b"select 1")));
        let bound = [&b"\0"[..], &own[..], &b"\0"[..]].concat();
        assert!(stays_clean(&message(b'B', &bound)));
        assert!(!stays_clean(&prepared(b"surus_1", b"select 1")));
        assert!(!stays_clean(&prepared(b"pdo_stmt_00000001", b"select 1")));
        assert!(!stays_clean(&prepared(b"", b"set a.b to 'c'")));
        assert!(!stays_clean(&message(b'Q', b"set a.b to 'c'\0")));
        assert!(!stays_clean(&message(b'Q', b"select 1\0set a.b to 'c'\0")));
        assert!(!stays_clean(&message(b'F', b"\0\0\0\0")));
        let both = [message(b'Q', b"select 1\0"), message(b'Q', b"listen a\0")];
        assert!(!stays_clean(&both.concat()));
        // A part of a message, and no message at all.
        assert!(!stays_clean(&message(b'Q', b"select 1\0")[..9]));
        assert!(!stays_clean(b"Q\0\0\0\0select 1\0"));
        assert!(!stays_clean(b"\x17\x03\x03\0\x20"));
    }
}
