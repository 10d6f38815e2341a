//! `Surus\offload()`: the running code waits for an answer of another process. How it is asked is the server's.

use std::{cell::RefCell, ffi::c_int, fmt, future::Future, pin::Pin, rc::Rc};

use bytes::Bytes;

use crate::{
    blocking::{can_park, park_on},
    exchange::request::{Request, RequestBody},
    ffi::{self, Str},
};

/// Why a job has no answer.
#[derive(Debug)]
pub enum NoAnswer {
    /// Its time was over.
    Late(String),
    /// Its process has died, or there was none; a sentence without a full stop.
    Failed(String),
}

/// What passes a job on: its name and all that its process needs to know; what that answers. Dropping the future gives
/// the job up.
pub type Offload = dyn Fn(&str, Bytes) -> Pin<Box<dyn Future<Output = Result<Bytes, NoAnswer>>>>;

/// Where jobs of this process run.
#[derive(Clone)]
pub enum Offloading {
    /// Nowhere, for this reason.
    Refused(String),
    /// In other processes.
    Elsewhere(Rc<Offload>),
}

impl fmt::Debug for Offloading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Offloading::Refused(_) => "Refused",
            Offloading::Elsewhere(_) => "Elsewhere",
        })
    }
}

thread_local! {
    static OFFLOADING: RefCell<Offloading> = const { RefCell::new(Offloading::Refused(String::new())) };
    /// Of the last call, until C has copied it.
    static ANSWER: RefCell<Bytes> = const { RefCell::new(Bytes::new()) };
}

/// Sets where jobs of this process run.
pub fn offload_to(offloading: Offloading) {
    OFFLOADING.replace(offloading);
}

impl Request {
    /// A job for the process that it is passed to. `name` is for logs.
    #[must_use]
    pub fn job(name: &str, payload: Bytes) -> Self {
        let path = format!("/{}", name.replace('\\', "/"));
        let uri = path.parse().unwrap_or_else(|_| http::Uri::from_static("/"));
        let method = http::Method::from_bytes(b"JOB").unwrap_or(http::Method::PUT);
        Request {
            method,
            peer: None,
            body: RequestBody::Full(payload),
            ..Request::nobodys(uri)
        }
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_offload(name: Str, payload: Str, answer: *mut Str) -> c_int {
    // SAFETY: C passes text that lives for this call, and a place for the answer.
    let (name, payload) = unsafe { (String::from_utf8_lossy(name.bytes()), payload.bytes()) };
    let (result, text) = match OFFLOADING.with_borrow(Clone::clone) {
        Offloading::Refused(why) => (ffi::OFFLOAD_REFUSED, Bytes::from(why)),
        Offloading::Elsewhere(_) if !can_park() => {
            let why = "PHP compiles a file or collects cycles, and cannot wait here";
            (ffi::OFFLOAD_REFUSED, Bytes::from_static(why.as_bytes()))
        }
        Offloading::Elsewhere(offload) => {
            match park_on(offload(&name, Bytes::copy_from_slice(payload))) {
                Ok(Ok(bytes)) => (ffi::OFFLOAD_ANSWERED, bytes),
                Ok(Err(NoAnswer::Late(why))) => (ffi::OFFLOAD_LATE, Bytes::from(why)),
                Ok(Err(NoAnswer::Failed(why))) => (ffi::OFFLOAD_FAILED, Bytes::from(why)),
                Err(_) => (ffi::OFFLOAD_CUT, Bytes::new()),
            }
        }
    };
    ANSWER.with_borrow_mut(|kept| {
        *kept = text;
        // SAFETY: `answer` is writable; the bytes stay until `surus_rs_offload_copied`.
        unsafe { answer.write(Str::new(kept)) };
    });
    result
}

#[no_mangle]
extern "C" fn surus_rs_offload_copied() {
    ANSWER.take();
}
