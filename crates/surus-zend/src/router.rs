//! Routes of an application, matched before PHP is entered.

use std::rc::Rc;

use http::Method;

/// What a request line leads to.
pub(crate) enum Match {
    Found {
        index: i64,
        parameters: Vec<(Rc<str>, Vec<u8>)>,
    },
    NotFound,
    NotAllowed {
        allow: String,
    },
}

#[derive(Clone)]
struct Parameter {
    name: Rc<str>,
    digits: bool,
}

struct Route {
    index: i64,
    parameters: Vec<Parameter>,
}

/// One tree per method; there are few, so a list is the fastest map.
pub(crate) struct Router {
    methods: Vec<(String, matchit::Router<Route>)>,
}

const ANY: &str = "*";

impl Router {
    /// Takes `(method, pattern, index)`; the error names the pattern that is wrong.
    pub(crate) fn new(routes: &[(String, String, i64)]) -> Result<Router, String> {
        let mut methods: Vec<(String, matchit::Router<Route>)> = Vec::new();
        for (method, pattern, index) in routes {
            let (path, parameters) = parse(pattern)?;
            if !methods.iter().any(|(name, _)| name == method) {
                methods.push((method.clone(), matchit::Router::new()));
                methods.sort_by(|a, b| a.0.cmp(&b.0));
            }
            let Some((_, tree)) = methods.iter_mut().find(|(name, _)| name == method) else {
                continue;
            };
            tree.insert(
                path,
                Route {
                    index: *index,
                    parameters,
                },
            )
            .map_err(|error| format!("route {method} {pattern:?}: {error}"))?;
        }
        Ok(Router { methods })
    }

    pub(crate) fn find(&self, method: &Method, path: &str) -> Match {
        let name = method.as_str();
        let mut found = self.at(name, path);
        if found.is_none() && *method == Method::HEAD {
            found = self.at("GET", path);
        }
        if let Some(found) = found.or_else(|| self.at(ANY, path)) {
            return found;
        }
        let mut allow: Vec<&str> = self
            .methods
            .iter()
            .map(|(name, _)| name.as_str())
            .filter(|m| self.at(m, path).is_some())
            .collect();
        if allow.is_empty() {
            return Match::NotFound;
        }
        if allow.contains(&"GET") && !allow.contains(&"HEAD") {
            allow.push("HEAD");
        }
        allow.push("OPTIONS");
        Match::NotAllowed {
            allow: allow.join(", "),
        }
    }

    fn at(&self, method: &str, path: &str) -> Option<Match> {
        let (_, tree) = self.methods.iter().find(|(name, _)| name == method)?;
        let found = tree.at(path).ok()?;
        let mut parameters = Vec::with_capacity(found.value.parameters.len());
        for (parameter, (_, raw)) in found.value.parameters.iter().zip(found.params.iter()) {
            if parameter.digits && !is_integer(raw) {
                return None;
            }
            parameters.push((parameter.name.clone(), percent_decode(raw)));
        }
        Some(Match::Found {
            index: found.value.index,
            parameters,
        })
    }
}

fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.len() <= 19 && digits.bytes().all(|b| b.is_ascii_digit())
}

/// `/users/{id:int}` and `/files/{rest*}` in matchit's notation, with what we check ourselves.
fn parse(pattern: &str) -> Result<(String, Vec<Parameter>), String> {
    if !pattern.starts_with('/') {
        return Err(format!("route {pattern:?} must start with a slash"));
    }
    let mut path = String::with_capacity(pattern.len());
    let mut parameters = Vec::new();
    let mut rest = pattern;
    while let Some(open) = rest.find('{') {
        path.push_str(&rest[..open]);
        let close = rest[open..]
            .find('}')
            .ok_or_else(|| format!("route {pattern:?}: a {{ without its }}"))?
            + open;
        let inside = &rest[open + 1..close];
        let (name, constraint) = inside
            .split_once(':')
            .map_or((inside, None), |(n, c)| (n, Some(c)));
        let (name, catch_all) = name.strip_suffix('*').map_or((name, false), |n| (n, true));
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            return Err(format!(
                "route {pattern:?}: {inside:?} is not a parameter name"
            ));
        }
        let digits = match constraint {
            None => false,
            Some("int") => true,
            Some(other) => {
                return Err(format!(
                    "route {pattern:?}: unknown constraint {other:?}; there is \"int\""
                ))
            }
        };
        path.push_str(&if catch_all {
            format!("{{*{name}}}")
        } else {
            format!("{{{name}}}")
        });
        parameters.push(Parameter {
            name: name.into(),
            digits,
        });
        rest = &rest[close + 1..];
    }
    path.push_str(rest);
    Ok((path, parameters))
}

fn percent_decode(text: &str) -> Vec<u8> {
    if !text.contains('%') {
        return text.as_bytes().to_vec();
    }
    let hex = |b: u8| (b as char).to_digit(16);
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        if bytes[i] == b'%' && i + 2 < bytes.len() {
            if let (Some(high), Some(low)) = (hex(bytes[i + 1]), hex(bytes[i + 2])) {
                out.push((high * 16 + low) as u8);
                i += 3;
                continue;
            }
        }
        out.push(bytes[i]);
        i += 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn router(routes: &[(&str, &str)]) -> Router {
        let routes: Vec<_> = routes
            .iter()
            .enumerate()
            .map(|(i, (m, p))| (m.to_string(), p.to_string(), i as i64))
            .collect();
        Router::new(&routes).unwrap()
    }

    fn found(router: &Router, method: Method, path: &str) -> Option<(i64, Vec<String>)> {
        match router.find(&method, path) {
            Match::Found { index, parameters } => Some((
                index,
                parameters
                    .into_iter()
                    .map(|(_, v)| String::from_utf8(v).unwrap())
                    .collect(),
            )),
            _ => None,
        }
    }

    #[test]
    fn parameters_are_checked_and_decoded() {
        let router = router(&[
            ("GET", "/users/{id:int}"),
            ("GET", "/files/{rest*}"),
            ("GET", "/n/{name}"),
        ]);
        assert_eq!(
            found(&router, Method::GET, "/users/42"),
            Some((0, vec!["42".into()]))
        );
        assert_eq!(found(&router, Method::GET, "/users/me"), None);
        assert_eq!(
            found(&router, Method::GET, "/files/a/b.txt"),
            Some((1, vec!["a/b.txt".into()]))
        );
        assert_eq!(
            found(&router, Method::GET, "/n/a%20b%2Fc%"),
            Some((2, vec!["a b/c%".into()]))
        );
    }

    #[test]
    fn methods() {
        let router = router(&[("GET", "/a"), ("POST", "/a"), ("*", "/any")]);
        assert_eq!(found(&router, Method::HEAD, "/a").unwrap().0, 0);
        assert_eq!(found(&router, Method::POST, "/a").unwrap().0, 1);
        assert_eq!(found(&router, Method::DELETE, "/any").unwrap().0, 2);
        assert!(
            matches!(router.find(&Method::PUT, "/a"), Match::NotAllowed { allow } if allow == "GET, POST, HEAD, OPTIONS")
        );
        assert!(matches!(router.find(&Method::GET, "/b"), Match::NotFound));
    }

    #[test]
    fn wrong_patterns_are_named() {
        for pattern in ["users", "/a/{", "/a/{b:what}", "/a/{b c}"] {
            let error = Router::new(&[("GET".into(), pattern.into(), 0)])
                .err()
                .unwrap();
            assert!(error.contains(pattern), "{error}");
        }
    }
}
