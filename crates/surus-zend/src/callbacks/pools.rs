//! What the pools of connections of this process have done, for `surus status`.

use std::{cell::RefCell, collections::BTreeMap, mem::MaybeUninit};

use super::postgres;
use crate::ffi::{self, Str};

/// A script that makes pools without end is not remembered whole.
const MOST: usize = 200;

/// A pool of connections to one database.
#[derive(Clone, Debug)]
pub struct Pool {
    /// Who opens them: `PDO`, `pgsql`, `mysqli` and `phpredis` for persistent connections, `Surus\Pool`, `Surus\Postgres`.
    pub kind: String,
    /// Where they lead to, without a password, or where the pool was made.
    pub address: String,
    /// How many there may be; 0: no limit.
    pub max: u64,
    /// How many are free,
    pub idle: u64,
    /// and how many are not.
    pub in_use: u64,
    /// Requests that wait for one.
    pub waiting: u64,
    /// How often one was given back, and cleaned.
    pub resets: u64,
    /// How often one could not be given back: it was lost, or could not be cleaned.
    pub dropped: u64,
    /// How many were closed because they were unused or old.
    pub closed: u64,
}

thread_local! {
    static NOTED: RefCell<(u64, BTreeMap<u64, Pool>)> = const { RefCell::new((0, BTreeMap::new())) };
}

/// The position of the first of these characters without a backslash before it.
fn end_of(text: &str, ends: &[char]) -> Option<usize> {
    let mut is_escaped = false;
    let is_end = |&(_, character): &(usize, char)| {
        let counts = !std::mem::replace(&mut is_escaped, false);
        is_escaped = counts && character == '\\';
        counts && ends.contains(&character)
    };
    text.char_indices().find(is_end).map(|(at, _)| at)
}

/// Without what may be a password.
fn without_password(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(at) = rest.to_ascii_lowercase().find("password") {
        let (before, secret) = rest.split_at(at + "password".len());
        kept.push_str(before);
        let value = secret.trim_start_matches([' ', '=']);
        let end = match value.strip_prefix('\'') {
            Some(quoted) => end_of(quoted, &['\'']).map_or(value.len(), |end| end + 2),
            None => end_of(value, &[' ', ';', '&']).unwrap_or(value.len()),
        };
        kept.push_str("=…");
        rest = &value[end..];
    }
    kept.push_str(rest);
    match (kept.find("://"), kept.rfind('@')) {
        (Some(scheme), Some(host)) if scheme < host => {
            let user = &kept[scheme + 3..host];
            let user = user.split(':').next().unwrap_or_default();
            format!("{}://{user}{}", &kept[..scheme], &kept[host..])
        }
        _ => kept,
    }
}

/// The arguments of a constructor: texts, each behind its length.
fn parts(mut packed: &[u8]) -> Vec<String> {
    let mut parts = Vec::new();
    while let Some((size, rest)) = packed.split_first_chunk::<{ size_of::<usize>() }>() {
        let Some((text, rest)) = rest.split_at_checked(usize::from_ne_bytes(*size)) else {
            break;
        };
        parts.push(String::from_utf8_lossy(text).into_owned());
        packed = rest;
    }
    parts
}

fn address(kind: &str, parts: &[String]) -> String {
    let part = |index: usize| parts.get(index).map_or("", String::as_str);
    let shown = match kind {
        // Never the password, which is the third.
        "PDO" => vec![part(0), part(1), part(3)],
        "mysqli" => vec![part(0), part(4), part(3), part(1), part(5)],
        _ => parts.iter().map(String::as_str).collect(),
    };
    let shown: Vec<&str> = shown.into_iter().filter(|text| !text.is_empty()).collect();
    without_password(&shown.join(" "))
}

impl Pool {
    fn new(figures: &ffi::PoolFigures, address: String) -> Self {
        let mut pool = Pool {
            // SAFETY: names of kinds are literals, or live for the call that has passed them.
            kind: String::from_utf8_lossy(unsafe { figures.kind.bytes() }).into_owned(),
            address,
            max: 0,
            idle: 0,
            in_use: 0,
            waiting: 0,
            resets: 0,
            dropped: 0,
            closed: 0,
        };
        pool.count(figures);
        pool
    }

    fn count(&mut self, figures: &ffi::PoolFigures) {
        self.max = u64::from(figures.max);
        self.idle = u64::from(figures.idle);
        self.in_use = u64::from(figures.in_use);
        self.waiting = u64::from(figures.waiting);
        self.resets = figures.resets;
        self.dropped = figures.dropped;
        self.closed = figures.closed;
    }
}

/// All pools of connections of this process.
#[must_use]
pub fn pools() -> Vec<Pool> {
    let mut all = Vec::new();
    for index in 0..MOST {
        let mut figures = MaybeUninit::uninit();
        // SAFETY: C writes the figures if it returns true; the name of a pool is used before C runs again.
        let (figures, name) = unsafe {
            if !ffi::surus_pool_figure(index, figures.as_mut_ptr()) {
                break;
            }
            let figures: ffi::PoolFigures = figures.assume_init();
            let name = parts(figures.name.bytes());
            (figures, name)
        };
        let mut found = Pool::new(&figures, String::new());
        found.address = address(&found.kind, &name);
        all.push(found);
    }
    NOTED.with_borrow(|(_, noted)| all.extend(noted.values().cloned()));
    all.extend(postgres::pools());
    all
}

#[no_mangle]
unsafe extern "C" fn surus_rs_note_pool(number: u64, figures: ffi::PoolFigures) -> u64 {
    NOTED.with_borrow_mut(|(last, noted)| {
        let number = match number {
            0 => {
                *last += 1;
                *last
            }
            number => number,
        };
        match noted.get_mut(&number) {
            Some(known) => known.count(&figures),
            None => {
                if noted.len() >= MOST {
                    noted.pop_first();
                }
                let name: &Str = &figures.name;
                // SAFETY: the name lives for this call.
                let name = String::from_utf8_lossy(unsafe { name.bytes() }).into_owned();
                noted.insert(number, Pool::new(&figures, name));
            }
        }
        number
    })
}

#[no_mangle]
extern "C" fn surus_rs_forget_pool(number: u64) {
    // A pool may be freed when the process ends.
    let _ = NOTED.try_with(|noted| noted.borrow_mut().1.remove(&number));
}

#[cfg(test)]
mod tests {
    use super::{address, parts, without_password};

    #[test]
    fn no_password_is_shown() {
        for (text, shown) in [
            ("host=a password=secret user=b", "host=a password=… user=b"),
            (
                "host=a;PASSWORD = 'se cret';user=b",
                "host=a;PASSWORD=…;user=b",
            ),
            (r"password='a\' b c' host=x", "password=… host=x"),
            (r"password=a\ b host=x", "password=… host=x"),
            ("postgresql://me:secret@host/db", "postgresql://me@host/db"),
            (
                "postgresql://me@host/db?password=x&a=b",
                "postgresql://me@host/db?password=…&a=b",
            ),
            ("pgsql:host=a me", "pgsql:host=a me"),
        ] {
            assert_eq!(without_password(text), shown);
        }
        let packed: Vec<u8> = ["mysql:host=a", "me", "secret", "imports"]
            .iter()
            .flat_map(|text| [&text.len().to_ne_bytes(), text.as_bytes()].concat())
            .collect();
        assert_eq!(address("PDO", &parts(&packed)), "mysql:host=a me imports");
    }
}
