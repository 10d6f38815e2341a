//! A request body that arrives piece by piece, or breaks off.

use std::{
    future::Future,
    pin::Pin,
    task::{ready, Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame};
use surus_zend::BoxError;
use tokio::time::Sleep;

pub(crate) struct Pieces {
    rest: Bytes,
    size: usize,
    pause: Duration,
    sleep: Option<Pin<Box<Sleep>>>,
    /// Bytes after which it fails.
    breaks_at: Option<usize>,
}

impl Pieces {
    pub(crate) fn new(whole: Bytes, pieces: u64, pause: Duration, breaks_off: bool) -> Pieces {
        Pieces {
            size: (whole.len() / pieces.max(1) as usize).max(1),
            breaks_at: breaks_off.then_some(whole.len() / 2),
            rest: whole,
            pause,
            sleep: None,
        }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let pause = self.pause;
        let sleep = self
            .sleep
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(pause)));
        ready!(sleep.as_mut().poll(cx));
        self.sleep = None;
        if self.breaks_at.is_some_and(|at| self.rest.len() <= at) {
            self.rest = Bytes::new();
            return Poll::Ready(Some(Err("the client has gone".into())));
        }
        let size = self.size.min(self.rest.len());
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(size)))))
    }
}
