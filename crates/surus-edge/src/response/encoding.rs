//! `Accept-Encoding` (RFC 9110, section 12.5.3), and which media types are worth compressing.

use http::header::HeaderValue;
use surus_schema::weighted;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Zstd,
    Brotli,
    Gzip,
}

impl Encoding {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Encoding::Zstd => "zstd",
            Encoding::Brotli => "br",
            Encoding::Gzip => "gzip",
        }
    }

    /// The extension of a file that was compressed in advance.
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Encoding::Zstd => "zst",
            Encoding::Brotli => "br",
            Encoding::Gzip => "gz",
        }
    }

    pub(crate) fn header(self) -> HeaderValue {
        HeaderValue::from_static(self.name())
    }
}

/// For responses compressed on the fly: the fastest first.
pub(crate) const FAST: [Encoding; 3] = [Encoding::Zstd, Encoding::Brotli, Encoding::Gzip];
/// For files compressed in advance: the smallest first.
pub(crate) const SMALL: [Encoding; 3] = [Encoding::Brotli, Encoding::Zstd, Encoding::Gzip];

/// The encodings that a client accepts, best first: by its weights, and by `order` if they are equal. Not those with
/// less weight than no encoding (`identity`). `lines`: the values of `Accept-Encoding`.
pub(crate) fn accepted<'a>(
    lines: impl IntoIterator<Item = &'a HeaderValue>,
    order: [Encoding; 3],
) -> impl Iterator<Item = Encoding> {
    let mut weights = [None; 3];
    let (mut any, mut identity) = (None, None);
    let lists = lines.into_iter().filter_map(|value| value.to_str().ok());
    for (coding, weight) in lists.flat_map(weighted) {
        let slot = match coding.to_ascii_lowercase().as_str() {
            "zstd" => &mut weights[0],
            "br" => &mut weights[1],
            "gzip" | "x-gzip" => &mut weights[2],
            "*" => &mut any,
            "identity" => &mut identity,
            _ => continue,
        };
        slot.get_or_insert(weight);
    }
    let mut found: Vec<(u16, Encoding)> = order
        .into_iter()
        .filter_map(|encoding| {
            let weight = weights[encoding as usize].or(any)?;
            (weight > 0 && weight >= identity.unwrap_or(0)).then_some((weight, encoding))
        })
        .collect();
    found.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    found.into_iter().map(|(_, encoding)| encoding)
}

/// True for media types that are text in one way or another. An event stream is not compressed: its clients need each
/// event at once, and proxies recognize it as a stream.
pub(crate) fn is_compressible(media_type: &[u8]) -> bool {
    let bare = media_type
        .split(|&byte| byte == b';')
        .next()
        .unwrap_or_default();
    let Ok(bare) = std::str::from_utf8(bare) else {
        return false;
    };
    let bare = bare.trim().to_ascii_lowercase();
    match bare.split_once('/') {
        Some(("text", kind)) => kind != "event-stream",
        Some(("application", kind)) => {
            matches!(
                kind,
                "json"
                    | "javascript"
                    | "xml"
                    | "wasm"
                    | "x-javascript"
                    | "rtf"
                    | "vnd.ms-fontobject"
            ) || is_text_suffix(kind)
        }
        Some(("image", kind)) => {
            matches!(kind, "bmp" | "vnd.microsoft.icon") || is_text_suffix(kind)
        }
        Some(("font", kind)) => matches!(kind, "ttf" | "otf"),
        _ => false,
    }
}

fn is_text_suffix(kind: &str) -> bool {
    kind.ends_with("+json") || kind.ends_with("+xml")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(value: &str) -> Vec<&'static str> {
        let value = HeaderValue::from_str(value).unwrap();
        accepted([&value], SMALL).map(Encoding::name).collect()
    }

    #[test]
    fn the_clients_weights_win_over_the_servers_order() {
        assert_eq!(takes("gzip, deflate, br, zstd"), ["br", "zstd", "gzip"]);
        assert_eq!(takes("br;q=0.5, GZIP;q=0.9"), ["gzip", "br"]);
        assert_eq!(takes("*"), ["br", "zstd", "gzip"]);
        assert_eq!(takes("*;q=0.1, br;q=0"), ["zstd", "gzip"]);
        assert_eq!(takes("gzip;q=0.3, identity;q=0.5"), [""; 0]);
        assert_eq!(takes("gzip;q=0, br;q=x, zstd;q=7"), [""; 0]);
        assert_eq!(takes("identity"), [""; 0]);
        assert_eq!(takes("br;Q=0, gzip;Q=0.5"), ["gzip"]);
        assert_eq!(takes("br;q=0, br, *;q=0, gzip"), ["gzip"]);
        assert_eq!(takes("*;q=0, zstd"), ["zstd"]);
        assert_eq!(takes(""), [""; 0]);
    }

    #[test]
    fn text_is_worth_it_and_pictures_are_not() {
        for kind in [
            "text/html; charset=UTF-8",
            "application/json",
            "image/svg+xml",
            "application/problem+json",
        ] {
            assert!(is_compressible(kind.as_bytes()), "{kind}");
        }
        for kind in [
            "image/png",
            "text/event-stream",
            "application/zip",
            "font/woff2",
            "",
            "text",
        ] {
            assert!(!is_compressible(kind.as_bytes()), "{kind}");
        }
    }
}
