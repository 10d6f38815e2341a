//! `Accept-Encoding` (RFC 9110, section 12.5.3), and what is worth being compressed.

use http::header::HeaderValue;

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

    /// Of a file that was compressed before.
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

/// For what is compressed on the fly: what is fast first.
pub(crate) const FAST: [Encoding; 3] = [Encoding::Zstd, Encoding::Brotli, Encoding::Gzip];
/// For what lies ready: what is small first.
pub(crate) const SMALL: [Encoding; 3] = [Encoding::Brotli, Encoding::Zstd, Encoding::Gzip];

/// What a client takes, best first: by its own weights, and by `order` where they are equal. Not what it likes less than
/// no encoding at all. `lines`: the values of `Accept-Encoding`.
pub(crate) fn accepted<'a>(
    lines: impl IntoIterator<Item = &'a HeaderValue>,
    order: [Encoding; 3],
) -> impl Iterator<Item = Encoding> {
    let mut weights = [None; 3];
    let (mut any, mut identity) = (None, None);
    for item in lines
        .into_iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|list| list.split(','))
    {
        let mut parts = item.split(';').map(str::trim);
        let coding = parts.next().unwrap_or_default().to_ascii_lowercase();
        let weight = parts
            .find_map(|parameter| parameter.strip_prefix("q="))
            .map_or(1000, thousandths);
        match coding.as_str() {
            "zstd" => weights[0] = Some(weight),
            "br" => weights[1] = Some(weight),
            "gzip" | "x-gzip" => weights[2] = Some(weight),
            "*" => any = Some(weight),
            "identity" => identity = Some(weight),
            _ => {}
        }
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

/// `0.5` in thousandths; what is malformed is zero.
fn thousandths(text: &str) -> u16 {
    match text.parse::<f32>() {
        Ok(weight) if (0.0..=1.0).contains(&weight) => (weight * 1000.0) as u16,
        _ => 0,
    }
}

/// True for media types that are text in one way or another. An event stream is left alone: its clients want each event
/// at once, and proxies know it for what it is.
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
