//! Request paths: percent-decoding and normalisation.

/// Why a path is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadPath {
    /// Not starting with a slash (`*`, or the target of CONNECT).
    Relative,
    /// `%` without two hexadecimal digits.
    Escape,
    /// NUL, plain or as `%00`.
    Nul,
    /// A `..` segment. Clients resolve those themselves; one that arrives is a probe.
    Parent,
}

/// Decodes a request path and normalises it: runs of slashes become one, `.` segments are removed. A slash at the end
/// stays.
pub(crate) fn normalise(raw: &str) -> Result<Vec<u8>, BadPath> {
    if !raw.starts_with('/') {
        return Err(BadPath::Relative);
    }
    let decoded = decode(raw)?;
    if decoded.contains(&0) {
        return Err(BadPath::Nul);
    }
    let mut path = Vec::with_capacity(decoded.len());
    let mut ends_in_directory = true;
    for segment in decoded.split(|&byte| byte == b'/') {
        ends_in_directory = matches!(segment, b"" | b".");
        match segment {
            b"" | b"." => {}
            b".." => return Err(BadPath::Parent),
            name => {
                path.push(b'/');
                path.extend_from_slice(name);
            }
        }
    }
    if ends_in_directory {
        path.push(b'/');
    }
    Ok(path)
}

fn decode(raw: &str) -> Result<Vec<u8>, BadPath> {
    let mut decoded = Vec::with_capacity(raw.len());
    let mut bytes = raw.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let mut digit = || {
            bytes
                .next()
                .and_then(|byte| char::from(byte).to_digit(16))
                .ok_or(BadPath::Escape)
        };
        let value = digit()? * 16 + digit()?;
        // Two hexadecimal digits fit into a byte.
        decoded.push(value as u8);
    }
    Ok(decoded)
}

/// Encodes a normalised path for a `Location` header. Everything but unreserved characters and slashes is escaped, most
/// importantly the backslash: browsers take `/\host` for the address of another site.
pub(crate) fn encode(path: &[u8]) -> String {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut encoded = String::with_capacity(path.len());
    for &byte in path {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push('%');
            encoded.push(char::from(HEX[usize::from(byte >> 4)]));
            encoded.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(raw: &str) -> String {
        String::from_utf8(normalise(raw).unwrap()).unwrap()
    }

    #[test]
    fn decodes_percent_escapes_once() {
        assert_eq!(normal("/a%20b/%C3%A9"), "/a b/é");
        assert_eq!(normal("/a%2fb"), "/a/b");
        assert_eq!(normal("/%2541"), "/%41");
        assert_eq!(normal("/a+b"), "/a+b");
    }

    #[test]
    fn merges_slashes_and_drops_dots() {
        assert_eq!(normal("//a///b/./c"), "/a/b/c");
        assert_eq!(normal("/"), "/");
        assert_eq!(normal("/a/"), "/a/");
        assert_eq!(normal("/a/."), "/a/");
        assert_eq!(normal("/..a/b.."), "/..a/b..");
    }

    #[test]
    fn refuses_what_no_client_sends() {
        assert_eq!(normalise("/a/../b"), Err(BadPath::Parent));
        assert_eq!(normalise("/a/%2e%2E/b"), Err(BadPath::Parent));
        assert_eq!(normalise("/a%2f..%2fb"), Err(BadPath::Parent));
        assert_eq!(normalise("/.."), Err(BadPath::Parent));
        assert_eq!(normalise("/a%00.php"), Err(BadPath::Nul));
        assert_eq!(normalise("/%"), Err(BadPath::Escape));
        assert_eq!(normalise("/%4"), Err(BadPath::Escape));
        assert_eq!(normalise("/%zz"), Err(BadPath::Escape));
        assert_eq!(normalise("/%+1"), Err(BadPath::Escape));
        assert_eq!(normalise("*"), Err(BadPath::Relative));
        assert_eq!(normalise(""), Err(BadPath::Relative));
    }

    #[test]
    fn encoding_leaves_no_way_to_another_host() {
        assert_eq!(encode(b"/a b/\\c/\xe9"), "/a%20b/%5Cc/%E9");
        assert_eq!(
            encode(&normalise("//evil.example/%0d%0a").unwrap()),
            "/evil.example/%0D%0A"
        );
    }
}
