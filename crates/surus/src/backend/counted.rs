use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use http::header::{HeaderValue, CONNECTION};
use http::{Response, StatusCode};
use surus_edge::{Answer, Backend, Connection, Refusal, Reply, RequestBody};
use surus_master::Tally;

/// Wraps the backend of a worker: counts requests, and answers them if the code does not boot.
pub(crate) struct Counted<B> {
    inner: Rc<B>,
    tally: Tally,
    /// The worker drains: each response is the last one on its connection.
    leaving: Cell<bool>,
    requests: Cell<u64>,
    /// Why the code on disk does not boot (development): every request is answered with this error.
    broken: RefCell<Option<String>>,
}

impl<B> Counted<B> {
    pub(crate) fn new(inner: Rc<B>, tally: Tally) -> Self {
        Counted {
            inner,
            tally,
            leaving: Cell::new(false),
            requests: Cell::new(0),
            broken: RefCell::new(None),
        }
    }

    pub(crate) fn leave(&self) {
        self.leaving.set(true);
    }

    /// Requests that were answered.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.get()
    }

    pub(crate) fn set_broken(&self, error: Option<String>) {
        *self.broken.borrow_mut() = error;
    }

    pub(crate) fn broken(&self) -> Option<String> {
        self.broken.borrow().clone()
    }
}

impl<B: Backend> Backend for Counted<B> {
    type Body = B::Body;

    // Inlined into one function: otherwise requests and responses would be copied between these calls.
    #[inline(always)]
    fn call(
        self: &Rc<Self>,
        head: &mut http::request::Parts,
        body: Option<RequestBody>,
        connection: &Connection,
    ) -> Answer<B::Body> {
        match self.broken() {
            Some(error) => {
                Answer::Now(crate::broken::response(&error, &head.headers).map(Reply::Bytes))
            }
            None => self.inner.call(head, body, connection),
        }
    }

    fn ended(&self, response: &mut Response<Reply<B::Body>>) {
        if self.leaving.get() {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
        }
    }

    fn refused(&self, why: Refusal) {
        self.tally.refuse(why.name());
    }

    fn answered(&self, status: StatusCode, times: u32, took: Duration) {
        self.tally.count(status.as_u16(), times, took);
        self.requests.set(self.requests.get() + u64::from(times));
    }

    fn give_back_memory(&self) {
        surus_zend::give_back_memory();
    }
}
