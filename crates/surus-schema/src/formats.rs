//! Formats of strings, as JSON Schema names them.

use crate::description::Format;

pub(crate) fn is(format: Format, text: &str, schemes: &[String]) -> bool {
    match format {
        Format::Email => is_email(text),
        Format::Uuid => is_uuid(text),
        Format::Uri => is_url(text, schemes),
        Format::Date => is_date(text),
        Format::DateTime => is_date_time(text),
        Format::Time => is_time(text),
    }
}

/// An address that mail servers on the Internet accept: a dot-atom of RFC 5321 at a host name with a dot, both in
/// ASCII.
fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else {
        return false;
    };
    let atom = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&b))
    };
    text.len() <= 254
        && local.len() <= 64
        && local.split('.').all(atom)
        && domain.contains('.')
        && is_host_name(domain)
}

fn is_host_name(text: &str) -> bool {
    text.len() <= 253
        && text.split('.').all(|label| {
            !label.is_empty()
                && label.len() <= 63
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'-')
        })
}

/// RFC 9562, hyphenated, any version, either case.
fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(i, b)| match i {
            8 | 13 | 18 | 23 => b == b'-',
            _ => b.is_ascii_hexdigit(),
        })
}

/// An absolute URL with a host (RFC 3986), with one of `schemes`, or http or https if there are none.
fn is_url(text: &str, schemes: &[String]) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else {
        return false;
    };
    let known = if schemes.is_empty() {
        scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
    } else {
        schemes.iter().any(|each| each.eq_ignore_ascii_case(scheme))
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(end);
    let (user, host) = authority
        .rsplit_once('@')
        .map_or((None, authority), |(user, host)| (Some(user), host));
    known
        && text.len() <= 8000
        && user.is_none_or(|user| user.bytes().all(|b| b != b'@') && is_uri_text(user))
        && is_host_and_port(host)
        && is_uri_text(tail)
        && tail.matches('#').count() <= 1
}

fn is_host_and_port(text: &str) -> bool {
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let Some((address, after)) = rest.split_once(']') else {
            return false;
        };
        if address.parse::<std::net::Ipv6Addr>().is_err() {
            return false;
        }
        (
            None,
            after.strip_prefix(':').or(after.is_empty().then_some("")),
        )
    } else {
        match text.rsplit_once(':') {
            Some((host, port)) => (Some(host), Some(port)),
            None => (Some(text), Some("")),
        }
    };
    let Some(port) = port else { return false };
    host.is_none_or(|host| is_host_name(host.strip_suffix('.').unwrap_or(host)))
        && (port.is_empty()
            || (port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok()))
}

/// Only characters that RFC 3986 allows, and complete percent escapes.
fn is_uri_text(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().enumerate().all(|(i, &b)| match b {
        b'%' => bytes
            .get(i + 1..i + 3)
            .is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)),
        _ => b.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=".contains(&b),
    })
}

fn number(text: &str, from: std::ops::Range<usize>) -> Option<u32> {
    let digits = text.as_bytes().get(from)?;
    digits.iter().try_fold(0, |n, b| {
        b.is_ascii_digit().then(|| n * 10 + u32::from(b - b'0'))
    })
}

/// RFC 3339's full-date, of a day that exists.
fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return false;
    }
    let (Some(year), Some(month), Some(day)) =
        (number(text, 0..4), number(text, 5..7), number(text, 8..10))
    else {
        return false;
    };
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let days = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

/// RFC 3339's full-time: with seconds and an offset.
fn is_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() < 9 || bytes[2] != b':' || bytes[5] != b':' {
        return false;
    }
    let (Some(hour), Some(minute), Some(second)) =
        (number(text, 0..2), number(text, 3..5), number(text, 6..8))
    else {
        return false;
    };
    let mut at = 8;
    if bytes[at] == b'.' {
        let digits = bytes[at + 1..]
            .iter()
            .take_while(|b| b.is_ascii_digit())
            .count();
        if digits == 0 || digits > 9 {
            return false;
        }
        at += 1 + digits;
    }
    // 60 is a leap second, the last second of a day in UTC: PHP converts it to the next minute.
    hour < 24 && minute < 60 && second <= 60 && is_offset(&text[at..])
}

fn is_offset(text: &str) -> bool {
    if text.eq_ignore_ascii_case("z") {
        return true;
    }
    let bytes = text.as_bytes();
    bytes.len() == 6
        && matches!(bytes[0], b'+' | b'-')
        && bytes[3] == b':'
        && number(text, 1..3).is_some_and(|hours| hours < 24)
        && number(text, 4..6).is_some_and(|minutes| minutes < 60)
}

fn is_date_time(text: &str) -> bool {
    text.is_ascii()
        && text.len() > 11
        && matches!(text.as_bytes()[10], b'T' | b't' | b' ')
        && is_date(&text[..10])
        && is_time(&text[11..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(format: Format, good: &[&str], bad: &[&str]) {
        for text in good {
            assert!(is(format, text, &[]), "{text:?} is a {}", format.name());
        }
        for text in bad {
            assert!(!is(format, text, &[]), "{text:?} is no {}", format.name());
        }
    }

    #[test]
    fn emails() {
        check(
            Format::Email,
            &[
                "a@b.co",
                "first.last+tag@sub.example.org",
                "o'neil@example.com",
            ],
            &[
                "",
                "@",
                "a@b",
                "a@",
                "@b.co",
                "a b@c.de",
                ".a@b.co",
                "a.@b.co",
                "a..b@c.de",
                "a@-b.co",
                "a@b..co",
                "a@b.co\n",
                "ä@b.co",
                "a@b@c.de",
                "a@b_c.de",
            ],
        );
        let long = format!("{}@example.org", "x".repeat(65));
        assert!(!is(Format::Email, &long, &[]));
    }

    #[test]
    fn uuids() {
        check(
            Format::Uuid,
            &[
                "123e4567-e89b-12d3-a456-426614174000",
                "00000000-0000-0000-0000-000000000000",
            ],
            &[
                "",
                "123e4567e89b12d3a456426614174000",
                "123e4567-e89b-12d3-a456-42661417400g",
                "{123e4567-e89b-12d3-a456-426614174000}",
            ],
        );
    }

    #[test]
    fn urls() {
        check(
            Format::Uri,
            &[
                "http://a.b",
                "https://example.org/p?q=%20#f",
                "HTTP://localhost:8080",
                "https://u:p@example.org/",
                "http://[::1]:80/",
                "http://127.0.0.1",
            ],
            &[
                "",
                "example.org",
                "//example.org",
                "javascript://alert(1)",
                "http://",
                "http://a b",
                "http://a.b/\"",
                "http://a.b:99999",
                "http://a.b/%2",
                "http://[::1",
                "http://-a.b",
                "http://a.b/ä",
                "http://a.b#x#y",
            ],
        );
        let schemes = ["ftp".to_owned()];
        assert!(is(Format::Uri, "ftp://example.org/x", &schemes));
        assert!(!is(Format::Uri, "http://example.org/x", &schemes));
    }

    #[test]
    fn dates() {
        check(
            Format::Date,
            &["2024-02-29", "2000-02-29", "1999-12-31"],
            &[
                "",
                "2023-02-29",
                "1900-02-29",
                "2024-13-01",
                "2024-00-01",
                "2024-04-31",
                "24-04-01",
                "2024-4-1",
                "2024-04-01 ",
                "٢٠٢٤-٠١",
            ],
        );
        check(
            Format::DateTime,
            &[
                "2024-02-29T12:00:00Z",
                "2024-02-29T23:59:60.123456789+14:00",
                "2024-02-29t12:00:00z",
            ],
            &[
                "2024-02-29",
                "2024-02-29T12:00Z",
                "2024-02-29T24:00:00Z",
                "2024-02-29T12:00:00",
                "2024-02-30T12:00:00Z",
                "2024-02-29T12:00:00.Z",
                "2024-02-29T12:00:00+1:00",
            ],
        );
        check(
            Format::Time,
            &["12:00:00Z"],
            &["12:00:00", "12:00", "ä2:00:00Z"],
        );
    }
}
