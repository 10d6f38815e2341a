//! Static files as replies: GET and HEAD, `Last-Modified` and `If-Modified-Since`.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::{Bytes, BytesMut};
use http::header::{
    HeaderMap, HeaderValue, ALLOW, CONTENT_LENGTH, CONTENT_TYPE, IF_MODIFIED_SINCE, LAST_MODIFIED,
};
use http::{Method, Response, StatusCode};

use crate::mime::media_type;
use crate::{plain, Reply};

/// Bytes per read and write.
const CHUNK: u64 = 64 * 1024;

/// An open file on its way to a client.
///
/// It is read on the edge's own thread, as nginx does by default: what is served often is in the page cache, and a
/// helper thread costs more than a read from there.
#[derive(Debug)]
pub struct FileBody {
    file: File,
    remaining: u64,
}

impl FileBody {
    pub(crate) fn remaining(&self) -> u64 {
        self.remaining
    }

    pub(crate) fn next_chunk(&mut self) -> Option<io::Result<Bytes>> {
        if self.remaining == 0 {
            return None;
        }
        let mut chunk = BytesMut::zeroed(self.remaining.min(CHUNK) as usize);
        match self.file.read(&mut chunk) {
            // Shorter than when it was opened: the announced length cannot be kept, so the response has to break off.
            Ok(0) => {
                self.remaining = 0;
                Some(Err(io::ErrorKind::UnexpectedEof.into()))
            }
            Ok(count) => {
                self.remaining -= count as u64;
                chunk.truncate(count);
                Some(Ok(chunk.freeze()))
            }
            Err(error) => {
                self.remaining = 0;
                Some(Err(error))
            }
        }
    }
}

/// Answers a request for a file that [`crate::Site`] has resolved.
pub fn serve_file<B>(method: &Method, headers: &HeaderMap, path: &Path) -> Response<Reply<B>> {
    if method != Method::GET && method != Method::HEAD {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED);
        response
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match open(path) {
        Ok((file, length, modified)) => found(method, headers, path, file, length, modified),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            plain(StatusCode::FORBIDDEN)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => plain(StatusCode::NOT_FOUND),
        Err(error) => {
            eprintln!("surus: cannot read {}: {error}", path.display());
            plain(StatusCode::INTERNAL_SERVER_ERROR)
        }
    }
}

fn found<B>(
    method: &Method,
    headers: &HeaderMap,
    path: &Path,
    file: File,
    length: u64,
    modified: SystemTime,
) -> Response<Reply<B>> {
    let mut response = Response::new(Reply::Empty);
    let out = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(&httpdate::fmt_http_date(modified)) {
        out.insert(LAST_MODIFIED, value);
    }
    if not_modified(headers, modified) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return response;
    }
    out.insert(
        CONTENT_TYPE,
        HeaderValue::from_static(media_type(path.as_os_str().as_bytes())),
    );
    out.insert(CONTENT_LENGTH, HeaderValue::from(length));
    if method == Method::GET && length > 0 {
        *response.body_mut() = Reply::File(FileBody {
            file,
            remaining: length,
        });
    }
    response
}

/// Length and time come from the open file: the cache that resolved its name may be a second old.
fn open(path: &Path) -> io::Result<(File, u64, SystemTime)> {
    // Non-blocking, so that a FIFO that has taken the file's place does not stop the edge.
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
    // HTTP dates begin in 1970; httpdate refuses earlier ones.
    Ok((file, metadata.len(), modified.max(UNIX_EPOCH)))
}

/// HTTP dates are whole seconds, so the file's time is cut to them before the comparison.
fn not_modified(headers: &HeaderMap, modified: SystemTime) -> bool {
    let Some(since) = headers
        .get(IF_MODIFIED_SINCE)
        .and_then(|value| value.to_str().ok())
    else {
        return false;
    };
    let Ok(since) = httpdate::parse_http_date(since) else {
        return false;
    };
    let seconds = modified
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    UNIX_EPOCH + Duration::from_secs(seconds) <= since
}
