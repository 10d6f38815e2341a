use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{HeaderValue, CONTENT_TYPE};
use http::{Response, StatusCode};
use http_body::{Body, Frame, SizeHint};

use crate::response::compress::Compressed;
use crate::response::file_body::FileBody;
use crate::response::upgrade::Upgrade;
use crate::BoxError;

/// A response body: a stream of a backend, or something that the edge can send by itself.
#[derive(Debug)]
pub enum Reply<B> {
    /// No body.
    Empty,
    /// All of it, in memory.
    Bytes(Bytes),
    /// A file of the file system, or a range of one.
    File(FileBody),
    /// One of the others, compressed while it is sent.
    Compressed(Box<Compressed<B>>),
    /// The backend's own stream.
    Backend(B),
    /// No body: the connection is upgraded.
    Upgrade(Upgrade),
}

/// A short plain-text response: the reason phrase of its status.
pub fn plain<B>(status: StatusCode) -> Response<Reply<B>> {
    let text = status.canonical_reason().unwrap_or("Error");
    let mut response = Response::new(Reply::Bytes(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    response.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    response
}

// Pin is not structural for the edge's own variants (they are Unpin); a backend's body has to be Unpin as well, which
// keeps this file free of unsafe projections. A body that is not can be boxed by its backend.
impl<B> Body for Reply<B>
where
    B: Body<Data = Bytes, Error = BoxError> + Unpin,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        match this {
            Reply::Empty | Reply::Upgrade(_) => Poll::Ready(None),
            Reply::Bytes(bytes) => {
                let bytes = std::mem::take(bytes);
                *this = Reply::Empty;
                if bytes.is_empty() {
                    return Poll::Ready(None);
                }
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Reply::File(file) => Poll::Ready(
                file.next_chunk()
                    .map(|chunk| chunk.map(Frame::data).map_err(Into::into)),
            ),
            Reply::Compressed(body) => body.poll_frame(cx),
            Reply::Backend(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Reply::Empty | Reply::Upgrade(_) => true,
            Reply::Bytes(bytes) => bytes.is_empty(),
            Reply::File(file) => file.remaining() == 0,
            Reply::Compressed(body) => body.is_end_stream(),
            Reply::Backend(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Reply::Empty | Reply::Upgrade(_) => SizeHint::with_exact(0),
            Reply::Bytes(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Reply::File(file) => SizeHint::with_exact(file.remaining()),
            Reply::Compressed(_) => SizeHint::default(),
            Reply::Backend(body) => body.size_hint(),
        }
    }
}
