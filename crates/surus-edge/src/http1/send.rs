//! Sends the body of a response that is not in one piece, or not ready yet, as fast as the client reads it. The kernel
//! sends a part of a file from the page cache (sendfile(2)); a short part is copied.

use std::future::poll_fn;
use std::io;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::task::Poll;

use http::HeaderMap;
use http_body::Body;

use super::encode::{self, Framing};
use crate::connection::socket::Socket;
use crate::connection::State;
use crate::request::in_flight::Outgoing;
use crate::request::service::Service;
use crate::response::file_body::FileBody;
use crate::{Backend, Reply};

/// Files up to this size are copied: that costs less than a separate system call.
const SHORT: u64 = 16 * 1024;

/// Bytes that are sent before other tasks have their turn.
const TURN: u64 = 512 * 1024;

/// The rest of a response whose head is written.
pub(super) struct Sending<B> {
    pub(super) outgoing: Outgoing<B>,
    pub(super) framing: Framing,
    /// Whether another request may follow.
    pub(super) stays: bool,
}

/// Sends the rest of a response. Returns whether another request may follow.
///
/// # Errors
/// The client has disconnected, or the body was cut off: the client must not take it for complete.
pub(super) async fn send<B: Backend>(
    socket: &mut Socket,
    service: &Service<B>,
    mut sending: Sending<B::Body>,
) -> io::Result<bool> {
    let state = service.state();
    if let Reply::File(file) = &sending.outgoing.reply {
        let by_kernel = service.sends_files() && state.transport.kernel().is_some();
        if by_kernel && file.remaining() > SHORT && file.part().is_some() {
            send_file(state, &mut sending.outgoing).await?;
            return Ok(sending.stays);
        }
    }
    let mut turn = 0;
    loop {
        if turn >= TURN {
            turn = 0;
            state.turn.pass().await;
        }
        let outgoing = &mut sending.outgoing;
        let frame = poll_fn(|cx| {
            if state.poll_room(cx)?.is_pending() {
                return Poll::Pending;
            }
            if let Poll::Ready(frame) = Pin::new(&mut *outgoing).poll_frame(cx) {
                return Poll::Ready(frame.transpose().map_err(io::Error::other));
            }
            let gone = socket.poll_gone(cx);
            gone.map(|()| Err(io::ErrorKind::ConnectionAborted.into()))
        });
        let Some(frame) = frame.await? else {
            sending.end(state, None)?;
            return Ok(sending.stays);
        };
        match frame.into_data() {
            Ok(bytes) => {
                turn += bytes.len() as u64;
                if sending.write(state, bytes) {
                    return Ok(sending.stays);
                }
            }
            Err(frame) => {
                if let Ok(fields) = frame.into_trailers() {
                    sending.end(state, Some(&fields))?;
                    return Ok(sending.stays);
                }
            }
        }
        if sending.outgoing.is_end_stream() {
            sending.end(state, None)?;
            return Ok(sending.stays);
        }
    }
}

impl<B> Sending<B> {
    /// Writes a piece of the body. True if the announced length is reached.
    fn write(&mut self, state: &State, mut bytes: bytes::Bytes) -> bool {
        match &mut self.framing {
            Framing::Length(left) => {
                let most = usize::try_from(*left).unwrap_or(usize::MAX);
                bytes.truncate(most);
                *left -= bytes.len() as u64;
                let is_all = *left == 0;
                state.respond_body(bytes);
                if is_all {
                    self.outgoing.complete();
                }
                is_all
            }
            Framing::Chunked(_) => {
                // An empty chunk would be the last one.
                if !bytes.is_empty() {
                    state.respond(|output| encode::write_chunk_size(output, bytes.len()));
                    state.respond_body(bytes);
                    state.respond(|output| output.extend_from_slice(b"\r\n"));
                }
                false
            }
            Framing::Close => {
                state.respond_body(bytes);
                false
            }
        }
    }

    /// The body has ended, and these fields follow it.
    fn end(&mut self, state: &State, fields: Option<&HeaderMap>) -> io::Result<()> {
        match &self.framing {
            Framing::Length(0) | Framing::Close => {}
            Framing::Length(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Framing::Chunked(announced) => {
                state.respond(|output| encode::write_last_chunk(output, announced, fields));
            }
        }
        self.outgoing.complete();
        Ok(())
    }
}

/// Writes a short file after its head. False: it is not short, or cannot be read.
pub(super) fn copy_short(state: &State, body: &FileBody) -> bool {
    if body.remaining() > SHORT {
        return false;
    }
    let Some((file, part)) = body.part() else {
        return false;
    };
    state.respond(|output| {
        let begin = output.len();
        output.resize(begin + part.len() as usize, 0);
        let read = file.read_exact_at(&mut output[begin..], part.start);
        if read.is_err() {
            output.truncate(begin);
        }
        read.is_ok()
    })
}

/// Sends the buffered output, and then the file.
async fn send_file<B>(state: &State, outgoing: &mut Outgoing<B>) -> io::Result<()> {
    let Reply::File(body) = std::mem::replace(&mut outgoing.reply, Reply::Empty) else {
        return Ok(());
    };
    let Some((file, mut part)) = body.part() else {
        return Ok(());
    };
    poll_fn(|cx| state.poll_flush(cx)).await?;
    while part.len() > 0 {
        let most = part.len().min(TURN) as usize;
        let sent = poll_fn(|cx| state.poll_send_file(cx, file, part.start, most)).await;
        if let Err(error) = &sent {
            complain(error);
        }
        let sent = sent?;
        if sent == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        outgoing.sending(sent);
        part.start += sent as u64;
        if sent == most && part.len() > 0 {
            state.turn.pass().await;
        }
    }
    outgoing.complete();
    Ok(())
}

/// Logs an error that the client has not caused.
fn complain(error: &io::Error) {
    let kind = error.kind();
    if matches!(
        kind,
        io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
    ) {
        surus_log::say!("a static file cannot be sent: {error}; its file system may not know sendfile(2): see zero_copy in [server]");
    }
}
