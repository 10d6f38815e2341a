//! The rules of names: what a channel may be called, and what its name says about it.

/// Bytes of the longest name of a channel. With the prefix of its application it is at most
/// [`surus_channels::LONGEST_NAME`].
const LONGEST_CHANNEL: usize = 164;

/// Bytes of the longest name of an event.
const LONGEST_EVENT: usize = 200;

/// Before the id of a user whose own channel it is.
const OF_USER: &str = "#server-to-user-";

/// Before the names of channels whose last event is kept for those who come later.
pub(crate) const CACHES: [&str; 4] = [
    "cache-",
    "private-cache-",
    "presence-cache-",
    "private-encrypted-cache-",
];

/// Before the names of clients' events.
pub(crate) const OF_CLIENT: &str = "client-";

/// Who may subscribe to a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind<'a> {
    Public,
    /// With a signature. Encrypted ones are private: only their subscribers can read what is sent.
    Private,
    /// With a signature that says who the subscriber is; all learn of each other.
    Presence,
    /// Whoever has signed in as this user.
    User(&'a str),
}

/// The name of the channel of a user.
pub(crate) fn of_user(user: &str) -> String {
    [OF_USER, user].concat()
}

/// What a channel of this name is; `None`: no channel can have it.
pub(crate) fn kind(name: &str) -> Option<Kind<'_>> {
    if let Some(user) = name.strip_prefix(OF_USER) {
        return (!user.is_empty() && name.len() <= LONGEST_CHANNEL).then_some(Kind::User(user));
    }
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_=@,.;".contains(&byte);
    if name.is_empty() || name.len() > LONGEST_CHANNEL || !name.bytes().all(is_allowed) {
        return None;
    }
    Some(if name.starts_with("private-") {
        Kind::Private
    } else if name.starts_with("presence-") {
        Kind::Presence
    } else {
        Kind::Public
    })
}

/// Whether the last event of a channel is kept for those who come later.
pub(crate) fn is_cache(name: &str) -> bool {
    CACHES.iter().any(|prefix| name.starts_with(prefix))
}

/// Whether only subscribers can read what is sent: the server sees no clients' events there.
pub(crate) fn is_encrypted(name: &str) -> bool {
    name.starts_with("private-encrypted-")
}

/// Whether an event can be called so.
pub(crate) fn is_event(name: &str) -> bool {
    let is_reserved = name.starts_with("pusher:") || name.starts_with("pusher_internal:");
    !name.is_empty() && name.len() <= LONGEST_EVENT && !is_reserved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_says_who_may_subscribe() {
        assert_eq!(kind("news"), Some(Kind::Public));
        assert_eq!(kind("cache-news"), Some(Kind::Public));
        assert_eq!(kind("private-a.b"), Some(Kind::Private));
        assert_eq!(kind("private-encrypted-a"), Some(Kind::Private));
        assert_eq!(kind("presence-cache-a"), Some(Kind::Presence));
        assert_eq!(kind("#server-to-user-7"), Some(Kind::User("7")));
        let long = "a".repeat(164);
        assert_eq!(kind(&long), Some(Kind::Public));
        for wrong in [
            "",
            "a b",
            "ä",
            "#a",
            "#server-to-user-",
            "a/b",
            &format!("{long}a"),
        ] {
            assert_eq!(kind(wrong), None, "{wrong}");
        }
        assert!(is_cache("private-cache-a") && !is_cache("private-a-cache-"));
    }
}
