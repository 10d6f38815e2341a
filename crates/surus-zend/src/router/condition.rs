//! Conditions of a route in addition to its path and method.

use std::rc::Rc;

use http::{HeaderMap, HeaderName};
use regex::Regex;

use super::matcher;

/// Both parts must hold.
#[derive(Debug, Default)]
pub(super) struct Condition {
    pub(super) host: Option<Host>,
    headers: Vec<(HeaderName, Option<String>)>,
}

/// `api.example.com`, `{tenant}.example.com`: a parameter matches one label, or its constraint.
#[derive(Debug)]
pub(super) struct Host {
    regex: Regex,
    pub(super) names: Vec<Rc<str>>,
}

impl Condition {
    /// `headers` are lines `name` or `name: value`; with a value, the header must be that, or a list with it.
    pub(super) fn new(host: &str, headers: &str) -> Result<Condition, String> {
        let mut condition = Condition::default();
        if !host.is_empty() {
            condition.host = Some(Host::new(host)?);
        }
        for line in headers.lines() {
            let (name, value) = line
                .split_once(':')
                .map_or((line, None), |(name, value)| (name, Some(value.trim())));
            let name = HeaderName::from_bytes(name.trim().as_bytes())
                .map_err(|_| format!("{name:?} is not the name of a header"))?;
            condition
                .headers
                .push((name, value.map(str::to_ascii_lowercase)));
        }
        Ok(condition)
    }

    /// The host's parameters, if all conditions hold.
    pub(super) fn check(&self, host: Option<&str>, headers: &HeaderMap) -> Option<Vec<String>> {
        for (name, wanted) in &self.headers {
            let mut values = headers.get_all(name).iter();
            let holds = match wanted {
                None => values.next().is_some(),
                Some(wanted) => values.any(|value| has(value.to_str().unwrap_or(""), wanted)),
            };
            if !holds {
                return None;
            }
        }
        match &self.host {
            None => Some(Vec::new()),
            Some(pattern) => pattern.values(host?),
        }
    }
}

/// Whether a header is the value, or a list with it; parameters after a semicolon are ignored.
fn has(header: &str, wanted: &str) -> bool {
    header.eq_ignore_ascii_case(wanted)
        || header.split(',').any(|item| {
            let item = item.split(';').next().unwrap_or(item);
            item.trim().eq_ignore_ascii_case(wanted)
        })
}

impl Host {
    fn new(pattern: &str) -> Result<Host, String> {
        let wrong = |error: String| format!("host {pattern:?}: {error}");
        let (mut text, mut names) = (String::new(), Vec::new());
        let mut rest = pattern;
        while let Some(open) = rest.find('{') {
            let close = rest[open..]
                .find('}')
                .ok_or_else(|| wrong("a { without its }".to_owned()))?
                + open;
            text.push_str(&literal(&rest[..open]).map_err(wrong)?);
            let (name, constraint) = rest[open + 1..close]
                .split_once(':')
                .map_or((&rest[open + 1..close], None), |(n, c)| (n, Some(c)));
            let label = match constraint {
                None => "[^.]+".to_owned(),
                Some(constraint) => matcher::expression(constraint).map_err(wrong)?,
            };
            text.push_str(&format!("({label})"));
            names.push(name.into());
            rest = &rest[close + 1..];
        }
        text.push_str(&literal(rest).map_err(wrong)?);
        let regex = matcher::compile(&format!("(?i:{text})")).map_err(wrong)?;
        Ok(Host { regex, names })
    }

    fn values(&self, host: &str) -> Option<Vec<String>> {
        let groups = self.regex.captures(without_port(host))?;
        let found = groups.iter().skip(1).flatten();
        Some(
            found
                .map(|group| group.as_str().to_ascii_lowercase())
                .collect(),
        )
    }
}

/// Text of a host name, escaped for a regular expression. Names are compared without a port.
fn literal(text: &str) -> Result<String, String> {
    let in_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let in_address = |c: char| c.is_ascii_hexdigit() || matches!(c, '[' | ']' | ':' | '.');
    match text.starts_with('[') {
        true if text.ends_with(']') && text.chars().all(in_address) => {}
        false if text.chars().all(in_name) => {}
        _ => return Err("it is a name or an address, without a port".to_owned()),
    }
    Ok(regex::escape(text))
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts() {
        let condition = Condition::new("{tenant}.example.com", "").unwrap();
        let none = HeaderMap::new();
        let check = |host| condition.check(host, &none);
        assert_eq!(
            check(Some("Acme.example.com:8080")),
            Some(vec!["acme".to_owned()])
        );
        for host in [
            None,
            Some("example.com"),
            Some("a.b.example.com"),
            Some("a.example.com.evil.org"),
            Some("a.exampleXcom"),
        ] {
            assert_eq!(check(host), None, "{host:?}");
        }
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for host in ["a b", "localhost:8080", "http://a", "a/b", "{a", "[::1]:80"] {
            let error = Condition::new(host, "").expect_err(host);
            assert!(error.contains(&format!("{host:?}")), "{error}");
        }
        let none = HeaderMap::new();
        let local = Condition::new("[::1]", "").unwrap();
        assert!(local.check(Some("[::1]:80"), &none).is_some());
    }

    #[test]
    fn headers() {
        let condition = Condition::new("", "accept: text/html\nx-beta").unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(
            "accept",
            "application/json, Text/HTML;q=0.8".parse().unwrap(),
        );
        assert!(condition.check(None, &headers).is_none());
        headers.insert("x-beta", "1".parse().unwrap());
        assert!(condition.check(None, &headers).is_some());
        assert!(Condition::new("", "no header").is_err());
    }
}
