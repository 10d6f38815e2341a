//! What a client and the server agree upon in `Sec-WebSocket-Extensions` (RFC 6455, 9.1): permessage-deflate (RFC 7692), without
//! context takeover, so that nothing is kept between two messages.

use std::sync::atomic::{AtomicBool, Ordering};

const NAME: &str = "permessage-deflate";

/// The largest window, in bits, and the one without an agreement.
const LARGEST: u8 = 15;

/// The smallest that zlib can make.
const SMALLEST: u8 = 9;

static WITHOUT: AtomicBool = AtomicBool::new(false);

/// No messages of this process are compressed.
pub fn without_websocket_compression() {
    WITHOUT.store(true, Ordering::Relaxed);
}

/// The answer to the offers of a client, the preferred one first; `None`: there is nothing to agree upon.
#[must_use]
pub fn agree(offers: &str) -> Option<String> {
    if WITHOUT.load(Ordering::Relaxed) {
        return None;
    }
    let offer = offers.split(',').find_map(parse)?;
    let mut answer = format!("{NAME}; server_no_context_takeover; client_no_context_takeover");
    if let Some(bits) = offer.window {
        answer.push_str(&format!("; server_max_window_bits={bits}"));
    }
    Some(answer)
}

/// The window of the server's messages, in bits, by the answer that was sent. `None`: they are not compressed.
#[must_use]
pub fn window(answer: &str) -> Option<u8> {
    let agreed = answer.split(',').find_map(parse)?;
    Some(agreed.window.unwrap_or(LARGEST))
}

struct Offer {
    /// Of the server's messages, if it is bounded.
    window: Option<u8>,
}

/// `None`: it is another extension, or one that cannot be had (RFC 7692, 7.1).
fn parse(offer: &str) -> Option<Offer> {
    let mut words = offer.split(';').map(str::trim);
    if !words.next()?.eq_ignore_ascii_case(NAME) {
        return None;
    }
    let mut parsed = Offer { window: None };
    let mut seen = Vec::new();
    for word in words {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name.trim_end(), Some(unquoted(value.trim_start()))),
            None => (word, None),
        };
        let name = name.to_ascii_lowercase();
        match (&*name, value) {
            ("server_no_context_takeover" | "client_no_context_takeover", None)
            | ("client_max_window_bits", None) => {}
            ("client_max_window_bits", Some(value)) => {
                bits(value)?;
            }
            ("server_max_window_bits", Some(value)) => {
                parsed.window = Some(bits(value).filter(|bits| *bits >= SMALLEST)?);
            }
            _ => return None,
        }
        if seen.contains(&name) {
            return None;
        }
        seen.push(name);
    }
    Some(parsed)
}

fn unquoted(value: &str) -> &str {
    let inner = value
        .strip_prefix('"')
        .and_then(|value| value.strip_suffix('"'));
    inner.unwrap_or(value)
}

fn bits(value: &str) -> Option<u8> {
    let is_number = !value.starts_with('0') && value.bytes().all(|byte| byte.is_ascii_digit());
    let bits = value.parse().ok().filter(|_| is_number)?;
    (8..=LARGEST).contains(&bits).then_some(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers_are_answered() {
        let plain = "permessage-deflate; server_no_context_takeover; client_no_context_takeover";
        let bounded = format!("{plain}; server_max_window_bits=10");
        for (offers, answer) in [
            ("permessage-deflate", Some(plain)),
            ("Permessage-Deflate ; client_max_window_bits", Some(plain)),
            (
                "permessage-deflate; client_max_window_bits=8; client_no_context_takeover",
                Some(plain),
            ),
            (
                "permessage-deflate; server_max_window_bits=10",
                Some(&*bounded),
            ),
            (
                "permessage-deflate; server_max_window_bits=\"10\"",
                Some(&*bounded),
            ),
            (
                "other; a=b, permessage-deflate; server_max_window_bits = 10",
                Some(&*bounded),
            ),
            // What cannot be had is passed over.
            (
                "permessage-deflate; server_max_window_bits=8, permessage-deflate",
                Some(plain),
            ),
            ("permessage-deflate; server_max_window_bits=8", None),
            ("", None),
            ("x-webkit-deflate-frame", None),
            ("permessage-deflate; server_max_window_bits", None),
            ("permessage-deflate; server_max_window_bits=16", None),
            ("permessage-deflate; server_max_window_bits=010", None),
            ("permessage-deflate; server_max_window_bits=+10", None),
            ("permessage-deflate; client_max_window_bits=7", None),
            ("permessage-deflate; server_no_context_takeover=1", None),
            (
                "permessage-deflate; server_no_context_takeover; server_no_context_takeover",
                None,
            ),
            ("permessage-deflate; unknown", None),
            ("permessage-deflate;", None),
        ] {
            assert_eq!(agree(offers).as_deref(), answer, "{offers}");
        }
        assert_eq!(window(plain), Some(15));
        assert_eq!(window(&bounded), Some(10));
        assert_eq!(window("other"), None);
    }
}
