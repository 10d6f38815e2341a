//! Conditional requests (RFC 9110, section 13): whether an unchanged file must be sent, and whether preconditions hold.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::header::{
    HeaderMap, HeaderName, HeaderValue, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE,
    IF_UNMODIFIED_SINCE,
};

/// The validators of a representation.
#[derive(Debug)]
pub(crate) struct Validators {
    /// With its quotes.
    pub(crate) etag: String,
    pub(crate) modified: SystemTime,
}

/// The result of the conditions of a GET or HEAD request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Send,
    /// 304
    NotModified,
    /// 412
    Failed,
}

impl Validators {
    /// A strong ETag of time and length, as nginx makes it, but with nanoseconds; `suffix` distinguishes encodings.
    pub(crate) fn new(modified: SystemTime, length: u64, suffix: &str) -> Self {
        let nanos = modified
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_nanos();
        Validators {
            etag: format!("\"{nanos:x}-{length:x}{suffix}\""),
            modified,
        }
    }

    pub(crate) fn etag_header(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(&self.etag).ok()
    }

    pub(crate) fn date_header(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(&httpdate::fmt_http_date(self.modified)).ok()
    }

    /// Evaluates the conditions in the order of the RFC.
    pub(crate) fn judge(&self, headers: &HeaderMap) -> Verdict {
        if headers.contains_key(IF_MATCH) {
            if !self.is_among(headers, &IF_MATCH, true) {
                return Verdict::Failed;
            }
        } else if date(headers, &IF_UNMODIFIED_SINCE).is_some_and(|since| self.is_after(since)) {
            return Verdict::Failed;
        }
        if headers.contains_key(IF_NONE_MATCH) {
            if self.is_among(headers, &IF_NONE_MATCH, false) {
                return Verdict::NotModified;
            }
        } else if date(headers, &IF_MODIFIED_SINCE).is_some_and(|since| !self.is_after(since)) {
            return Verdict::NotModified;
        }
        Verdict::Send
    }

    /// False if a range of an older version was requested.
    pub(crate) fn allows_range(&self, headers: &HeaderMap) -> bool {
        let Some(value) = headers.get(IF_RANGE) else {
            return true;
        };
        if value.as_bytes().starts_with(b"\"") {
            return value.as_bytes() == self.etag.as_bytes();
        }
        // The date must be exactly the same.
        date(headers, &IF_RANGE).is_some_and(|given| given == self.seconds())
    }

    fn is_among(&self, headers: &HeaderMap, name: &HeaderName, strong: bool) -> bool {
        headers
            .get_all(name)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|list| list.split(','))
            .map(str::trim)
            .any(|each| {
                let bare = match each.strip_prefix("W/") {
                    Some(_) if strong => return false,
                    Some(bare) => bare,
                    None => each,
                };
                bare == "*" || bare == self.etag
            })
    }

    fn is_after(&self, date: SystemTime) -> bool {
        self.seconds() > date
    }

    /// HTTP dates are whole seconds.
    fn seconds(&self) -> SystemTime {
        let since = self.modified.duration_since(UNIX_EPOCH);
        UNIX_EPOCH + Duration::from_secs(since.unwrap_or_default().as_secs())
    }
}

fn date(headers: &HeaderMap, name: &HeaderName) -> Option<SystemTime> {
    httpdate::parse_http_date(headers.get(name)?.to_str().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(headers: &[(HeaderName, &str)]) -> Verdict {
        let modified = UNIX_EPOCH + Duration::from_millis(784_111_777_500);
        let file = Validators {
            etag: "\"a\"".to_owned(),
            modified,
        };
        let headers = headers
            .iter()
            .map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()))
            .collect();
        file.judge(&headers)
    }

    const AT: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";

    #[test]
    fn etags_are_compared_weakly_or_strongly() {
        assert_eq!(
            judge(&[(IF_NONE_MATCH, "\"x\", W/\"a\"")]),
            Verdict::NotModified
        );
        assert_eq!(judge(&[(IF_NONE_MATCH, "*")]), Verdict::NotModified);
        assert_eq!(judge(&[(IF_NONE_MATCH, "\"b\"")]), Verdict::Send);
        assert_eq!(judge(&[(IF_MATCH, "\"a\"")]), Verdict::Send);
        assert_eq!(judge(&[(IF_MATCH, "W/\"a\"")]), Verdict::Failed);
    }

    #[test]
    fn dates_count_where_there_is_no_etag() {
        assert_eq!(judge(&[(IF_MODIFIED_SINCE, AT)]), Verdict::NotModified);
        assert_eq!(judge(&[(IF_MODIFIED_SINCE, BEFORE)]), Verdict::Send);
        assert_eq!(judge(&[(IF_MODIFIED_SINCE, "yesterday")]), Verdict::Send);
        assert_eq!(judge(&[(IF_UNMODIFIED_SINCE, BEFORE)]), Verdict::Failed);
        assert_eq!(judge(&[(IF_UNMODIFIED_SINCE, AT)]), Verdict::Send);
        let both = [(IF_NONE_MATCH, "\"b\""), (IF_MODIFIED_SINCE, AT)];
        assert_eq!(judge(&both), Verdict::Send);
    }
}
