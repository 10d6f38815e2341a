//! The host names that a server accepts.

use std::str::FromStr;

/// `example.com`, or `*.example.com` for every name below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName {
    /// In lower case, without the star.
    name: String,
    is_below: bool,
}

impl HostName {
    /// The name itself, unless it is a pattern for several.
    pub fn single(&self) -> Option<&str> {
        (!self.is_below).then_some(&self.name)
    }

    /// Whether it is the name of this host, which is given without a port.
    pub fn is(&self, host: &str) -> bool {
        if !self.is_below {
            return host.eq_ignore_ascii_case(&self.name);
        }
        let Some(cut) = host
            .len()
            .checked_sub(self.name.len())
            .filter(|&cut| cut > 0)
        else {
            return false;
        };
        let (_, end) = host.split_at_checked(cut).unwrap_or_default();
        end.eq_ignore_ascii_case(&self.name)
    }
}

impl FromStr for HostName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rest = text.strip_prefix('*');
        let name = rest.unwrap_or(text);
        let is_right = match rest {
            Some(rest) => rest.strip_prefix('.').is_some_and(is_name),
            None => {
                is_name(text)
                    || (text.starts_with('[') && text.ends_with(']') && is_host(text.as_bytes()))
            }
        };
        if !is_right {
            return Err(format!(
                "{text:?} is no name of a host without a port: \"example.com\", or \"*.example.com\" for all below it"
            ));
        }
        Ok(HostName {
            name: name.to_ascii_lowercase(),
            is_below: rest.is_some(),
        })
    }
}

fn is_name(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    !text.is_empty() && !text.starts_with('.') && !text.ends_with('.') && text.bytes().all(allowed)
}

/// Whether a server with these names accepts the `Host`. Without names, it accepts all.
pub(crate) fn allows(names: &[HostName], host: Option<&[u8]>) -> bool {
    if names.is_empty() {
        return true;
    }
    let host = host.and_then(|host| std::str::from_utf8(host).ok());
    let host = without_port(host.unwrap_or_default());
    // The name may end with the dot of the root.
    let host = host.strip_suffix('.').unwrap_or(host);
    names.iter().any(|name| name.is(host))
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

/// A name or an address, and perhaps a port (RFC 3986, 3.2.2), or nothing.
pub(crate) fn is_host(text: &[u8]) -> bool {
    // Without a branch for each byte: nearly all hosts are valid.
    text.iter()
        .fold(true, |all, &byte| all & OF_HOSTS[usize::from(byte)])
}

const OF_HOSTS: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = matches!(byte as u8, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'%'
            | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' | b':' | b'[' | b']');
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let names = ["Example.com", "*.example.org", "127.0.0.1", "[::1]"];
        let names: Vec<HostName> = names.iter().map(|name| name.parse().unwrap()).collect();
        for (host, expected) in [
            ("example.com", true),
            ("EXAMPLE.com:8080", true),
            ("example.com.", true),
            ("example.com.:80", true),
            ("www.example.com", false),
            ("example.com.evil", false),
            ("example.com:80:80", false),
            ("example.com:x", false),
            ("a.example.org", true),
            ("a.b.example.org", true),
            ("example.org", false),
            (".example.org", false),
            ("aexample.org", false),
            ("127.0.0.1:80", true),
            ("[::1]:80", true),
            ("[::1]", true),
            ("::1", false),
            ("", false),
        ] {
            assert_eq!(allows(&names, Some(host.as_bytes())), expected, "{host}");
        }
        assert!(!allows(&names, None) && allows(&[], None));
        for wrong in [
            "",
            "*",
            "*.",
            "*example.com",
            "a:80",
            "a b",
            "http://a",
            ".a",
            "a.*",
            "é",
        ] {
            assert!(wrong.parse::<HostName>().is_err(), "{wrong}");
        }
    }
}
