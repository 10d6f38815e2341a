use super::*;

fn judged(patterns: &[&str], path: &str) -> Verdict {
    let hidden = Hidden::with(patterns.iter().copied()).expect("patterns");
    hidden.judge(path.as_bytes(), false)
}

#[test]
fn what_an_installation_leaves_is_hidden() {
    for path in [
        "/.env",
        "/a/.git/config",
        "/.well-known/.x",
        "/.../x",
        "/. ./x",
        "/surus.toml",
        "/surus.prod.toml",
        "/sub/Surus.TOML",
        "/surus.toml.",
        "/surus.toml. .",
        "/surus.toml.br",
        "/error_log",
        "/error.log-20260101.gz",
        "/composer.json",
        "/composer.lock.bak",
        "/dump.sql",
        "/dump.sql.gz",
        "/dump.sql.tar.gz",
        "/data.sqlite3",
        "/data.sqlite-wal",
        "/app.db-journal",
        "/error.log.1",
        "/error.log.2.gz",
        "/wp-config.php.bak",
        "/wp-config.php~",
        "/wp-config.php.1",
        "/wp-config.php.gz",
        "/wp-config.php.txt",
        "/wp-config.php_old",
        "/x.php.old",
        "/x.php.bak2",
        "/settings.yml.bak",
        "/settings.yml.bak3",
        "/settings.yml.bak-2026",
        "/x.php.copy",
        "/x.php.tmp",
        "/x.php.orig",
        "/x.php.swp",
        "/x.php.dpkg-old",
        "/x.php.dpkg-dist",
        "/x.php.rpmsave",
        "/x.php.rpmnew",
        "/x.php.2026-11-23",
        "/x.php5",
        "/x.phps",
        "/x.phpt",
        "/x.phar",
        "/x.phtml.txt",
        "/x.php.json",
        "/x.php?id=1",
        "/.x.php.swp",
        "/settings.ini.dpkg-old",
        "/error.log.2026-11-23",
        "/error.log.2026-11-23.gz",
        "/error_log-20261123",
        "/error_log.1",
        "/access.log_old",
        "/server.key",
        "/example.com.key",
        "/example.com.key.old",
        "/dump.tar.gz",
        "/backup.zip",
        "/files/Backup.ZIP",
        "/example.com-backup-2026-11-23.tar.gz",
        "/a.PHP",
        "/a.phtml",
        "/#a.js#",
        "/.a.js.swp",
        "/site.bak/style.css",
        "/privkey.pem",
        "/oauth-private.key",
        "/Dockerfile",
        "/docker-compose.prod.yml",
        "/wp-content/plugins/x/vendor/phpunit/phpunit/src/Util/PHP/eval-stdin.php",
    ] {
        let verdict = judged(&[], path);
        assert!(verdict == Verdict::Hidden, "{path}: {verdict:?}");
    }
}

#[test]
fn what_sites_serve_is_served() {
    for path in [
        "/",
        "/style.css",
        "/js/app.js.gz",
        "/js/composer.js",
        "/js/jquery-3.7.1.min.js",
        "/build/manifest.json",
        "/.well-known/security.txt",
        "/.well-known/stellar.toml",
        "/wp-content/plugins/x/vendor/select2/select2.min.js",
        "/vendors/a.js",
        "/readme.html",
        "/license.txt",
        "/openapi.yaml",
        "/release-1.2.tar.gz",
        "/backup-tool-1.2.zip",
        "/photos.zip",
        "/id_rsa.pub",
        "/ca.crt",
        "/v1.0/a.css",
        "/blog/log",
        "/page.php.html",
        "/page.php?id=1.html",
        "/style.php.css",
        "/js/app.bakery.js",
        "/reference/dockerfile/",
        "/reference/package.json/a.html",
        "/a.php/b.css",
    ] {
        assert_eq!(judged(&[], path), Verdict::Served, "{path}");
    }
    for path in ["/vendor", "/vendor/a/b.js", "/Node_Modules/a.js"] {
        assert_eq!(judged(&[], path), Verdict::OfProject, "{path}");
    }
    assert_eq!(judged(&[], "/vendor/a/composer.json"), Verdict::Hidden);
}

#[test]
fn a_setting_adds_and_takes_back() {
    use Verdict::{Hidden, OfProject, Served};
    for (patterns, path, verdict) in [
        (&["*.secret"][..], "/a/b.secret", Hidden),
        (&["*.secret"], "/a/b.SECRET.gz", Hidden),
        (&["drafts/"], "/a/drafts/b.txt", Hidden),
        (&["/internal/"], "/internal/a.txt", Hidden),
        (&["/internal/"], "/a/internal/a.txt", Served),
        (&["/a/*/b"], "/a/x/b/c", Hidden),
        (&["/a/*/b"], "/a/x/y/b", Served),
        (&["a/b"], "/a/b", Hidden),
        (&["!*.sqlite*"], "/a.sqlite3", Served),
        (&["!*.sqlite"], "/a.sqlite", Served),
        (&["!*.sqlite"], "/a.sqlite3", Hidden),
        (&["!*.sqlite"], "/vendor/a.sqlite", OfProject),
        (&["!*.sqlite"], "/.git/a.sqlite", Hidden),
        (&["!*.sql", "dump.sql"], "/dump.sql", Hidden),
        (&["!*.sql", "dump.sql"], "/schema.sql", Served),
        (&["dump.sql", "!*.sql"], "/dump.sql", Served),
        (&["!schema.sql.gz"], "/schema.sql.gz", Served),
        (&["!schema.sql.gz"], "/schema.sql", Hidden),
        (&["!/vendor/"], "/vendor/a.js", Served),
        (&["!/vendor/"], "/vendor/composer.json", Hidden),
        (
            &["!/vendor/acme/assets"],
            "/vendor/acme/assets/a.js",
            Served,
        ),
        (&["!/vendor/acme/assets"], "/vendor/acme/a.js", OfProject),
        (
            &["/Downloads/", "!/downloads/free"],
            "/downloads/free/a",
            Served,
        ),
        (&["!.*"], "/.env", Served),
        (&["!*.key"], "/talk.key", Served),
        (&["!*.zip"], "/backup.zip", Served),
        (&["!backup.zip"], "/a/backup.zip", Served),
        (&["!/downloads/*"], "/downloads/backup.zip", Served),
        (&["!*.phps"], "/a.phps", Served),
    ] {
        assert_eq!(judged(patterns, path), verdict, "{patterns:?} {path}");
    }
}

#[test]
fn patterns_that_are_none() {
    for pattern in ["", "!", "/", "!//", "../a", "/a/./b", "a\nb"] {
        let error = Hidden::with([pattern]).expect_err(pattern);
        assert!(error.starts_with(&format!("{pattern:?}: ")), "{error}");
    }
}

#[test]
fn stars() {
    for (pattern, name, expected) in [
        ("*", "", true),
        ("a*c", "abbc", true),
        ("a*c", "abb", false),
        ("*a*a*", "banana", true),
        ("*ab*ab", "abab", true),
        ("*ab*ab", "aab", false),
        ("**", "x", true),
        ("a", "ab", false),
    ] {
        assert_eq!(
            fits(pattern.as_bytes(), name.as_bytes()),
            expected,
            "{pattern} {name}"
        );
    }
}

#[test]
fn scripts_are_run_unless_they_are_hidden() {
    let hidden = Hidden::with(["xmlrpc.php", "/uploads/*.php"]).expect("patterns");
    for (path, verdict) in [
        ("/index.php", Verdict::Served),
        ("/a.php/b.php", Verdict::Served),
        ("/a.inc.php", Verdict::Served),
        ("/.x.php", Verdict::Hidden),
        ("/.git/x.php", Verdict::Hidden),
        ("/site.bak/x.php", Verdict::Hidden),
        ("/a/xmlrpc.php", Verdict::Hidden),
        ("/uploads/x.php", Verdict::Hidden),
        ("/a/eval-stdin.php", Verdict::Hidden),
        ("/vendor/a.php", Verdict::OfProject),
    ] {
        assert_eq!(hidden.judge(path.as_bytes(), true), verdict, "{path}");
    }
}
