//! A user: cookies are kept and redirects are followed.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::http::{Request, Response};

/// One user's cookies at one server. Paths, domains and expiry are not looked at, except that an expired
/// cookie (`Max-Age=0`) goes.
#[derive(Clone, Debug)]
pub struct Browser {
    address: SocketAddr,
    cookies: BTreeMap<String, String>,
}

impl Browser {
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            cookies: BTreeMap::new(),
        }
    }

    /// The same user at another server that serves the same site.
    pub fn at(&self, address: SocketAddr) -> Self {
        Self {
            address,
            ..self.clone()
        }
    }

    pub fn cookie(&self, name: &str) -> Option<&str> {
        self.cookies.get(name).map(String::as_str)
    }

    /// Sends a request with the cookies, keeps those of the response.
    pub fn send(&mut self, request: Request) -> Response {
        let pairs: Vec<_> = self
            .cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let request = if pairs.is_empty() {
            request
        } else {
            request.header("Cookie", &pairs.join("; "))
        };
        let response = request.send(self.address);
        for cookie in response.all("set-cookie") {
            let mut attributes = cookie.split(';').map(str::trim);
            let Some((name, value)) = attributes.next().and_then(|pair| pair.split_once('='))
            else {
                continue;
            };
            if attributes.any(|attribute| attribute.eq_ignore_ascii_case("max-age=0")) {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        response
    }

    pub fn get(&mut self, target: &str) -> Response {
        self.send(Request::get(target))
    }

    /// Sends a request and goes where the answer points, at most five times.
    pub fn follow(&mut self, request: Request) -> Response {
        let mut response = self.send(request);
        for _ in 0..5 {
            let Some(location) = response.header("location") else {
                break;
            };
            let target = self.target(location);
            response = self.get(&target);
        }
        response
    }

    /// The path and query of a URL at this server, without the fragment.
    fn target(&self, location: &str) -> String {
        let local = location
            .strip_prefix(&format!("http://{}", self.address))
            .unwrap_or(location);
        let local = if local.is_empty() { "/" } else { local };
        assert!(
            local.starts_with('/'),
            "a redirect to elsewhere: {location}"
        );
        local.split('#').next().unwrap_or_default().to_owned()
    }
}

/// The value that a page gives to the field of a form, whose name comes before it.
///
/// # Panics
/// With the page, if there is no such field.
pub fn field_of(page: &str, name: &str) -> String {
    let field = page.split_once(&format!("name=\"{name}\""));
    let value = field.and_then(|(_, rest)| rest.split_once("value=\""));
    let value = value.and_then(|(_, rest)| rest.split_once('"'));
    value.unwrap_or_else(|| panic!("{page}")).0.to_owned()
}
