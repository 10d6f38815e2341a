//! Sends the heads of one stream's responses: interim ones (RFC 9113, 8.1), then the final one.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, SendStream};
use http::{HeaderMap, Response, StatusCode};

use super::head;
use crate::SendInterim;

/// Most interim responses of one request; a backend that sends more has an error.
const MOST: u32 = 16;

#[derive(Debug)]
pub(crate) struct Respond {
    handle: RefCell<SendResponse<Bytes>>,
    /// The task to wake when the client resets the stream.
    task: RefCell<Option<Waker>>,
    /// Interim responses so far.
    interim: Cell<u32>,
}

impl Respond {
    pub(crate) fn new(handle: SendResponse<Bytes>) -> Rc<Self> {
        Rc::new(Respond {
            handle: RefCell::new(handle),
            task: RefCell::new(None),
            interim: Cell::new(0),
        })
    }

    /// A function with which a backend sends interim responses before the final one.
    pub(crate) fn interim(self: &Rc<Self>) -> SendInterim {
        let this = Rc::downgrade(self);
        Rc::new(move |status, headers| {
            this.upgrade()
                .is_some_and(|this| this.send_interim(status, headers))
        })
    }

    /// False if it cannot be sent any more.
    pub(crate) fn send_interim(&self, status: StatusCode, headers: &HeaderMap) -> bool {
        let task = self.task.borrow();
        // `h2` stores the waker.
        let mut cx = Context::from_waker(task.as_ref().unwrap_or(Waker::noop()));
        let mut handle = self.handle.borrow_mut();
        if self.interim.get() >= MOST || handle.poll_reset(&mut cx).is_ready() {
            return false;
        }
        let mut response = Response::new(());
        *response.status_mut() = status;
        *response.headers_mut() = headers.clone();
        head::strip(response.headers_mut());
        self.interim.set(self.interim.get() + 1);
        handle.send_informational(response).is_ok()
    }

    /// Ready if the client has reset the stream, or the connection is closed.
    pub(crate) fn poll_gone(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut task = self.task.borrow_mut();
        if !task
            .as_ref()
            .is_some_and(|waker| waker.will_wake(cx.waker()))
        {
            *task = Some(cx.waker().clone());
        }
        self.handle.borrow_mut().poll_reset(cx).map(|_| ())
    }

    /// Sends the final head. `None`: it cannot be sent, and the stream is reset.
    pub(crate) fn send(&self, head: Response<()>, is_all: bool) -> Option<SendStream<Bytes>> {
        let mut handle = self.handle.borrow_mut();
        match handle.send_response(head, is_all) {
            Ok(stream) => Some(stream),
            Err(_) => {
                handle.send_reset(Reason::INTERNAL_ERROR);
                None
            }
        }
    }
}
