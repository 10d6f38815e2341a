//! Signatures: HMAC-SHA256 with the secret of an application, in hexadecimal digits.

use std::fmt::Write;

use hmac::{Hmac, KeyInit, Mac};
use md5::{Digest, Md5};
use sha2::Sha256;

use crate::apps::App;

fn mac(secret: &str, text: &[u8]) -> Option<Hmac<Sha256>> {
    // Keys may have any length.
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).ok()?;
    mac.update(text);
    Some(mac)
}

/// The signature of a text.
pub(crate) fn sign(secret: &str, text: &[u8]) -> String {
    let mac = mac(secret, text);
    mac.map_or_else(String::new, |mac| hex(&mac.finalize().into_bytes()))
}

/// Whether `signature` is that of `text`. Takes the same time wherever it differs.
pub(crate) fn is_signed(secret: &str, text: &[u8], signature: &str) -> bool {
    let (Some(mac), Some(signature)) = (mac(secret, text), bytes_of(signature)) else {
        return false;
    };
    mac.verify_slice(&signature).is_ok()
}

/// Whether `auth`, which is `KEY:SIGNATURE`, is that of `text` and this application.
pub(crate) fn is_authorised(app: &App, text: &str, auth: &str) -> bool {
    auth.split_once(':').is_some_and(|(key, signature)| {
        key == app.key && is_signed(&app.secret, text.as_bytes(), signature)
    })
}

/// The MD5 of a body, as the HTTP API wants it. It protects nothing by itself: the signature covers it.
pub(crate) fn md5_of(body: &[u8]) -> String {
    hex(&Md5::digest(body))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn bytes_of(hex: &str) -> Option<Vec<u8>> {
    if hex.len() % 2 != 0 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let pairs = (0..hex.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok())
        .collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// For other tests.
    pub(crate) fn sign(secret: &str, text: &str) -> String {
        super::sign(secret, text.as_bytes())
    }

    /// The examples of Pusher's documentation ("Worked examples" of channel authorisation and of the HTTP API).
    #[test]
    fn signatures_are_those_of_the_documentation() {
        let secret = "7ad3773142a6692b25b8";
        let private = "58df8b0c36d6982b82c3ecf6b4662e34fe8c25bba48f5369f135bf843651c3a4";
        assert_eq!(sign(secret, "1234.1234:private-foobar"), private);
        assert!(is_signed(secret, b"1234.1234:private-foobar", private));
        let presence = "31935e7d86dba64c2a90aed31fdc61869f9b22ba9d8863bba239c03ca481bc80";
        let text =
            "1234.1234:presence-foobar:{\"user_id\":10,\"user_info\":{\"name\":\"Mr. Channels\"}}";
        assert!(is_signed(secret, text.as_bytes(), presence));
        let body = br#"{"name":"foo","channels":["project-3"],"data":"{\"some\":\"data\"}"}"#;
        assert_eq!(md5_of(body), "ec365a775a4cd0599faeb73354201b6f");
        let request = "POST\n/apps/3/events\nauth_key=278d425bdf160c739803&auth_timestamp=1353088179&auth_version=1.0\
                       &body_md5=ec365a775a4cd0599faeb73354201b6f";
        let signature = "da454824c97ba181a32ccc17a72625ba02771f50b50e1e7430e47a1f3f457e6c";
        assert!(is_signed(
            "7ad3773142a6692b25b8",
            request.as_bytes(),
            signature
        ));
        for wrong in ["", "zz", &signature[..62], &signature[..63], private] {
            assert!(!is_signed(secret, request.as_bytes(), wrong), "{wrong}");
        }
    }
}
