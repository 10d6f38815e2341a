//! Signatures of JSON Web Tokens (RFC 7518, 3), for `Surus\Auth\Key`: ring signs, verifies and parses the keys.

use std::cell::RefCell;

use ring::{
    hmac,
    rand::SystemRandom,
    signature::{
        EcdsaKeyPair, RsaKeyPair, RsaPublicKeyComponents, UnparsedPublicKey,
        ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, ED25519,
        RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256,
    },
};

use crate::ffi::Str;

/// `first` and `second` are a secret and empty, a modulus and an exponent, or the coordinates of a point (for Ed25519
/// the second is empty): big-endian numbers.
fn verifies(algorithm: &[u8], first: &[u8], second: &[u8], text: &[u8], signature: &[u8]) -> bool {
    match algorithm {
        b"HS256" => {
            let key = hmac::Key::new(hmac::HMAC_SHA256, first);
            hmac::verify(&key, text, signature).is_ok()
        }
        b"RS256" => {
            let key = RsaPublicKeyComponents {
                n: without_zeros(first),
                e: without_zeros(second),
            };
            key.verify(&RSA_PKCS1_2048_8192_SHA256, text, signature)
                .is_ok()
        }
        b"ES256" => point(first, second).is_some_and(|point| {
            UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
                .verify(text, signature)
                .is_ok()
        }),
        b"EdDSA" => UnparsedPublicKey::new(&ED25519, first)
            .verify(text, signature)
            .is_ok(),
        _ => false,
    }
}

/// `key` is a secret, or a private key in PKCS #8. `None`: it is not a key for this algorithm.
fn sign(algorithm: &[u8], key: &[u8], text: &[u8]) -> Option<Vec<u8>> {
    let random = SystemRandom::new();
    match algorithm {
        b"HS256" => {
            let key = hmac::Key::new(hmac::HMAC_SHA256, key);
            Some(hmac::sign(&key, text).as_ref().to_vec())
        }
        b"RS256" => {
            let key = RsaKeyPair::from_pkcs8(key).ok()?;
            let mut signature = vec![0; key.public().modulus_len()];
            key.sign(&RSA_PKCS1_SHA256, &random, text, &mut signature)
                .ok()?;
            Some(signature)
        }
        b"ES256" => {
            let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key, &random);
            let signature = key.ok()?.sign(&random, text).ok()?;
            Some(signature.as_ref().to_vec())
        }
        _ => None,
    }
}

fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    &number[zeros..]
}

/// Uncompressed (SEC 1, 2.3.3).
fn point(x: &[u8], y: &[u8]) -> Option<Vec<u8>> {
    let mut point = vec![4];
    for coordinate in [x, y] {
        let coordinate = without_zeros(coordinate);
        point.resize(point.len() + 32usize.checked_sub(coordinate.len())?, 0);
        point.extend(coordinate);
    }
    Some(point)
}

#[no_mangle]
unsafe extern "C" fn surus_rs_verifies(
    algorithm: Str,
    first: Str,
    second: Str,
    text: Str,
    signature: Str,
) -> bool {
    // SAFETY: C passes texts that live for this call.
    unsafe {
        verifies(
            algorithm.bytes(),
            first.bytes(),
            second.bytes(),
            text.bytes(),
            signature.bytes(),
        )
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_sign(algorithm: Str, key: Str, text: Str, to: *mut Str) -> bool {
    thread_local! {
        static LAST: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    // SAFETY: as above.
    let signature = unsafe { sign(algorithm.bytes(), key.bytes(), text.bytes()) };
    let Some(signature) = signature else {
        return false;
    };
    LAST.with_borrow_mut(|last| {
        *last = signature;
        // SAFETY: C passes a place for the answer; the text stays until the next call.
        unsafe { to.write(Str::new(last)) };
    });
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_signs_and_verifies() {
        let key = b"0123456789abcdef0123456789abcdef";
        let signature = sign(b"HS256", key, b"text").expect("a signature");
        assert!(verifies(b"HS256", key, b"", b"text", &signature));
        assert!(!verifies(b"HS256", key, b"", b"tex", &signature));
        assert!(!verifies(b"HS256", b"other", b"", b"text", &signature));
        assert!(!verifies(b"none", key, b"", b"text", b""));
    }

    /// RFC 8037, appendix A.4.
    #[test]
    fn ed25519_of_the_standard() {
        let hex = |text: &str| -> Vec<u8> {
            let digits = (0..text.len()).step_by(2);
            digits
                .map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex"))
                .collect()
        };
        let key = hex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
        let signature = hex(concat!(
            "860c98d2297f3060a33f42739672d61b53cf3adefed3d3c672f320dc021b411e",
            "9d59b8628dc351e248b88b29468e0e41855b0fb7d83bb15be902bfccb8cd0a02"
        ));
        let text = b"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
        assert!(verifies(b"EdDSA", &key, b"", text, &signature));
        assert!(!verifies(b"EdDSA", &key, b"", &text[1..], &signature));
    }

    #[test]
    fn what_is_no_point_or_number_verifies_nothing() {
        assert!(!verifies(b"ES256", &[1; 33], &[1; 32], b"text", &[1; 64]));
        assert!(!verifies(b"ES256", &[0; 32], &[0; 32], b"text", &[0; 64]));
        assert!(!verifies(b"RS256", b"", b"", b"text", &[1; 256]));
        assert!(!verifies(
            b"RS256",
            &[255; 128],
            &[1, 0, 1],
            b"text",
            &[1; 128]
        ));
        assert!(sign(b"RS256", b"no key", b"text").is_none());
    }
}
