//! The body of a response that a process sends. The worker reads it as fast as the process sends it, however slow the
//! client is: the process handles one request at a time.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use surus_zend::{Pace, Pipe, ResponseBody, Wanted};
use tokio::task::{spawn_local, AbortHandle};
use tokio::time::timeout;

use super::head;
use super::wire::{Frames, DATA, END};

/// A body up to this length is read completely before its head is passed on.
const SHORT: u64 = 64 * 1024;

/// How long a response may block a process while there is no room for it.
const HELD: Duration = Duration::from_millis(100);

/// The body after a head, which may announce its `length` in bytes. `held` is dropped when the process has sent all of
/// it, or when the client has disconnected, which closes the connection.
pub(super) async fn body(
    mut frames: Frames,
    length: Option<u64>,
    held: impl Sized + 'static,
) -> io::Result<ResponseBody> {
    if let Some(length) = length.filter(|&length| length <= SHORT) {
        return short(&mut frames, length).await.map(ResponseBody::full);
    }
    let task: Rc<RefCell<Option<AbortHandle>>> = Rc::default();
    let taking = Rc::clone(&task);
    let pipe = Pipe::new(Pace::Ahead, move || {
        if let Some(task) = taking.take() {
            task.abort();
        }
    });
    let filled = Rc::clone(&pipe);
    let handle = spawn_local(async move {
        let _held = held;
        match fill(&mut frames, &filled).await {
            Ok(()) => filled.close(),
            Err(error) => {
                tracing::debug!(%error, "a process has not sent all of its response");
                filled.cut_off();
            }
        }
    });
    *task.borrow_mut() = Some(handle.abort_handle());
    Ok(ResponseBody::stream(pipe, length))
}

async fn short(frames: &mut Frames, length: u64) -> io::Result<Bytes> {
    let mut whole = BytesMut::new();
    while (whole.len() as u64) < length {
        match frames.next().await? {
            (DATA, bytes) if whole.is_empty() && bytes.len() as u64 == length => return Ok(bytes),
            (DATA, bytes) => whole.extend_from_slice(&bytes),
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
    Ok(whole.freeze())
}

async fn fill(frames: &mut Frames, pipe: &Pipe) -> io::Result<()> {
    // A request may be waiting for the process, which is not known here.
    let mut wanted = None;
    loop {
        let mut room = pin!(poll_fn(|cx| pipe.poll_space(cx)));
        if wanted.is_none() && timeout(HELD, &mut room).await.is_err() {
            wanted = Some(Wanted::begin());
        }
        room.await;
        match frames.next().await? {
            (DATA, bytes) => pipe.push(bytes),
            (END, ending) => {
                for (name, value) in head::read_trailers(ending).iter().flatten() {
                    pipe.add_trailer(name.clone(), value.clone());
                }
                return Ok(());
            }
            _ => return Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}
