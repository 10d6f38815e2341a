//! `Range` (RFC 9110, section 14).

/// A request with more ranges is answered as if it had none: nobody needs them, and each costs a part's head.
const MAX: usize = 16;

/// Bytes from `start` up to, not including, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Span {
    pub(crate) fn len(self) -> u64 {
        self.end - self.start
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ranges {
    /// Malformed, or more expensive than the whole: the whole is sent.
    Ignored,
    /// 416
    Unsatisfiable,
    /// At least one, in the order of the request.
    Satisfiable(Vec<Span>),
}

/// What a `Range` header means for `length` bytes.
pub(crate) fn parse(header: &[u8], length: u64) -> Ranges {
    let Some(list) = std::str::from_utf8(header)
        .ok()
        .and_then(|text| text.split_once('='))
        .filter(|(unit, _)| unit.trim().eq_ignore_ascii_case("bytes"))
        .map(|(_, list)| list)
    else {
        return Ranges::Ignored;
    };
    let mut spans = Vec::new();
    let mut count = 0;
    for item in list
        .split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
    {
        count += 1;
        match span(item, length) {
            Some(Some(span)) => spans.push(span),
            Some(None) => {}
            None => return Ranges::Ignored,
        }
        if count > MAX {
            return Ranges::Ignored;
        }
    }
    let total: u128 = spans.iter().map(|span| u128::from(span.len())).sum();
    match spans.len() {
        0 if count == 0 => Ranges::Ignored,
        0 => Ranges::Unsatisfiable,
        // Overlapping ranges that add up to more than the whole.
        2.. if total > u128::from(length) => Ranges::Ignored,
        _ => Ranges::Satisfiable(spans),
    }
}

/// One range; `Some(None)` if it lies beyond the end, `None` if it is malformed.
fn span(item: &str, length: u64) -> Option<Option<Span>> {
    let (first, last) = item.split_once('-')?;
    let (first, last) = (first.trim(), last.trim());
    if first.is_empty() {
        let suffix = number(last)?.min(length);
        return Some((suffix > 0).then(|| Span {
            start: length - suffix,
            end: length,
        }));
    }
    let start = number(first)?;
    let end = match last {
        "" => length,
        last => {
            let last = number(last)?;
            if last < start {
                return None;
            }
            length.min(last.saturating_add(1))
        }
    };
    Some((start < length).then_some(Span { start, end }))
}

/// Only digits: `parse` alone would accept a sign. Too large numbers become the largest possible one.
fn number(text: &str) -> Option<u64> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_ten(header: &str) -> Vec<(u64, u64)> {
        match parse(header.as_bytes(), 10) {
            Ranges::Satisfiable(spans) => spans.iter().map(|span| (span.start, span.end)).collect(),
            other => panic!("{header}: {other:?}"),
        }
    }

    #[test]
    fn single_and_several() {
        assert_eq!(of_ten("bytes=0-0"), [(0, 1)]);
        assert_eq!(of_ten("bytes=2-"), [(2, 10)]);
        assert_eq!(of_ten("bytes=-3"), [(7, 10)]);
        assert_eq!(of_ten("bytes=-30"), [(0, 10)]);
        assert_eq!(of_ten("Bytes = 8-99999999999999999999"), [(8, 10)]);
        assert_eq!(of_ten("bytes=0-1, 20-, ,5-5"), [(0, 2), (5, 6)]);
    }

    #[test]
    fn what_cannot_be_had_and_what_is_no_range() {
        for header in ["bytes=10-", "bytes=-0", "bytes=99-100,200-"] {
            assert_eq!(
                parse(header.as_bytes(), 10),
                Ranges::Unsatisfiable,
                "{header}"
            );
        }
        assert_eq!(parse(b"bytes=0-", 0), Ranges::Unsatisfiable);
        for header in [
            "",
            "bytes",
            "bytes=",
            "lines=0-1",
            "bytes=5-2",
            "bytes=a-b",
            "bytes=-",
            "bytes=+1-2",
            "bytes=0-9,0-9",
            "bytes=1-2-3",
            "bytes=\u{663}-",
        ] {
            assert_eq!(parse(header.as_bytes(), 10), Ranges::Ignored, "{header}");
        }
        let many = format!("bytes={}", "0-0,".repeat(MAX + 1));
        assert_eq!(parse(many.as_bytes(), 1000), Ranges::Ignored);
    }

    /// For any header, all ranges are inside the file, and together no longer than it.
    #[test]
    fn never_more_than_there_is() {
        let mut state = 1u64;
        let mut random = |bound: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % bound
        };
        const ALPHABET: &[u8] = b"0123456789-,= bytes";
        for _ in 0..50_000 {
            let mut header = b"bytes=".to_vec();
            for _ in 0..random(24) {
                header.push(ALPHABET[random(ALPHABET.len() as u64) as usize]);
            }
            let length = random(200);
            if let Ranges::Satisfiable(spans) = parse(&header, length) {
                assert!(!spans.is_empty() && spans.len() <= MAX);
                assert!(spans
                    .iter()
                    .all(|span| span.start < span.end && span.end <= length));
                assert!(spans.iter().map(|span| span.len()).sum::<u64>() <= length);
            }
        }
    }
}
