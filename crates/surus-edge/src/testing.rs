//! Connections in memory, with input split as a test wants it: they need no socket, and time passes only when all tasks
//! wait.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fs::File;
use std::future::Future;
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use tokio::task::{spawn_local, LocalSet};

use crate::connection::transport::Transport;
use crate::request::edge::Edge;
use crate::server::lifecycle;
use crate::{Backend, Connection};

/// What a client does after it has sent everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// It waits for the server to close.
    Waits,
    /// It closes its sending direction.
    Ends,
}

/// A client that sends one piece per turn, and reads everything.
#[derive(Debug)]
struct Memory {
    pieces: RefCell<VecDeque<Bytes>>,
    then: Then,
    /// The next piece is readable.
    has_come: Cell<bool>,
    received: Rc<RefCell<Vec<u8>>>,
}

impl Transport for Memory {
    fn poll_read(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut BytesMut,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        let mut pieces = self.pieces.borrow_mut();
        let Some(piece) = pieces.front_mut() else {
            return match self.then {
                Then::Waits => Poll::Pending,
                Then::Ends => Poll::Ready(Ok(0)),
            };
        };
        if !self.has_come.replace(true) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let taken = piece.split_to(piece.len().min(most));
        buffer.extend_from_slice(&taken);
        if piece.is_empty() {
            pieces.pop_front();
            self.has_come.set(false);
        }
        Poll::Ready(Ok(taken.len()))
    }

    fn poll_arrival(&self, _: &mut Context<'_>) -> Poll<io::Result<bool>> {
        Poll::Ready(Ok(!self.pieces.borrow().is_empty()))
    }

    fn try_write(&self, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut received = self.received.borrow_mut();
        for slice in bytes {
            received.extend_from_slice(slice);
        }
        Ok(bytes.iter().map(|slice| slice.len()).sum())
    }

    fn poll_writable(&self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn has_ended(&self) -> bool {
        false
    }

    fn finish(&self) -> io::Result<()> {
        Ok(())
    }

    fn reset(&self) {}

    fn kernel(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn try_send_file(&self, _: &File, _: u64, _: usize) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Returns what a client that sends these pieces receives until its connection is closed.
pub(crate) async fn talk<B: Backend>(
    edge: &Rc<Edge<B>>,
    pieces: Vec<Bytes>,
    then: Then,
) -> Vec<u8> {
    let received = Rc::default();
    let memory = Memory {
        pieces: RefCell::new(
            pieces
                .into_iter()
                .filter(|piece| !piece.is_empty())
                .collect(),
        ),
        then,
        has_come: Cell::new(false),
        received: Rc::clone(&received),
    };
    let nobody = ([192, 0, 2, 1], 1).into();
    let client = Connection::new(nobody, nobody);
    lifecycle::run(Rc::clone(edge), Box::new(memory), client, None, false).await;
    received.take()
}

/// Runs `work` with an edge whose sweep and flusher run.
pub(crate) fn with<B: Backend, F: Future<Output = ()>>(
    edge: Edge<B>,
    work: impl FnOnce(Rc<Edge<B>>) -> F,
) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    LocalSet::new().block_on(&runtime, async {
        let edge = Rc::new(edge);
        let (sweeping, sending) = (Rc::clone(&edge), Rc::clone(&edge));
        spawn_local(async move { sweeping.table.sweep(&sweeping.limits, || {}).await });
        spawn_local(async move { sending.flusher.run().await });
        work(edge).await;
    });
}
