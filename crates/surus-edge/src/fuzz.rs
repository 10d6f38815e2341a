//! Targets for the fuzzer (`fuzz/`) and its replay in the tests, one for each parser: no input may panic, and the
//! assertions hold for all of them.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use http::header::{
    HeaderMap, HeaderName, HeaderValue, ACCEPT_ENCODING, FORWARDED, HOST, IF_MATCH,
    IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE,
};
use http::Request;

use crate::body::form::{Found, Scanner};
use crate::client::proxy_protocol;
use crate::client::proxy_protocol::Parsed;
use crate::files::conditional::{Validators, Verdict};
use crate::files::path::{encode, normalise};
pub use crate::http1::fuzz::{http1, response};
use crate::http2::Frames;
use crate::request::ids::identify;
use crate::request::well_formed;
use crate::response::encoding::{accepted, is_compressible, SMALL};
use crate::response::range;
use crate::response::range::Ranges;
use crate::websocket::decoder::{Decoder, Event};
use crate::{
    Connection, FileSystem, Kind, Limits, Network, Proxies, ProxyHeader, Resolution, Site, Stat,
};

/// Headers of these names, one from each line.
fn headers(data: &[u8], names: &[HeaderName]) -> HeaderMap {
    let lines = data.split(|&byte| byte == b'\n');
    let mut headers = HeaderMap::new();
    for (line, name) in lines.zip(names.iter().cycle()).take(20) {
        if let Ok(value) = HeaderValue::from_bytes(line) {
            headers.append(name, value);
        }
    }
    headers
}

/// A header is complete at its last byte, and not before.
pub fn proxy_protocol(data: &[u8]) {
    let Parsed::Complete { length, .. } = proxy_protocol::parse(data) else {
        return;
    };
    assert!(length <= data.len());
    // Bytes after the header do not matter, and all of its bytes are needed.
    assert_eq!(
        proxy_protocol::parse(&data[..length]),
        proxy_protocol::parse(data)
    );
    for end in 0..length {
        assert_eq!(proxy_protocol::parse(&data[..end]), Parsed::Incomplete);
    }
}

/// Ranges lie within the file, and together are not longer than it.
pub fn range(data: &[u8]) {
    for length in [0, 1, 1000, u64::MAX] {
        if let Ranges::Satisfiable(spans) = range::parse(data, length) {
            assert!(!spans.is_empty());
            for span in &spans {
                assert!(span.start < span.end && span.end <= length);
            }
            let total: u128 = spans.iter().map(|span| u128::from(span.len())).sum();
            assert!(total <= u128::from(length), "more than the whole");
        }
    }
}

/// No encoding is accepted twice.
pub fn accept_encoding(data: &[u8]) {
    let headers = headers(data, &[ACCEPT_ENCODING]);
    let taken: Vec<_> = accepted(headers.get_all(ACCEPT_ENCODING), SMALL).collect();
    for (at, encoding) in taken.iter().enumerate() {
        assert!(!taken[..at].contains(encoding));
    }
    is_compressible(data);
}

/// Whatever a client sends, the address that the nearest proxy has added counts.
pub fn forwarded(data: &[u8]) {
    let peer = "10.1.1.1:9".parse().expect("an address");
    let connection = Connection::new(peer, peer);
    let others = ["x-forwarded-for", "x-forwarded-proto"].map(HeaderName::from_static);
    for name in [FORWARDED, others[0].clone()] {
        let mut headers = headers(data, &[name.clone(), others[1].clone()]);
        let own = if name == FORWARDED {
            "for=192.0.2.1"
        } else {
            "192.0.2.1"
        };
        let proxies = Proxies {
            networks: vec!["10.0.0.0/8".parse().expect("a network")],
            header: match name == FORWARDED {
                true => ProxyHeader::Forwarded,
                false => ProxyHeader::XForwarded,
            },
        };
        headers.append(name, HeaderValue::from_static(own));
        let client = proxies.client(&connection, &mut headers);
        let client = client.expect("a trusted proxy's client");
        assert_eq!(client.peer.to_string(), "192.0.2.1");
    }
}

/// A printed network parses to the same network.
pub fn network(data: &[u8]) {
    let Some(network) = text(data).and_then(|text| text.parse::<Network>().ok()) else {
        return;
    };
    assert_eq!(network.to_string().parse(), Ok(network));
}

/// The result does not depend on how the input is split.
pub fn frames(data: &[u8]) {
    let Some((&size, data)) = data.split_first() else {
        return;
    };
    let mut whole = Frames::new();
    let mut by_bytes = Frames::new();
    let mut has_ended = false;
    for piece in data.chunks(usize::from(size).max(1)) {
        let ended = whole.read(piece);
        let bytes = piece.chunks(1).map(|byte| by_bytes.read(byte));
        assert_eq!(ended, bytes.fold(false, |any, ended| any | ended));
        assert_eq!(whole.is_open(), by_bytes.is_open());
        has_ended |= ended;
    }
    // Any input either ends a frame, or leaves one open.
    assert!(data.is_empty() || has_ended || whole.is_open());
}

/// What is read of a WebSocket's client does not depend on how its bytes are split, and stays within the bounds: messages of
/// up to 1000 bytes, texts in UTF-8.
pub fn websocket(data: &[u8]) {
    let Some((&size, data)) = data.split_first() else {
        return;
    };
    let read = |size: usize| {
        let mut decoder = Decoder::new(1000, true);
        let mut events = Vec::new();
        for mut piece in data.chunks(size) {
            loop {
                match decoder.decode(&mut piece) {
                    Ok(Some(event)) => events.push(event),
                    Ok(None) => break,
                    Err(violation) => return (events, Some(violation)),
                }
            }
        }
        (events, None)
    };
    let all = read(data.len().max(1));
    assert_eq!(read(usize::from(size).max(1)), all);
    assert_eq!(read(1), all);
    for event in all.0 {
        match event {
            Event::Message(message) => {
                assert!(message.data.len() <= 1000);
                assert!(message.binary || std::str::from_utf8(&message.data).is_ok());
            }
            Event::Ping(payload) => assert!(payload.len() <= 125),
            Event::Close(close) => assert!(close.reason.len() <= 123),
            Event::Pong => {}
        }
    }
}

/// A normalised path has no `.`, `..` or empty segments, and stays the same when it is parsed again.
pub fn path(data: &[u8]) {
    let Some(Ok(path)) = text(data).map(normalise) else {
        return;
    };
    assert_eq!(path.first(), Some(&b'/'));
    assert!(!path.contains(&0));
    assert!(!path.windows(2).any(|pair| pair == b"//"));
    assert!(path
        .split(|&byte| byte == b'/')
        .all(|step| step != b".." && step != b"."));
    // Encoded and parsed again it is the same.
    assert_eq!(normalise(&encode(&path)), Ok(path));
}

/// A file system in which the kind of every path depends on the length of its name.
struct Everything;

impl FileSystem for Everything {
    fn stat(&self, path: &Path) -> Option<Stat> {
        let kind = match path.as_os_str().len() % 4 {
            0 => return None,
            1 => Kind::Directory,
            _ => Kind::File,
        };
        let modified = SystemTime::UNIX_EPOCH;
        Some(Stat {
            kind,
            length: 1,
            modified,
        })
    }

    fn real_path(&self, path: &Path) -> Option<PathBuf> {
        Some(path.to_owned())
    }
}

/// No file outside of a site's folder, no hidden file and no source is served.
pub fn site(data: &[u8]) {
    let (Some(raw), Ok(site)) = (text(data), Site::new(Path::new("/"), "index.php")) else {
        return;
    };
    let below = |path: &Path| {
        let steps = path.to_string_lossy();
        assert!(
            path.is_absolute() && !steps.split('/').any(|step| step == ".."),
            "{steps}"
        );
    };
    match site.resolve(&Everything, raw) {
        Resolution::Script(script) => below(&script.filename),
        Resolution::File { path, .. } => {
            below(&path);
            assert!(!path.to_string_lossy().ends_with(".php"));
            assert!(!path.to_string_lossy().contains("/."));
        }
        Resolution::Redirect(to) => {
            assert!(
                to.starts_with('/') && !to.starts_with("//") && to.ends_with('/'),
                "{to}"
            );
        }
        Resolution::NotFound | Resolution::Refused => {}
    }
}

/// A client with the current version of a file gets 304, whatever other headers it sends.
pub fn conditional(data: &[u8]) {
    let modified = SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_500);
    let validators = Validators::new(modified, 1000, "-br");
    let names = [IF_NONE_MATCH, IF_MATCH, IF_MODIFIED_SINCE, IF_RANGE];
    let mut headers = headers(data, &names);
    validators.judge(&headers);
    validators.allows_range(&headers);
    headers.remove(IF_MATCH);
    headers.append(IF_NONE_MATCH, validators.etag_header().expect("a header"));
    assert_eq!(validators.judge(&headers), Verdict::NotModified);
}

/// Ids can be passed on, and are accepted then.
pub fn ids(data: &[u8]) {
    let trace = HeaderName::from_static("traceparent");
    let request = HeaderName::from_static("x-request-id");
    let mut headers = headers(data, &[request, trace.clone()]);
    let id = identify(&mut headers);
    assert!(!id.is_empty() && id.as_bytes().iter().all(u8::is_ascii_graphic));
    let parent = headers[trace].to_str().expect("hexadecimal digits");
    assert!(parent.len() >= 55 && parent.is_ascii());
    // A generated or accepted id is accepted again.
    assert_eq!(identify(&mut headers), id);
}

/// A method, a target and lines of `Host`.
pub fn request(data: &[u8]) {
    let mut lines = data.splitn(3, |&byte| byte == b'\n');
    let (Some(method), Some(target)) = (lines.next(), lines.next()) else {
        return;
    };
    let built = Request::builder().method(method).uri(target).body(());
    let Ok(request) = built else { return };
    let (mut request, ()) = request.into_parts();
    request.headers = headers(lines.next().unwrap_or_default(), &[HOST]);
    if well_formed::check(&mut request, &Limits::default()).is_ok() {
        let host = request.headers.get(HOST).expect("a request of HTTP/1.1");
        assert_eq!(request.headers.get_all(HOST).iter().count(), 1);
        assert!(!host
            .as_bytes()
            .iter()
            .any(|byte| b" /?#@\\\"".contains(byte)));
        assert!(request.uri.path().starts_with('/') || request.uri.path() == "*");
    }
}

/// A form with the boundary `b`, after one byte with the size of the pieces in which it arrives.
pub fn files_of_form(data: &[u8]) {
    let Some((&size, body)) = data.split_first() else {
        return;
    };
    let scan = |size: usize| {
        let mut form = Scanner::new(b"multipart/form-data; boundary=b").expect("a usual type");
        let (mut all, mut files) = (Vec::new(), Vec::new());
        let mut tell = |found: Found<'_>| {
            match found {
                Found::Text(bytes) => all.extend_from_slice(bytes),
                Found::File => files.push(all.len()..all.len()),
                Found::Content(bytes) => {
                    all.extend_from_slice(bytes);
                    files.last_mut().expect("a file has begun").end = all.len();
                }
            }
            Ok(())
        };
        for piece in body.chunks(size) {
            form.push(piece, &mut tell).expect("told");
        }
        form.finish(&mut tell).expect("told");
        assert_eq!(all, body, "in order, and nothing is left out");
        files
    };
    let files = scan(body.len().max(1));
    assert_eq!(scan(usize::from(size).max(1)), files);
    for file in files {
        let content = &body[file];
        assert_eq!(memchr::memmem::find(content, b"\n--b"), None);
    }
}

fn text(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok()
}

#[cfg(test)]
mod tests {
    use surus_replay::replay;

    #[test]
    fn seeds_and_mutations() {
        replay("proxy_protocol", super::proxy_protocol);
        replay("range", super::range);
        replay("accept_encoding", super::accept_encoding);
        replay("forwarded", super::forwarded);
        replay("network", super::network);
        replay("frames", super::frames);
        replay("websocket", super::websocket);
        replay("path", super::path);
        replay("site", super::site);
        replay("conditional", super::conditional);
        replay("ids", super::ids);
        replay("request", super::request);
        replay("files_of_form", super::files_of_form);
    }
}
