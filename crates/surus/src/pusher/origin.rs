//! Whose pages may connect. Browsers let any page open a WebSocket to this server, and say which one it is.

/// Whether a page of `origin` may, where requests are for `host`. `allowed` is in lower case. Clients that are no browsers say
/// no origin.
pub(super) fn may(allowed: &[String], origin: Option<&str>, host: Option<&str>) -> bool {
    let Some(origin) = origin else {
        return true;
    };
    let origin = origin.to_ascii_lowercase();
    if allowed.iter().any(|each| each == "*") {
        return true;
    }
    let authority = origin
        .strip_prefix("http://")
        .or_else(|| origin.strip_prefix("https://"));
    // Such as "null", of a page that is no site's.
    let Some(authority) = authority else {
        return false;
    };
    let own = host.map(str::to_ascii_lowercase);
    if own.is_some_and(|own| without_port_of_scheme(&own) == without_port_of_scheme(authority)) {
        return true;
    }
    // Browsers leave out the port of the scheme.
    let authority = match has_port(authority) {
        true => authority.to_owned(),
        false if origin.starts_with("https://") => format!("{authority}:443"),
        false => format!("{authority}:80"),
    };
    allowed.iter().any(|each| match each.split_once("://") {
        Some((scheme, rest)) => {
            origin.starts_with(&format!("{scheme}://")) && matches(rest, &authority)
        }
        None => matches(each, &authority),
    })
}

/// Whether this is one of the hosts that are meant: any port, unless one is given. `authority` has one.
fn matches(pattern: &str, authority: &str) -> bool {
    let authority = match has_port(pattern) {
        true => authority,
        false => host_of(authority),
    };
    match pattern.strip_prefix("*.") {
        Some(domain) => authority
            .strip_suffix(domain)
            .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
        None => authority == pattern,
    }
}

fn has_port(authority: &str) -> bool {
    host_of(authority).len() < authority.len()
}

fn host_of(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        // Not in an address of IPv6.
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    }
}

fn without_port_of_scheme(authority: &str) -> &str {
    let plain = authority.strip_suffix(":80");
    plain
        .or_else(|| authority.strip_suffix(":443"))
        .unwrap_or(authority)
}

#[cfg(test)]
mod tests {
    #[test]
    fn pages_of_the_own_host_may_and_those_that_are_named() {
        let allowed = [
            "app.example.com",
            "*.example.org",
            "https://x.example:8443",
            "https://y.example:443",
            "http://z.example:80",
            "v.example:443",
        ];
        let allowed = allowed.map(str::to_owned);
        let may = |origin: &str| super::may(&allowed, Some(origin), Some("Site.example:443"));
        for yes in [
            "https://site.example",
            "http://SITE.example:80",
            "http://app.example.com",
            "https://app.example.com:444",
            "https://a.b.example.org",
            "https://x.example:8443",
            "https://y.example",
            "https://y.example:443",
            "http://z.example",
            "https://v.example",
        ] {
            assert!(may(yes), "{yes}");
        }
        for no in [
            "https://site.example:8080",
            "https://site.example.evil.example",
            "https://example.org",
            "https://.example.org",
            "https://evilexample.org",
            "https://app.example.com.evil.example",
            "http://x.example:8443",
            "https://x.example",
            "http://y.example",
            "https://y.example:444",
            "https://z.example",
            "http://v.example",
            "null",
            "",
            "app.example.com",
        ] {
            assert!(!may(no), "{no}");
        }
        assert!(super::may(&allowed, None, None));
        assert!(super::may(&["*".to_owned()], Some("null"), None));
        assert!(super::may(
            &[],
            Some("http://[::1]:8080"),
            Some("[::1]:8080")
        ));
    }
}
