//! Queues, as PHP asks for them: `csrc/app/queue.c`. Who keeps the jobs is the server's.

use std::{
    cell::{Cell, RefCell},
    ffi::{c_int, c_void},
    future::Future,
    pin::Pin,
    rc::Rc,
};

use bytes::Bytes;

use crate::{
    blocking::{can_park, park_on, Cancelled},
    exchange::{timers::Taken, Exchange},
    ffi::{self, Str},
};

/// JSON, and bytes for PHP; or why there are none.
pub type QueueAnswer = Result<(String, Bytes), String>;

/// Answers what PHP asks: a verb, JSON, bytes. `None`: nothing has to be waited for. Dropping the future gives the wait up.
pub type Keeper =
    dyn Fn(&str, &str, Bytes) -> Result<QueueAnswer, Pin<Box<dyn Future<Output = QueueAnswer>>>>;

thread_local! {
    static KEEPER: RefCell<Option<Rc<Keeper>>> = const { RefCell::new(None) };
    /// Of the last call, until C has copied it.
    static ANSWER: RefCell<(String, Bytes)> = const { RefCell::new((String::new(), Bytes::new())) };
}

/// Sets who keeps the jobs that PHP of this process pushes and takes.
pub fn queue_with(keeper: Rc<Keeper>) {
    KEEPER.replace(Some(keeper));
}

fn ask(
    exchange: Option<&Exchange>,
    verb: &str,
    head: &str,
    payload: Bytes,
) -> (c_int, (String, Bytes)) {
    let refused = |why: &str| (ffi::QUEUE_REFUSED, (why.to_owned(), Bytes::new()));
    let Some(keeper) = KEEPER.with_borrow(Clone::clone) else {
        return refused("this process has no queues");
    };
    let answer = match keeper(verb, head, payload) {
        Ok(answer) => Ok(answer),
        Err(_) if !can_park() => {
            return refused("PHP compiles a file or collects cycles, and cannot wait here");
        }
        Err(future) => {
            let kept = Cell::new(None);
            let waited = park_on(async {
                let answer = future.await;
                kept.set(Some(answer));
            });
            let answer = kept.into_inner();
            // Jobs and entries may come in the turn in which their request is cut off: whoever does not get them gives them back.
            let job = match &answer {
                Some(Ok((head, _))) if verb == "take" => taken(&keeper, head),
                _ => None,
            };
            match (waited, answer) {
                (Ok(()), Some(answer)) => {
                    if let (Some(job), Some(exchange)) = (job, exchange) {
                        exchange.timers.taken.borrow_mut().push(job);
                    }
                    Ok(answer)
                }
                (_, answer) => {
                    if let (Some(Ok((entries, _))), "read") = (answer, verb) {
                        // Nothing has to be waited for.
                        drop(keeper("unread", head, entries.into()));
                    }
                    Err(Cancelled)
                }
            }
        }
    };
    if let (Some(exchange), Some(id)) = (exchange.filter(|_| verb == "end"), id_of(head)) {
        let mut taken = exchange.timers.taken.borrow_mut();
        taken
            .iter_mut()
            .filter(|job| job.id == id)
            .for_each(|job| job.id.clear());
        taken.retain(|job| !job.id.is_empty());
    }
    match answer {
        Ok(Ok(answer)) => (ffi::QUEUE_ANSWERED, answer),
        Ok(Err(why)) => refused(&why),
        Err(_) => (ffi::QUEUE_CUT, Default::default()),
    }
}

/// Of a job, in JSON.
fn id_of(head: &str) -> Option<&str> {
    const KEY: &str = "\"id\":\"";
    let begin = head.find(KEY)? + KEY.len();
    head.get(begin..begin + 32)
}

fn taken(keeper: &Rc<Keeper>, head: &str) -> Option<Taken> {
    let keeper = Rc::clone(keeper);
    Some(Taken {
        id: id_of(head)?.to_owned(),
        // Nothing has to be waited for, and nobody is there who would.
        give_back: Rc::new(move |id| drop(keeper("back", id, Bytes::new()))),
    })
}

#[no_mangle]
unsafe extern "C" fn surus_rs_queue(
    exchange: *mut c_void,
    verb: Str,
    head: Str,
    payload: Str,
    answer: *mut Str,
    bytes: *mut Str,
) -> c_int {
    // SAFETY: C passes texts that live for this call.
    let (verb, head, payload) = unsafe {
        (
            String::from_utf8_lossy(verb.bytes()),
            String::from_utf8_lossy(head.bytes()),
            Bytes::copy_from_slice(payload.bytes()),
        )
    };
    // SAFETY: of the running task, if there is one.
    let exchange = (!exchange.is_null()).then(|| unsafe { Exchange::from_raw(exchange) });
    let (result, texts) = ask(exchange, &verb, &head, payload);
    ANSWER.with_borrow_mut(|kept| {
        *kept = texts;
        // SAFETY: both are writable; the bytes stay until `surus_rs_queue_copied`.
        unsafe {
            answer.write(Str::new(kept.0.as_bytes()));
            bytes.write(Str::new(&kept.1));
        }
    });
    result
}

#[no_mangle]
extern "C" fn surus_rs_queue_copied() {
    ANSWER.take();
}

#[no_mangle]
unsafe extern "C" fn surus_rs_queue_serve(exchange: *mut c_void, queues: Str) {
    // SAFETY: of the running task; and text that lives for this call.
    unsafe {
        let queues = String::from_utf8_lossy(queues.bytes()).into_owned();
        let exchange = Exchange::from_raw(exchange);
        exchange.timers.queues.replace(Some(queues));
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_queue_job(exchange: *mut c_void, head: *mut Str, payload: *mut Str) {
    // SAFETY: of the running task; the texts stay as they are while it runs, and both places are writable.
    unsafe {
        if let Some(job) = &*Exchange::from_raw(exchange).timers.job.borrow() {
            head.write(Str::new(job.head.as_bytes()));
            payload.write(Str::new(&job.payload));
        }
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_queue_end(exchange: *mut c_void, ending: Str) {
    // SAFETY: of the running task; and text that lives for this call.
    unsafe {
        let ending = String::from_utf8_lossy(ending.bytes()).into_owned();
        let exchange = Exchange::from_raw(exchange);
        exchange.timers.ending.replace(Some(ending));
    }
}
