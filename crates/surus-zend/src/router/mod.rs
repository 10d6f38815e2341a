//! Routes of an application, matched before PHP is entered.
//!
//! A tree of segments: text selects the next node by hash, parameters are tried from the most to the least specific. If
//! a branch has no endpoint for the method or fails a condition, the search backtracks, so a specific route never hides
//! a general one. A path without parameters is found with one look-up, however many routes there are.

mod condition;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod matcher;
mod path;
mod pattern;
mod time_limit;

use std::{borrow::Cow, rc::Rc};

use http::{HeaderMap, Method};
// Clients choose the keys of look-ups, but not those in the maps: they cannot cause collisions.
use rustc_hash::FxHashMap;

use condition::Condition;
use matcher::Matcher;
use pattern::Segment;
pub(crate) use time_limit::TimeLimit;

/// A route as the application declares it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Declared {
    /// Separated by commas; "*" for all methods without a route of their own. Without a pattern: "404" or "405" for the
    /// route that answers requests that no other route takes.
    pub(crate) methods: String,
    pub(crate) pattern: String,
    pub(crate) host: String,
    /// A line `name` or `name: value` for each.
    pub(crate) headers: String,
    /// For people: its name and handler.
    pub(crate) about: String,
    /// File and line, for errors.
    pub(crate) origin: String,
    pub(crate) index: i64,
    pub(crate) time_limit: TimeLimit,
}

/// The parts of a request that are matched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) method: &'a Method,
    pub(crate) path: &'a str,
    pub(crate) host: Option<&'a str>,
    pub(crate) headers: &'a HeaderMap,
}

/// The result of a search.
#[derive(Debug)]
pub(crate) enum Match {
    Found {
        index: i64,
        time_limit: TimeLimit,
        /// A value is empty where an optional part was left out.
        parameters: Vec<(Rc<str>, Vec<u8>)>,
    },
    NotFound,
    NotAllowed {
        allow: String,
        /// The route that answers in this case.
        index: Option<i64>,
    },
    /// There is a route for the path with, or without, a slash at its end.
    Redirect {
        path: String,
    },
    /// The path is not percent-encoded UTF-8.
    Malformed,
}

/// A route at the end of a path.
#[derive(Debug)]
struct Endpoint {
    methods: Vec<String>,
    index: i64,
    time_limit: TimeLimit,
    names: Rc<[Rc<str>]>,
    condition: Option<Rc<Condition>>,
}

#[derive(Debug, Default)]
struct Node {
    texts: FxHashMap<Box<str>, Node>,
    dynamic: Vec<(Matcher, Node)>,
    rest: Vec<(Matcher, Vec<Endpoint>)>,
    ends: Vec<Endpoint>,
}

#[derive(Debug, Default)]
pub(crate) struct Router {
    root: Node,
    /// Paths without parameters.
    plain: FxHashMap<Box<str>, Vec<Endpoint>>,
    not_found: Option<i64>,
    not_allowed: Option<i64>,
    /// Whether a route has a condition on the host or a header.
    has_conditions: bool,
}

const ANY: &str = "*";

/// Routes by the shape of their path, method and conditions: these must be unique.
type Known<'r> = FxHashMap<(String, &'r str, &'r str, &'r str), &'r Declared>;

/// The error in a pattern, if it has one.
#[cfg(not(fuzzing))]
pub(crate) fn pattern_error(pattern: &str) -> Option<String> {
    pattern::parse(pattern).err()
}

impl Router {
    /// The error names the invalid pattern, and where it is declared.
    pub(crate) fn new(routes: &[Declared]) -> Result<Router, String> {
        let mut router = Router::default();
        let mut known = FxHashMap::default();
        for route in routes {
            router.add(route, &mut known).map_err(|error| {
                let at = if route.origin.is_empty() { "" } else { ": " };
                format!("{}{at}{error}", route.origin)
            })?;
        }
        Ok(router)
    }

    fn add<'r>(&mut self, route: &'r Declared, known: &mut Known<'r>) -> Result<(), String> {
        if route.pattern.is_empty() {
            match route.methods.as_str() {
                "404" => self.not_found = Some(route.index),
                _ => self.not_allowed = Some(route.index),
            }
            return Ok(());
        }
        let parsed = pattern::parse(&route.pattern)?;
        for method in route.methods.split(',') {
            let key = (parsed.shape.clone(), method, &*route.host, &*route.headers);
            if let Some(other) = known.insert(key, route) {
                return Err(format!(
                    "route {:?} takes {method} requests that {:?} takes already: {}",
                    route.pattern, other.pattern, other.origin
                ));
            }
        }
        let condition = Condition::new(&route.host, &route.headers)
            .map_err(|error| format!("route {:?}: {error}", route.pattern))?;
        let mut names = parsed.names;
        names.extend(condition.host.iter().flat_map(|h| h.names.iter().cloned()));
        for (i, name) in names.iter().enumerate() {
            if names[..i].contains(name) {
                let route = &route.pattern;
                return Err(format!(
                    "route {route:?}: two parameters are called {name:?}"
                ));
            }
        }
        let names: Rc<[Rc<str>]> = names.into();
        let conditional = !route.host.is_empty() || !route.headers.is_empty();
        self.has_conditions |= conditional;
        let condition = conditional.then(|| Rc::new(condition));
        for variant in parsed.variants {
            let endpoint = || Endpoint {
                methods: route.methods.split(',').map(str::to_owned).collect(),
                index: route.index,
                time_limit: route.time_limit,
                names: names.clone(),
                condition: condition.clone(),
            };
            if let Some(path) = plain(&variant.segments) {
                insert(self.plain.entry(path).or_default(), endpoint());
            }
            insert(self.root.ends(variant.segments), endpoint());
        }
        Ok(())
    }

    /// Whether [`Target::host`] and [`Target::headers`] are used.
    pub(crate) fn has_conditions(&self) -> bool {
        self.has_conditions
    }

    pub(crate) fn find(&self, target: &Target<'_>) -> Match {
        let mut allow = Vec::new();
        if let Some(ends) = self.plain.get(target.path) {
            if let Some(found) = choose(ends, target, &[], &mut allow) {
                return found;
            }
        }
        let Some(segments) = path::segments(target.path) else {
            return Match::Malformed;
        };
        if let Some(found) = self
            .root
            .find(target, &segments, &mut Vec::new(), &mut allow)
        {
            return found;
        }
        if !allow.is_empty() {
            return Match::NotAllowed {
                allow: allow_header(allow),
                index: self.not_allowed,
            };
        }
        if let Some(path) = self.other_slash(target) {
            return Match::Redirect { path };
        }
        match self.not_found {
            Some(index) => Match::Found {
                index,
                time_limit: TimeLimit::Configured,
                parameters: Vec::new(),
            },
            None => Match::NotFound,
        }
    }

    /// The path with a slash added to or removed from its end, if there is a route for that.
    fn other_slash(&self, target: &Target<'_>) -> Option<String> {
        let path = match target.path.strip_suffix('/') {
            Some(path) => path.to_owned(),
            None => format!("{}/", target.path),
        };
        // "//host/" and "/\host/" would lead a browser to another site.
        if path.is_empty() || path[1..].starts_with(['/', '\\']) {
            return None;
        }
        let segments = path::segments(&path)?;
        let other = Target {
            path: &path,
            ..*target
        };
        self.root
            .find(&other, &segments, &mut Vec::new(), &mut Vec::new())?;
        Some(path)
    }
}

/// The path that these segments match, if they have no parameters.
fn plain(segments: &[Segment]) -> Option<Box<str>> {
    let mut path = String::new();
    for segment in segments {
        let Segment::Text(text) = segment else {
            return None;
        };
        path.push('/');
        path.push_str(text);
    }
    // A client would send it encoded.
    (!path.contains('%')).then(|| path.into())
}

/// Inserts an endpoint; those with a condition come first, since they are more specific.
fn insert(ends: &mut Vec<Endpoint>, endpoint: Endpoint) {
    let at = match endpoint.condition {
        None => ends.len(),
        Some(_) => ends.iter().take_while(|e| e.condition.is_some()).count(),
    };
    ends.insert(at, endpoint);
}

impl Node {
    /// The endpoints of a path with these segments; creates the nodes that are missing.
    fn ends(&mut self, segments: Vec<Segment>) -> &mut Vec<Endpoint> {
        let mut node = self;
        for segment in segments {
            node = match segment {
                Segment::Text(text) => node.texts.entry(text).or_default(),
                Segment::Dynamic(matcher) => {
                    let at = position(&mut node.dynamic, matcher);
                    &mut node.dynamic[at].1
                }
                Segment::Rest(matcher) => {
                    let at = position(&mut node.rest, matcher);
                    return &mut node.rest[at].1;
                }
            };
        }
        &mut node.ends
    }

    fn find<'p>(
        &self,
        target: &Target<'_>,
        segments: &[Cow<'p, str>],
        values: &mut Vec<Cow<'p, str>>,
        allow: &mut Vec<String>,
    ) -> Option<Match> {
        let Some((segment, others)) = segments.split_first() else {
            return choose(&self.ends, target, values, allow);
        };
        if let Some(node) = self.texts.get(segment.as_ref()) {
            if let Some(found) = node.find(target, others, values, allow) {
                return Some(found);
            }
        }
        let known = values.len();
        for (matcher, node) in &self.dynamic {
            if matcher.take(segment.clone(), values) {
                if let Some(found) = node.find(target, others, values, allow) {
                    return Some(found);
                }
                values.truncate(known);
            }
        }
        if self.rest.is_empty() || segments.iter().any(|s| path::climbs(s)) {
            return None;
        }
        let rest: Cow<'p, str> = Cow::Owned(segments.join("/"));
        for (matcher, ends) in &self.rest {
            if matcher.take(rest.clone(), values) {
                if let Some(found) = choose(ends, target, values, allow) {
                    return Some(found);
                }
                values.truncate(known);
            }
        }
        None
    }
}

/// The index of this matcher's entry; inserts it at its rank if there is none.
fn position<T: Default>(entries: &mut Vec<(Matcher, T)>, matcher: Matcher) -> usize {
    if let Some(at) = entries.iter().position(|(m, _)| m.shape == matcher.shape) {
        return at;
    }
    let rank = matcher.rank();
    let at = entries.iter().take_while(|(m, _)| m.rank() <= rank).count();
    entries.insert(at, (matcher, T::default()));
    at
}

/// The endpoint for the method whose condition holds. Without one, adds the methods of such endpoints to `allow`.
fn choose(
    ends: &[Endpoint],
    target: &Target<'_>,
    values: &[Cow<'_, str>],
    allow: &mut Vec<String>,
) -> Option<Match> {
    let method = target.method.as_str();
    let has = |end: &Endpoint, name: &str| end.methods.iter().any(|m| m == name);
    // Most ends have one endpoint without a condition.
    let holds = |end: &Endpoint| match &end.condition {
        None => Some(Vec::new()),
        Some(condition) => condition.check(target.host, target.headers),
    };
    let names: &[&str] = if *target.method == Method::HEAD {
        &["HEAD", "GET", ANY]
    } else {
        &[method, ANY]
    };
    for name in names {
        for end in ends.iter().filter(|end| has(end, name)) {
            if let Some(host) = holds(end) {
                return Some(found(end, values, host));
            }
        }
    }
    for end in ends.iter().filter(|end| holds(end).is_some()) {
        allow.extend(end.methods.iter().cloned());
    }
    None
}

fn found(end: &Endpoint, values: &[Cow<'_, str>], host: Vec<String>) -> Match {
    let of_path = end.names.len() - host.len();
    let mut parameters = Vec::with_capacity(end.names.len());
    for (i, name) in end.names.iter().enumerate() {
        let value = match i.checked_sub(of_path) {
            Some(i) => host[i].as_bytes(),
            None => values.get(i).map_or(&b""[..], |value| value.as_bytes()),
        };
        parameters.push((name.clone(), value.to_vec()));
    }
    Match::Found {
        index: end.index,
        time_limit: end.time_limit,
        parameters,
    }
}

fn allow_header(mut methods: Vec<String>) -> String {
    if methods.iter().any(|m| m == "GET") {
        methods.push("HEAD".to_owned());
    }
    methods.push("OPTIONS".to_owned());
    let mut seen: Vec<&str> = Vec::new();
    for method in &methods {
        if !seen.contains(&method.as_str()) {
            seen.push(method);
        }
    }
    seen.join(", ")
}

#[cfg(test)]
mod tests;
