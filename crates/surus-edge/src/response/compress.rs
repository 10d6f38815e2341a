//! Compresses responses while they are sent.

use std::cell::Cell;
use std::fmt;
use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll};

use brotli::CompressorWriter;
use bytes::Bytes;
use flate2::write::GzEncoder;
use http::header::{
    HeaderMap, HeaderValue, ACCEPT_ENCODING, ACCEPT_RANGES, CACHE_CONTROL, CONTENT_ENCODING,
    CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, VARY,
};
use http::{Response, StatusCode};
use http_body::{Body, Frame};

use crate::response::encoding::{accepted, is_compressible, Encoding, FAST};
use crate::{BoxError, Reply};

/// Compressing shorter responses gains nothing.
const SHORTEST: u64 = 512;

/// Bytes that are compressed at once: the event loop is blocked meanwhile.
const SLICE: usize = 32 * 1024;

/// Responses that are compressed at a time; further ones are sent uncompressed. Each takes up to 1 MB.
const MOST: usize = 128;

thread_local! {
    static RUNNING: Cell<usize> = const { Cell::new(0) };
}

/// The `Accept-Encoding` of a request, in one line, for its response. Most responses are short, so it is parsed only
/// when it is needed.
pub(crate) fn accepts(headers: &HeaderMap) -> Option<HeaderValue> {
    // Requests without it have few headers: scanning them is faster than a lookup.
    let mut lines = headers
        .iter()
        .filter(|(name, _)| **name == ACCEPT_ENCODING)
        .map(|(_, value)| value);
    let first = lines.next()?;
    let Some(second) = lines.next() else {
        return Some(first.clone());
    };
    let mut all = first.as_bytes().to_vec();
    for line in std::iter::once(second).chain(lines) {
        all.push(b',');
        all.extend_from_slice(line.as_bytes());
    }
    HeaderValue::from_maybe_shared(Bytes::from(all)).ok()
}

/// Compresses a response with the client's preferred encoding, unless that is not worth it, the response is compressed
/// already, or its headers forbid it.
pub(crate) fn compress<B>(
    mut response: Response<Reply<B>>,
    accepts: &HeaderValue,
) -> Response<Reply<B>>
where
    B: Body<Data = Bytes, Error = BoxError> + Unpin,
{
    if !is_worth_it(&response) || RUNNING.get() >= MOST {
        return response;
    }
    let Some(encoding) = accepted([accepts], FAST).next() else {
        return response;
    };
    let Ok(encoder) = Encoder::new(encoding) else {
        return response;
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_ENCODING, encoding.header());
    headers.append(VARY, HeaderValue::from_static("accept-encoding"));
    headers.remove(CONTENT_LENGTH);
    headers.remove(ACCEPT_RANGES);
    // The bytes are no longer the same, but the content is.
    let weak = headers
        .get(ETAG)
        .filter(|etag| !etag.as_bytes().starts_with(b"W/"))
        .and_then(|etag| HeaderValue::from_bytes(&[b"W/", etag.as_bytes()].concat()).ok());
    if let Some(weak) = weak {
        headers.insert(ETAG, weak);
    }
    response.map(|inner| {
        Reply::Compressed(Box::new(Compressed {
            inner,
            encoder: Some(encoder),
            rest: Bytes::new(),
            trailers: None,
        }))
    })
}

fn is_worth_it<B>(response: &Response<Reply<B>>) -> bool
where
    B: Body<Data = Bytes, Error = BoxError> + Unpin,
{
    let headers = response.headers();
    let is_bodiless = matches!(
        response.status(),
        StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED | StatusCode::PARTIAL_CONTENT
    );
    let length = response.body().size_hint().exact();
    !is_bodiless
        && !response.body().is_end_stream()
        && length.is_none_or(|length| length >= SHORTEST)
        && !headers.contains_key(CONTENT_ENCODING)
        && !headers.contains_key(CONTENT_RANGE)
        && headers
            .get(CONTENT_TYPE)
            .is_some_and(|kind| is_compressible(kind.as_bytes()))
        && !headers.get_all(CACHE_CONTROL).iter().any(|value| {
            let text = value.to_str().unwrap_or_default().to_ascii_lowercase();
            text.contains("no-transform")
        })
}

/// A body and its encoder. What PHP flushes is flushed here too, so that streaming works.
pub struct Compressed<B> {
    inner: Reply<B>,
    /// `None` once the body has ended.
    encoder: Option<Encoder>,
    /// The rest of the last frame, not compressed yet.
    rest: Bytes,
    /// Sent after the encoder's remaining output.
    trailers: Option<Frame<Bytes>>,
}

impl<B> Compressed<B>
where
    B: Body<Data = Bytes, Error = BoxError> + Unpin,
{
    pub(crate) fn is_end_stream(&self) -> bool {
        self.encoder.is_none() && self.trailers.is_none()
    }

    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        loop {
            let Some(encoder) = &mut self.encoder else {
                return Poll::Ready(self.trailers.take().map(Ok));
            };
            if !self.rest.is_empty() {
                let slice = self.rest.split_to(self.rest.len().min(SLICE));
                // Output must not wait in the encoder until PHP writes more.
                let pause = self.rest.is_empty()
                    && !self.inner.is_end_stream()
                    && !matches!(self.inner, Reply::File(_));
                match encoder.write(&slice, pause) {
                    Ok(bytes) if bytes.is_empty() => continue,
                    Ok(bytes) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                    Err(error) => return Poll::Ready(Some(Err(error.into()))),
                }
            }
            match Pin::new(&mut self.inner).poll_frame(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(trailers) => self.trailers = Some(trailers),
                },
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(None) => {
                    let end = self.encoder.take().map(Encoder::finish).transpose();
                    match end {
                        Ok(Some(bytes)) if !bytes.is_empty() => {
                            return Poll::Ready(Some(Ok(Frame::data(bytes))))
                        }
                        Ok(_) => {}
                        Err(error) => return Poll::Ready(Some(Err(error.into()))),
                    }
                }
            }
        }
    }
}

impl<B> fmt::Debug for Compressed<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Compressed")
    }
}

enum Kind {
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
    Brotli(Box<CompressorWriter<Vec<u8>>>),
    Gzip(GzEncoder<Vec<u8>>),
}

/// Counted until it is dropped.
struct Encoder(Option<Kind>);

impl Encoder {
    fn new(encoding: Encoding) -> io::Result<Self> {
        let kind = match encoding {
            Encoding::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3)?;
                // 512 KB: browsers take 8 MB, but each response in flight has a window.
                encoder.window_log(19)?;
                Kind::Zstd(encoder)
            }
            // Quality 4 is about as fast as gzip at its default; 256 KB of window.
            Encoding::Brotli => {
                Kind::Brotli(Box::new(CompressorWriter::new(Vec::new(), 4096, 4, 18)))
            }
            Encoding::Gzip => Kind::Gzip(GzEncoder::new(Vec::new(), flate2::Compression::new(5))),
        };
        RUNNING.set(RUNNING.get() + 1);
        Ok(Encoder(Some(kind)))
    }

    /// Compresses bytes, and returns the output so far. With `flush` it is complete.
    fn write(&mut self, bytes: &[u8], flush: bool) -> io::Result<Bytes> {
        match &mut self.0 {
            Some(Kind::Zstd(encoder)) => through(encoder, bytes, flush, |it| it.get_mut()),
            Some(Kind::Brotli(encoder)) => through(encoder, bytes, flush, |it| it.get_mut()),
            Some(Kind::Gzip(encoder)) => through(encoder, bytes, flush, |it| it.get_mut()),
            None => Ok(Bytes::new()),
        }
    }

    fn finish(mut self) -> io::Result<Bytes> {
        Ok(Bytes::from(match self.0.take() {
            Some(Kind::Zstd(encoder)) => encoder.finish()?,
            Some(Kind::Brotli(encoder)) => encoder.into_inner(),
            Some(Kind::Gzip(encoder)) => encoder.finish()?,
            None => Vec::new(),
        }))
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        RUNNING.set(RUNNING.get() - 1);
    }
}

fn through<W: Write>(
    encoder: &mut W,
    bytes: &[u8],
    flush: bool,
    output: impl FnOnce(&mut W) -> &mut Vec<u8>,
) -> io::Result<Bytes> {
    encoder.write_all(bytes)?;
    if flush {
        encoder.flush()?;
    }
    Ok(Bytes::from(std::mem::take(output(encoder))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_accepted_may_be_said_in_several_lines() {
        let mut headers = HeaderMap::new();
        assert_eq!(accepts(&headers), None);
        headers.append(ACCEPT_ENCODING, HeaderValue::from_static("gzip;q=0"));
        assert_eq!(accepts(&headers).unwrap(), "gzip;q=0");
        headers.append(ACCEPT_ENCODING, HeaderValue::from_static("br"));
        headers.append(ACCEPT_ENCODING, HeaderValue::from_static("*"));
        assert_eq!(accepts(&headers).unwrap(), "gzip;q=0,br,*");
    }
}
