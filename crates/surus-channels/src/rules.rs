//! Which channels have a history.

use std::time::Duration;

/// How much of a channel is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// The newest ones.
    pub messages: u64,
    /// Each as long as this.
    pub ttl: Duration,
}

/// Patterns of names with what is kept of such channels; the first that matches counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules(Vec<(Box<str>, Option<Keep>)>);

impl Rules {
    /// `pattern`: a name in which each `*` stands for any characters. `None`: nothing is kept.
    pub fn add(&mut self, pattern: &str, keep: Option<Keep>) {
        self.0.push((pattern.into(), keep));
    }

    /// What is kept of the channel with this name.
    #[must_use]
    pub fn of(&self, name: &str) -> Option<Keep> {
        let rule = self.0.iter().find(|(pattern, _)| matches(pattern, name));
        rule.and_then(|(_, keep)| *keep)
    }
}

/// In time that is bounded by the product of both lengths: after a `*`, only the last one is tried again.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut p, mut n) = (0, 0);
    let mut star = None;
    while n < name.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p + 1, n));
            p += 1;
        } else if pattern.get(p) == Some(&name[n]) {
            p += 1;
            n += 1;
        } else if let Some((after, from)) = star {
            star = Some((after, from + 1));
            p = after;
            n = from + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, name) in [
            ("a", "a"),
            ("*", "a/b"),
            ("rooms/*", "rooms/"),
            ("rooms/*", "rooms/1/x"),
            ("*/log", "a/b/log"),
            ("a*b*c", "a-b-b-c"),
            ("**", "x"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("a", "b"),
            ("a", "aa"),
            ("", "a"),
            ("rooms/*", "room"),
            ("*/log", "log"),
            ("a*b*c", "a-c-b"),
        ] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn the_first_that_matches_counts() {
        let keep = |messages| {
            let ttl = Duration::from_secs(1);
            Some(Keep { messages, ttl })
        };
        let mut rules = Rules::default();
        rules.add("a/private", None);
        rules.add("a/*", keep(1));
        rules.add("*", keep(2));
        assert_eq!(rules.of("a/private"), None);
        assert_eq!(rules.of("a/b"), keep(1));
        assert_eq!(rules.of("b"), keep(2));
        assert_eq!(Rules::default().of("b"), None);
    }
}
