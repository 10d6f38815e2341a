//! Files as bodies: short ones are copied behind their heads, of others the kernel sends the pages that it has
//! (sendfile(2)).

use std::fs::File;
use std::future::poll_fn;
use std::io;
use std::mem::replace;
use std::os::unix::fs::FileExt;
use std::rc::Rc;

use http::Response;

use super::{response, Answered};
use crate::connection::State;
use crate::files::FileBody;
use crate::range::Span;
use crate::responding::Noted;
use crate::service::Service;
use crate::{Backend, Reply};

/// Files up to this size are copied: that costs less than a call of their own.
const SHORT: u64 = 16 * 1024;

/// Bytes that are sent before others have their turn.
const TURN: u64 = 512 * 1024;

/// What is still to be sent of an answer.
pub(super) struct Rest {
    noted: Noted,
    body: FileBody,
}

/// Writes a short file, or the head of another one; leaves what is more than one part of a file to hyper.
#[inline(never)]
pub(super) fn answer<B: Backend>(
    service: &Service<B>,
    mut noted: Noted,
    mut answer: Response<Reply<B::Body>>,
) -> Answered {
    let Reply::File(body) = replace(answer.body_mut(), Reply::Empty) else {
        return Answered::ByHyper;
    };
    let part = body.part();
    let part = part.filter(|(_, span)| service.sends_files() || span.len() <= SHORT);
    let written = part.is_some_and(|(file, span)| {
        let arrived = service.state().client().arrived();
        service.state().respond(|output| {
            let begin = output.len();
            let (status, headers) = (answer.status(), answer.headers());
            let written = response::write_head(output, status, headers, span.len(), arrived);
            let whole = written && (span.len() > SHORT || append(output, file, span));
            if !whole {
                output.truncate(begin);
            }
            whole
        })
    });
    let length = body.remaining();
    if !written {
        *answer.body_mut() = Reply::File(body);
        service.leave_to_hyper(noted.responding(answer));
        Answered::ByHyper
    } else if length <= SHORT {
        noted.sending(length as usize);
        noted.sent();
        Answered::Whole
    } else {
        Answered::Head(Box::new(Rest { noted, body }))
    }
}

/// False: it cannot be read.
fn append(output: &mut Vec<u8>, file: &File, part: Span) -> bool {
    let begin = output.len();
    output.resize(begin + part.len() as usize, 0);
    file.read_exact_at(&mut output[begin..], part.start).is_ok()
}

/// Sends what waits, and then the rest of the answer.
///
/// # Errors
/// The client has gone, or the file has become shorter: the announced length cannot be kept.
pub(super) async fn send(state: &Rc<State>, rest: Rest) -> io::Result<()> {
    let Rest { mut noted, body } = rest;
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
        noted.sending(sent);
        part.start += sent as u64;
        if sent == most && part.len() > 0 {
            state.turn.pass().await;
        }
    }
    noted.sent();
    Ok(())
}

/// Of what is not the client's doing.
fn complain(error: &io::Error) {
    let kind = error.kind();
    if matches!(
        kind,
        io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
    ) {
        surus_log::say!("a static file cannot be sent: {error}; its file system may not know sendfile(2): see zero_copy in [server]");
    }
}
