//! The keys of a provider, read over HTTP: they change, and the provider is slow, wrong or away.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use surus_tests::parallel::together;
use surus_tests::redis::Redis;
use surus_tests::temp::TempDir;

use super::*;

struct Provider {
    server: Surus,
}

impl Provider {
    fn start() -> Self {
        let server = Surus::serve(&fixture("middleware/provider.php")).start();
        Provider { server }
    }

    fn has(&self, keys: &Path) {
        fs::copy(keys, self.server.folder().join("keys.json")).expect("its document");
    }

    fn is(&self, mode: &str) {
        fs::write(self.server.folder().join("mode"), mode).expect("its mode");
    }

    fn hits(&self) -> i64 {
        ask(&self.server, "GET /hits", &[]).json()[0]
            .as_i64()
            .expect("a number")
    }

    /// An application that trusts it.
    fn trusted(&self, max_age: u32, pause: u32) -> surus_tests::surus::Options {
        Surus::serve(&fixture("middleware/provider.php"))
            .env(
                "JWKS_URL",
                &format!("http://{}/keys", self.server.address()),
            )
            .env("JWKS_MAX_AGE", &max_age.to_string())
            .env("JWKS_PAUSE", &pause.to_string())
    }
}

/// A token, and the key set that it is of.
fn issue(folder: &TempDir, suffix: &str) -> (String, std::path::PathBuf) {
    let set = folder.path().join(format!("keys-{suffix}.json"));
    let output = Command::new("php8.2")
        .arg(fixture("middleware/tokens.php"))
        .arg(&set)
        .arg(suffix)
        .output()
        .expect("PHP");
    let tokens: Value = serde_json::from_slice(&output.stdout).expect("tokens");
    let token = tokens["set"]["rsa"].as_str().expect("a token");
    (format!("Authorization: Bearer {token}"), set)
}

fn status(server: &Surus, token: &str) -> u16 {
    ask(server, "GET /", &[token]).status
}

#[test]
fn keys_are_read_once_and_again_when_they_change() {
    let folder = TempDir::new("keys");
    let (old, old_keys) = issue(&folder, "-old");
    let (new, new_keys) = issue(&folder, "-new");
    let provider = Provider::start();
    provider.has(&old_keys);
    provider.is("slow");

    // All that come while it is being read wait for it.
    let careful = provider.trusted(3600, 3600).start();
    let (all, _) = together(20, |_| status(&careful, &old));
    assert!(all.iter().all(|status| *status == 200), "{all:?}");
    assert_eq!(provider.hits(), 1);
    for _ in 0..10 {
        assert_eq!(status(&careful, &new), 401, "tokens do not make it look");
    }
    assert_eq!(provider.hits(), 1);

    provider.is("");
    let quick = provider.trusted(3600, 0).start();
    assert_eq!((status(&quick, &old), status(&quick, &old)), (200, 200));
    assert_eq!(provider.hits(), 2);
    provider.has(&new_keys);
    assert_eq!(status(&quick, &new), 200, "a key that is not known");
    assert_eq!(provider.hits(), 3);
    assert_eq!(status(&quick, &old), 401, "a key that was taken back");
    assert_eq!(status(&quick, &new), 200);

    // An old document is read again, also for keys that it has.
    let forgetful = provider.trusted(0, 0).start();
    assert_eq!(status(&forgetful, &new), 200);
    provider.has(&old_keys);
    assert_eq!(
        (status(&forgetful, &new), status(&forgetful, &old)),
        (401, 200)
    );
}

#[test]
fn a_provider_that_is_away_or_wrong() {
    let folder = TempDir::new("keys");
    let (token, keys) = issue(&folder, "");
    let provider = Provider::start();
    provider.has(&keys);
    let server = provider.trusted(0, 0).start();
    let wrong = ["down", "moved", "html", "large", "cut"];
    for mode in wrong {
        provider.is(mode);
        assert_eq!(status(&server, &token), 401, "{mode}: nothing is known yet");
    }
    provider.is("");
    assert_eq!(status(&server, &token), 200);
    for mode in wrong {
        provider.is(mode);
        assert_eq!(
            status(&server, &token),
            200,
            "{mode}: what is known is kept"
        );
    }
    drop(provider);
    assert_eq!(status(&server, &token), 200);

    let error = Surus::serve(&fixture("middleware/provider.php"))
        .env("JWKS_URL", "http://issuer.example/keys")
        .boot_error();
    assert!(error.contains("Keys come from an https address"), "{error}");
}

#[test]
fn workers_share_what_one_has_read() {
    let folder = TempDir::new("keys");
    let (token, keys) = issue(&folder, "");
    let provider = Provider::start();
    provider.has(&keys);
    let redis = Redis::shared();
    let prefix = format!("jwks-{}", std::process::id());
    let server = provider
        .trusted(3600, 3600)
        .env("REDIS_PORT", &redis.port().to_string())
        .env("JWKS_PREFIX", &prefix)
        .workers(3)
        .start();
    assert_eq!(status(&server, &token), 200);
    for _ in 0..20 {
        assert_eq!(status(&server, &token), 200);
    }
    assert_eq!(provider.hits(), 1);
}
