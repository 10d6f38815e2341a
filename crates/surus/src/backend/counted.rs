use std::cell::Cell;
use std::rc::Rc;

use http::header::{HeaderValue, CONNECTION};
use http::Response;
use surus_edge::{Backend, Connection, Reply, RequestBody};

/// What every request of a worker goes through on its way to PHP.
pub(crate) struct Counted<B> {
    inner: Rc<B>,
    /// The worker is about to end: each response is its connection's last.
    leaving: Cell<bool>,
    requests: Cell<u64>,
}

impl<B> Counted<B> {
    pub(crate) fn new(inner: Rc<B>) -> Self {
        Counted {
            inner,
            leaving: Cell::new(false),
            requests: Cell::new(0),
        }
    }

    pub(crate) fn leave(&self) {
        self.leaving.set(true);
    }

    /// Requests that were answered.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.get()
    }
}

impl<B: Backend> Backend for Counted<B> {
    type Body = B::Body;

    async fn call(
        &self,
        request: http::Request<RequestBody>,
        connection: &Connection,
    ) -> Response<Reply<B::Body>> {
        let mut response = self.inner.call(request, connection).await;
        self.requests.set(self.requests.get() + 1);
        if self.leaving.get() {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
        }
        response
    }
}
