//! The format of a body.

/// The format of a body or a query string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Media {
    /// `application/json`, or a type that ends in `+json`.
    Json,
    /// `application/x-www-form-urlencoded`, or a query string.
    Form,
    /// `multipart/form-data` (RFC 7578).
    Multipart {
        /// The separator of the parts (RFC 2046, 5.1.1).
        boundary: String,
    },
}

/// The media types that a body may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepts {
    /// `application/json` and types that end in `+json`.
    pub json: bool,
    /// `application/x-www-form-urlencoded` and `multipart/form-data`.
    pub form: bool,
}

impl Accepts {
    /// For the `Accept-Post` header and messages.
    #[must_use]
    pub fn names(self) -> &'static str {
        match (self.json, self.form) {
            (true, true) => {
                "application/json, application/x-www-form-urlencoded, multipart/form-data"
            }
            (false, true) => "application/x-www-form-urlencoded, multipart/form-data",
            _ => "application/json",
        }
    }

    /// The format that a `Content-Type` header names, or None if it is not accepted. JSON is UTF-8 (RFC 8259): another
    /// charset is not JSON.
    #[must_use]
    pub fn media(self, content_type: Option<&str>) -> Option<Media> {
        let content_type = content_type?;
        let (essence, parameters) = content_type
            .split_once(';')
            .map_or((content_type, ""), |(essence, rest)| (essence, rest));
        let essence = essence.trim();
        if essence.eq_ignore_ascii_case("application/json") || is_json_suffix(essence) {
            let charset = parameter(parameters, "charset");
            let utf8 = charset
                .is_none_or(|c| c.eq_ignore_ascii_case("utf-8") || c.eq_ignore_ascii_case("utf8"));
            return (self.json && utf8).then_some(Media::Json);
        }
        if !self.form {
            return None;
        }
        if essence.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            return Some(Media::Form);
        }
        if essence.eq_ignore_ascii_case("multipart/form-data") {
            let boundary =
                parameter(parameters, "boundary").filter(|b| !b.is_empty() && b.len() <= 70)?;
            return Some(Media::Multipart { boundary });
        }
        None
    }
}

/// `application/merge-patch+json` and similar types.
fn is_json_suffix(essence: &str) -> bool {
    essence
        .len()
        .checked_sub(5)
        .and_then(|at| essence.get(at..))
        .is_some_and(|suffix| suffix.eq_ignore_ascii_case("+json"))
        && essence.contains('/')
}

/// A parameter of a media type, unquoted.
pub(crate) fn parameter(text: &str, wanted: &str) -> Option<String> {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ';']);
        let (name, after) = rest.split_once('=')?;
        let (value, next) = if let Some(quoted) = after.strip_prefix('"') {
            unquote(quoted)?
        } else {
            let end = after.find(';').unwrap_or(after.len());
            (after[..end].trim().to_owned(), &after[end..])
        };
        if name.trim().eq_ignore_ascii_case(wanted) {
            return Some(value);
        }
        rest = next;
    }
}

/// The text before the closing quote, and the text after it.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(characters.next()?.1),
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types() {
        let json = Accepts {
            json: true,
            form: false,
        };
        let all = Accepts {
            json: true,
            form: true,
        };
        for text in [
            "application/json",
            "Application/JSON; charset=UTF-8",
            "application/merge-patch+json",
        ] {
            assert_eq!(json.media(Some(text)), Some(Media::Json), "{text}");
        }
        for text in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "application/json; charset=latin1",
            "+json",
            "",
            "é+json",
        ] {
            assert_eq!(json.media(Some(text)), None, "{text}");
        }
        assert_eq!(json.media(None), None);
        assert_eq!(
            all.media(Some("application/x-www-form-urlencoded; charset=utf-8")),
            Some(Media::Form)
        );
        let boundary = |text: &str| match all.media(Some(text)) {
            Some(Media::Multipart { boundary }) => Some(boundary),
            _ => None,
        };
        assert_eq!(
            boundary("multipart/form-data; boundary=abc").as_deref(),
            Some("abc")
        );
        assert_eq!(
            boundary("multipart/form-data; x=\"a;b\"; boundary=\"a \\\"b\"").as_deref(),
            Some("a \"b")
        );
        assert_eq!(boundary("multipart/form-data"), None);
        assert_eq!(boundary("multipart/form-data; boundary=\"open"), None);
    }
}
