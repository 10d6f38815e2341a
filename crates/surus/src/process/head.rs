//! The heads before the bodies: a request in the engine's form, and a response. Written and read by the same binary, so
//! there are no versions; each string is preceded by its length.

use std::ffi::OsStr;
use std::io;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Uri, Version};
use surus_zend::{Opening, Request, RequestBody, Script, Since, WantedChannel};

/// How the request's body is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upload {
    Empty,
    /// It is complete, and follows at once.
    Full,
    /// It follows piece by piece.
    Stream,
}

/// A request that has arrived. The receiver sets its body.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub(crate) request: Request,
    pub(crate) script: Option<Script>,
    pub(crate) upload: Upload,
    /// When it was queued, on the clock of [`super::line::now`].
    pub(crate) since: Duration,
}

const VERSIONS: [Version; 4] = [
    Version::HTTP_10,
    Version::HTTP_11,
    Version::HTTP_2,
    Version::HTTP_3,
];
const UPLOADS: [Upload; 3] = [Upload::Empty, Upload::Full, Upload::Stream];

pub(crate) fn write_request(
    request: &Request,
    script: Option<&Script>,
    since: Duration,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    out.put_u64_le(u64::try_from(since.as_micros()).unwrap_or(u64::MAX));
    let version = VERSIONS.iter().position(|it| *it == request.version);
    out.push(version.unwrap_or(1) as u8);
    out.push(u8::from(request.https));
    let upload = match request.body {
        RequestBody::Empty => Upload::Empty,
        RequestBody::Full(_) => Upload::Full,
        RequestBody::Kept(_) | RequestBody::Stream(_) => Upload::Stream,
    };
    out.push(UPLOADS.iter().position(|it| *it == upload).unwrap_or(0) as u8);
    put(&mut out, request.method.as_str().as_bytes());
    put(&mut out, request.uri.to_string().as_bytes());
    let peer = request.peer.map(|peer| peer.to_string());
    put(&mut out, peer.unwrap_or_default().as_bytes());
    put(&mut out, request.local.to_string().as_bytes());
    out.push(u8::from(script.is_some()));
    if let Some(script) = script {
        put_path(&mut out, &script.filename);
        put_path(&mut out, &script.document_root);
        put(&mut out, script.script_name.as_bytes());
        out.push(u8::from(script.path_info.is_some()));
        put(
            &mut out,
            script.path_info.as_deref().unwrap_or_default().as_bytes(),
        );
    }
    put_headers(&mut out, &request.headers);
    out
}

/// `None` if it is not what [`write_request`] writes.
pub(crate) fn read_request(mut from: Bytes) -> Option<Arrived> {
    let from = &mut from;
    let since = Duration::from_micros(from.try_get_u64_le().ok()?);
    let version = *VERSIONS.get(usize::from(byte(from)?))?;
    let https = byte(from)? != 0;
    let upload = *UPLOADS.get(usize::from(byte(from)?))?;
    let method = Method::from_bytes(&bytes(from)?).ok()?;
    let uri = Uri::from_maybe_shared(bytes(from)?).ok()?;
    let peer = match text(from)?.as_str() {
        "" => None,
        peer => Some(peer.parse::<SocketAddr>().ok()?),
    };
    let local: SocketAddr = text(from)?.parse().ok()?;
    let script = if byte(from)? == 0 {
        None
    } else {
        let filename = path(from)?;
        let document_root = path(from)?;
        let script_name = text(from)?;
        let has_path_info = byte(from)? != 0;
        Some(Script {
            filename,
            script_name,
            path_info: Some(text(from)?).filter(|_| has_path_info),
            document_root,
        })
    };
    let request = Request {
        method,
        uri,
        version,
        headers: headers(from)?,
        peer,
        local,
        https,
        interim: None,
        body: RequestBody::Empty,
        trailers: None,
    };
    Some(Arrived {
        request,
        script,
        upload,
        since,
    })
}

/// The head of a response and, if it is known, the length of its body; and the event stream that the worker opens in place of one.
pub(crate) fn write_response<B>(
    response: &Response<B>,
    length: Option<u64>,
    opening: Option<&Opening>,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    out.put_u16_le(response.status().as_u16());
    out.put_u64_le(length.unwrap_or(u64::MAX));
    put_headers(&mut out, response.headers());
    if let Some(opening) = opening {
        put_opening(&mut out, opening);
    }
    out
}

/// What [`write_response`] writes.
pub(crate) type Head = (Response<()>, Option<u64>, Option<Opening>);

pub(crate) fn read_response(mut from: Bytes) -> io::Result<Head> {
    let parsed = |from: &mut Bytes| {
        let status = StatusCode::from_u16(from.try_get_u16_le().ok()?).ok()?;
        let length = Some(from.try_get_u64_le().ok()?).filter(|length| *length != u64::MAX);
        let mut response = Response::new(());
        *response.status_mut() = status;
        *response.headers_mut() = headers(from)?;
        let opening = match from.is_empty() {
            true => None,
            false => Some(opening(from)?),
        };
        Some((response, length, opening))
    };
    parsed(&mut from).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The trailers of a body; empty if there are none.
pub(crate) fn write_trailers(trailers: Option<&HeaderMap>) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some(trailers) = trailers {
        put_headers(&mut out, trailers);
    }
    out
}

/// `None` if there are none.
pub(crate) fn read_trailers(mut from: Bytes) -> Option<HeaderMap> {
    headers(&mut from)
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.put_u32_le(u32::try_from(bytes.len()).expect("the edge bounds what heads hold"));
    out.put_slice(bytes);
}

fn put_path(out: &mut Vec<u8>, path: &Path) {
    put(out, path.as_os_str().as_bytes());
}

fn put_headers(out: &mut Vec<u8>, headers: &HeaderMap) {
    out.put_u32_le(headers.len() as u32);
    for (name, value) in headers {
        put(out, name.as_str().as_bytes());
        put(out, value.as_bytes());
    }
}

fn put_opening(out: &mut Vec<u8>, opening: &Opening) {
    out.put_u32_le(opening.retry.unwrap_or(u32::MAX));
    out.put_u32_le(opening.channels.len() as u32);
    for wanted in &opening.channels {
        put(out, wanted.channel.as_bytes());
        let since = match wanted.since {
            Since::Now => String::new(),
            Since::Unknown => "?".to_owned(),
            Since::At(position) => position.to_string(),
        };
        put(out, since.as_bytes());
    }
}

fn opening(from: &mut Bytes) -> Option<Opening> {
    let retry = from.try_get_u32_le().ok()?;
    let count = from.try_get_u32_le().ok()?;
    let mut opening = Opening {
        channels: Vec::new(),
        retry: Some(retry).filter(|retry| *retry != u32::MAX),
    };
    for _ in 0..count {
        let channel = text(from)?.into();
        let since = match text(from)?.as_str() {
            "" => Since::Now,
            "?" => Since::Unknown,
            position => Since::At(position.parse().ok()?),
        };
        opening.channels.push(WantedChannel { channel, since });
    }
    Some(opening)
}

fn byte(from: &mut Bytes) -> Option<u8> {
    from.try_get_u8().ok()
}

fn bytes(from: &mut Bytes) -> Option<Bytes> {
    let length = from.try_get_u32_le().ok()? as usize;
    (from.len() >= length).then(|| from.split_to(length))
}

fn text(from: &mut Bytes) -> Option<String> {
    String::from_utf8(bytes(from)?.into()).ok()
}

fn path(from: &mut Bytes) -> Option<PathBuf> {
    Some(PathBuf::from(OsStr::from_bytes(&bytes(from)?)))
}

fn headers(from: &mut Bytes) -> Option<HeaderMap> {
    let count = from.try_get_u32_le().ok()?;
    let mut headers = HeaderMap::new();
    for _ in 0..count {
        let name = HeaderName::from_bytes(&bytes(from)?).ok()?;
        let value = HeaderValue::from_maybe_shared(bytes(from)?).ok()?;
        headers.try_append(name, value).ok()?;
    }
    Some(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        let mut headers = HeaderMap::new();
        headers.append("cookie", HeaderValue::from_static("a=1"));
        headers.append("cookie", HeaderValue::from_static("b=2"));
        headers.append("x-bytes", HeaderValue::from_bytes(b"\xe4\xf6").unwrap());
        Request {
            method: Method::from_bytes(b"PURGE").unwrap(),
            uri: Uri::from_static("/a%20b?c=d"),
            version: Version::HTTP_10,
            headers,
            peer: "[::1]:4000".parse().ok(),
            local: "127.0.0.1:80".parse().unwrap(),
            https: true,
            interim: None,
            body: RequestBody::Full(Bytes::from_static(b"x")),
            trailers: None,
        }
    }

    #[test]
    fn a_request_arrives_as_it_was_sent() {
        let sent = request();
        let script = Script {
            filename: PathBuf::from(OsStr::from_bytes(b"/srv/\xff.php")),
            script_name: "/index.php".to_owned(),
            path_info: Some("/more".to_owned()),
            document_root: PathBuf::from("/srv"),
        };
        let since = Duration::from_millis(1234);
        let head = write_request(&sent, Some(&script), since);
        let got = read_request(head.clone().into()).unwrap();
        assert_eq!((got.upload, got.since), (Upload::Full, since));
        assert_eq!(got.request.method, sent.method);
        assert_eq!(got.request.uri, sent.uri);
        assert_eq!(got.request.version, sent.version);
        assert_eq!(got.request.headers, sent.headers);
        assert_eq!(
            (got.request.peer, got.request.local),
            (sent.peer, sent.local)
        );
        assert!(got.request.https);
        assert_eq!(format!("{:?}", got.script), format!("{:?}", Some(script)));
        for cut in 0..head.len() {
            assert!(
                read_request(Bytes::copy_from_slice(&head[..cut])).is_none(),
                "{cut}"
            );
        }
    }

    #[test]
    fn a_request_may_have_no_script_and_no_path_info() {
        let head = write_request(&request(), None, Duration::ZERO);
        assert!(read_request(head.into()).unwrap().script.is_none());
    }

    #[test]
    fn a_response_arrives_as_it_was_sent() {
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::IM_A_TEAPOT;
        for value in ["a", "b"] {
            let value = HeaderValue::from_static(value);
            response.headers_mut().append("set-cookie", value);
        }
        for length in [None, Some(0), Some(7)] {
            let head = write_response(&response, length, None);
            let (got, known, opening) = read_response(head.into()).unwrap();
            assert_eq!(opening, None);
            assert_eq!(got.status(), response.status());
            assert_eq!(got.headers(), response.headers());
            assert_eq!(known, length);
        }
        let wanted = |channel: &str, since| WantedChannel {
            channel: channel.into(),
            since,
        };
        let position = "a1:7".parse().expect("a position");
        let opening = Opening {
            channels: vec![
                wanted("a", Since::Now),
                wanted("b", Since::At(position)),
                wanted("c", Since::Unknown),
            ],
            retry: Some(5),
        };
        let head = write_response(&response, Some(0), Some(&opening));
        assert_eq!(read_response(head.into()).unwrap().2, Some(opening));
    }
}
