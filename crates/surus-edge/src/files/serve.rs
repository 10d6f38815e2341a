//! Static files as replies: GET and HEAD, conditional requests, ranges, and files compressed in advance.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::header::{
    HeaderMap, HeaderValue, ACCEPT_ENCODING, ACCEPT_RANGES, ALLOW, CONTENT_ENCODING,
    CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, LAST_MODIFIED, RANGE, VARY,
};
use http::{Method, Response, StatusCode};

use crate::files::conditional::{Validators, Verdict};
use crate::files::media_types::media_type;
use crate::response::encoding::{accepted, is_compressible, Encoding, SMALL};
use crate::response::file_body::{FileBody, Segment};
use crate::response::range::{parse, Ranges, Span};
use crate::{plain, Reply};

/// Answers a request for a file that [`crate::Site`] has resolved.
pub fn serve_file<B>(method: &Method, headers: &HeaderMap, path: &Path) -> Response<Reply<B>> {
    if method != Method::GET && method != Method::HEAD {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED);
        response
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    serve_file_with(method, headers, path, HeaderMap::new())
}

/// The same with headers of an application that sends a file. They take precedence.
pub fn serve_file_with<B>(
    method: &Method,
    headers: &HeaderMap,
    path: &Path,
    given: HeaderMap,
) -> Response<Reply<B>> {
    match open(path) {
        Ok(found) => send(method, headers, path, found, given),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            plain(StatusCode::FORBIDDEN)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => plain(StatusCode::NOT_FOUND),
        Err(error) => {
            surus_log::say!("cannot read {}: {error}", path.display());
            plain(StatusCode::INTERNAL_SERVER_ERROR)
        }
    }
}

struct Found {
    file: File,
    length: u64,
    modified: SystemTime,
}

fn send<B>(
    method: &Method,
    headers: &HeaderMap,
    path: &Path,
    mut found: Found,
    given: HeaderMap,
) -> Response<Reply<B>> {
    let media_type = media_type(path.as_os_str().as_bytes());
    let ranges = (method == Method::GET)
        .then(|| headers.get(RANGE))
        .flatten();
    let mut encoding = None;
    let compressible = is_compressible(media_type.as_bytes());
    // Ranges are always ranges of the uncompressed file.
    if compressible && ranges.is_none() && !given.contains_key(CONTENT_ENCODING) {
        if let Some((chosen, sibling)) = sibling(headers, path, found.modified) {
            encoding = Some(chosen);
            found = sibling;
        }
    }
    let suffix = encoding.map_or(String::new(), |encoding| format!("-{}", encoding.name()));
    let validators = Validators::new(found.modified, found.length, &suffix);

    let mut response = Response::new(Reply::Empty);
    let out = response.headers_mut();
    *out = given;
    put(out, LAST_MODIFIED, validators.date_header());
    put(out, ETAG, validators.etag_header());
    if let Some(encoding) = encoding {
        out.insert(CONTENT_ENCODING, encoding.header());
        out.append(VARY, HeaderValue::from_static("accept-encoding"));
    }
    match validators.judge(headers) {
        Verdict::Send => {}
        Verdict::NotModified => {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return response;
        }
        Verdict::Failed => return plain(StatusCode::PRECONDITION_FAILED),
    }
    let out = response.headers_mut();
    out.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    put(
        out,
        CONTENT_TYPE,
        Some(HeaderValue::from_static(media_type)),
    );
    let ranges = ranges.filter(|_| validators.allows_range(headers));
    let ranges = ranges.map_or(Ranges::Ignored, |ranges| {
        parse(ranges.as_bytes(), found.length)
    });
    let segments = match ranges {
        Ranges::Ignored => whole(found.length),
        Ranges::Unsatisfiable => {
            let mut response = plain(StatusCode::RANGE_NOT_SATISFIABLE);
            let text = format!("bytes */{}", found.length);
            put(
                response.headers_mut(),
                CONTENT_RANGE,
                HeaderValue::from_str(&text).ok(),
            );
            return response;
        }
        Ranges::Satisfiable(spans) => {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            parts(response.headers_mut(), &spans, found.length)
        }
    };
    let body = FileBody::new(found.file, segments);
    response
        .headers_mut()
        .insert(CONTENT_LENGTH, HeaderValue::from(body.remaining()));
    if method == Method::GET && body.remaining() > 0 {
        *response.body_mut() = Reply::File(body);
    }
    response
}

fn put(headers: &mut HeaderMap, name: http::HeaderName, value: Option<HeaderValue>) {
    if let Some(value) = value {
        headers.entry(name).or_insert(value);
    }
}

fn whole(length: u64) -> VecDeque<Segment> {
    let span = Span {
        start: 0,
        end: length,
    };
    (length > 0)
        .then_some(Segment::Part(span))
        .into_iter()
        .collect()
}

/// One range is the body; several become a `multipart/byteranges`.
fn parts(headers: &mut HeaderMap, spans: &[Span], length: u64) -> VecDeque<Segment> {
    let content_range = |span: &Span| format!("bytes {}-{}/{length}", span.start, span.end - 1);
    if let [span] = spans {
        if let Ok(value) = HeaderValue::from_str(&content_range(span)) {
            headers.insert(CONTENT_RANGE, value);
        }
        return [Segment::Part(*span)].into();
    }
    const BOUNDARY: &str = "3d6b6a416f9b5";
    let kind = headers
        .insert(
            CONTENT_TYPE,
            HeaderValue::from_static("multipart/byteranges; boundary=3d6b6a416f9b5"),
        )
        .unwrap_or(HeaderValue::from_static("application/octet-stream"));
    let kind = kind.to_str().unwrap_or_default();
    let mut segments = VecDeque::new();
    for span in spans {
        let head = format!(
            "\r\n--{BOUNDARY}\r\nContent-Type: {kind}\r\nContent-Range: {}\r\n\r\n",
            content_range(span)
        );
        segments.push_back(Segment::Text(Bytes::from(head)));
        segments.push_back(Segment::Part(*span));
    }
    let end = Bytes::from(format!("\r\n--{BOUNDARY}--\r\n"));
    segments.push_back(Segment::Text(end));
    segments
}

/// A compressed file such as `style.css.br` next to a file, in an encoding that the client accepts, unless it is older
/// than the file.
fn sibling(headers: &HeaderMap, path: &Path, modified: SystemTime) -> Option<(Encoding, Found)> {
    for encoding in accepted(headers.get_all(ACCEPT_ENCODING), SMALL) {
        let mut name = OsString::from(path);
        name.push(".");
        name.push(encoding.extension());
        if let Ok(found) = open(Path::new(&name)) {
            if found.modified >= modified {
                return Some((encoding, found));
            }
        }
    }
    None
}

/// Length and time come from the open file: the cache that resolved its name may be a second old.
fn open(path: &Path) -> io::Result<Found> {
    // Non-blocking, so that a FIFO that has replaced the file does not block the edge.
    const O_NONBLOCK: i32 = 0o4000;
    let file = File::options()
        .read(true)
        .custom_flags(O_NONBLOCK)
        .open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let modified = metadata.modified().unwrap_or(UNIX_EPOCH);
    Ok(Found {
        file,
        length: metadata.len(),
        // HTTP dates begin in 1970; httpdate refuses earlier ones.
        modified: modified.max(UNIX_EPOCH),
    })
}
