//! What lies in a site's folder and is not for clients.

use std::fs;

use surus_tests::http::{Request, Response};
use surus_tests::surus::{Mode, Surus};
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

/// What an installation leaves in its folder.
const HIDDEN: [&str; 40] = [
    "surus.toml",
    "site.toml",
    "composer.json",
    "composer.lock",
    "package.json",
    "auth.json",
    "old.php.bak",
    "config.php~",
    "config.php.1",
    "config.phps",
    "config.php.old",
    "config.php.bak2",
    "config.php.copy",
    "config.php.tmp",
    "config.php.swp",
    "config.php.dpkg-dist",
    "config.php.rpmsave",
    "config.php5",
    "config.phtml.txt",
    "config.phar",
    "dump.tar.gz",
    "backup.zip",
    "error.log.2026-11-23",
    "error.log.1.gz",
    "error_log-20261123",
    "example.com.key",
    "config.inc",
    "settings.ini",
    "site.bak/page.html",
    "dump.sql",
    "dump.sql.gz",
    "data.sqlite",
    "data.sqlite-wal",
    "users.db",
    "logs/error.log",
    "logs/error.log.1",
    "key.pem",
    "vendor/acme/style.css",
    "vendor/acme/index.html",
    "node_modules/acme/style.css",
];

/// What a path would run.
const SCRIPTS: [&str; 4] = [
    "vendor/phpunit/phpunit/src/Util/PHP/eval-stdin.php",
    "plugin/vendor/phpunit/eval-stdin.php",
    "vendor/run.php",
    "site.bak/run.php",
];

const SERVED: [&str; 6] = [
    "plugin/vendor/a.js",
    "style.css",
    "release-1.2.tar.gz",
    "page.php.html",
    "build/manifest.json",
    ".well-known/stellar.toml",
];

/// A project of which not only the public folder is served.
fn project() -> TempDir {
    let folder = TempDir::new("hidden");
    let put = |name: &str, text: &str| {
        let file = folder.path().join(name);
        fs::create_dir_all(file.parent().expect("a folder")).expect("make a folder");
        fs::write(file, text).expect("write a file");
    };
    for name in HIDDEN {
        put(name, "SECRET");
    }
    for script in SCRIPTS {
        put(script, "<?php echo 'SECRET';");
    }
    for served in SERVED {
        put(served, "served");
    }
    folder
}

/// Configured by a file in the folder that is served, which has a name of its own.
fn serve(mode: Mode, folder: &TempDir, hidden: &str) -> Surus {
    let front = "<?php echo 'front ', $_SERVER['REQUEST_URI'];";
    let app = "<?php return fn (Surus\\Http\\Request $request) => 'front ' . $request->path();";
    let (text, public) = match mode {
        Mode::Coroutine | Mode::Snapshot => (app, "public = \".\"\n"),
        Mode::Classic | Mode::Process => (front, ""),
    };
    let script = mode.script(folder.path());
    fs::write(&script, text).expect("a script");
    let config = folder.file(
        "site.toml",
        &format!("[app.app]\n{public}{hidden}\n# SECRET\n"),
    );
    let options = Surus::serve(&script).mode(mode);
    options.argument("--config").argument(config).start()
}

fn get(server: &Surus, target: &str) -> Response {
    Request::get(target).send(server.address())
}

/// The front controller, or the application, is asked as if there was no such file.
#[test]
fn what_is_not_for_clients_is_not_there() {
    for mode in Mode::ALL {
        let folder = project();
        let server = serve(mode, &folder, "");
        for name in HIDDEN {
            let text = get(&server, &format!("/{name}")).expect(200).text();
            assert_eq!(text, format!("front /{name}"), "{mode:?}");
        }
        for script in SCRIPTS {
            let response = get(&server, &format!("/{script}"));
            let expected = if mode == Mode::Coroutine { 200 } else { 404 };
            let text = response.expect(expected).text();
            assert!(!text.contains("SECRET"), "{mode:?} {script}: {text}");
        }
        for name in SERVED {
            let text = get(&server, &format!("/{name}")).expect(200).text();
            assert_eq!(text, "served", "{mode:?} {name}");
        }
    }
}

/// However it is asked for.
#[test]
fn there_is_no_way_around() {
    for mode in Mode::ALL {
        let folder = project();
        let server = serve(mode, &folder, "");
        for name in HIDDEN.iter().chain(&SCRIPTS) {
            let escaped: String = name.bytes().map(|byte| format!("%{byte:02x}")).collect();
            let dots = name.replace('.', "%2E");
            let slashes = name.replace('/', "%2f");
            let (folders, last) = name.rsplit_once('/').unwrap_or(("", name));
            for target in [
                format!("//{name}"),
                format!("/./{name}"),
                format!("/%2e/{name}"),
                format!("/{}", name.to_uppercase()),
                format!("/{escaped}"),
                format!("/{dots}"),
                format!("/{slashes}"),
                format!("/{name}?a=b"),
                format!("/{name}/"),
                format!("/{name}//"),
                format!("/{name}/."),
                format!("/{name}."),
                format!("/{name}%20"),
                format!("/{name}%00"),
                format!("/{name}%00.css"),
                format!("/{name};.css"),
                format!("/{name};"),
                format!("/{name}/x.css"),
                format!("/{name}/x.php"),
                format!("/plugin/../{name}"),
                format!("/plugin/%2e%2e/{name}"),
                format!("/plugin\\..\\{name}"),
                format!("/{folders}/"),
                format!("/{folders}/./{last}"),
                format!("http://a/{name}"),
            ] {
                for headers in [
                    &[][..],
                    &[("Range", "bytes=0-3")],
                    &[("Range", "bytes=-3,0-1")],
                    &[("Accept-Encoding", "gzip, br, zstd")],
                    &[("If-Modified-Since", "Sun, 06 Nov 2044 08:49:37 GMT")],
                    &[("If-Match", "*")],
                ] {
                    for method in ["GET", "HEAD"] {
                        let request = Request::new(method, &target);
                        let request = headers.iter().fold(request, |request, (name, value)| {
                            request.header(name, value)
                        });
                        let response = request.send(server.address());
                        let what = format!("{mode:?} {method} {target} {headers:?}");
                        assert!(!response.text().contains("SEC"), "{what}");
                        assert!(![206, 304, 412, 416].contains(&response.status), "{what}");
                        let tells = ["etag", "last-modified", "accept-ranges"];
                        let told = tells.map(|name| response.header(name));
                        assert_eq!(told, [None; 3], "{what}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_setting_shows_and_hides() {
    let hidden = "hidden = [\"!*.sql\", \"!/vendor/acme/\", \"/plugin/\", \"style.css\"]";
    for mode in Mode::ALL {
        let folder = project();
        let server = serve(mode, &folder, hidden);
        for name in ["dump.sql", "dump.sql.gz"] {
            assert_eq!(
                get(&server, &format!("/{name}")).text(),
                "SECRET",
                "{mode:?} {name}"
            );
        }
        let page = get(&server, "/vendor/acme/index.html").expect(200);
        assert_eq!(page.text(), "SECRET", "{mode:?}");
        for name in [
            "style.css",
            "plugin/vendor/a.js",
            "vendor/acme/style.css",
            "data.sqlite",
        ] {
            let text = get(&server, &format!("/{name}")).text();
            assert_eq!(text, format!("front /{name}"), "{mode:?}");
        }
    }
}

/// Of a folder of assets that is no project, `vendor` is one of them.
#[test]
fn vendor_is_hidden_in_a_project_only() {
    for mode in Mode::ALL {
        let folder = project();
        let server = serve(mode, &folder, "");
        let target = "/vendor/acme/style.css";
        assert_eq!(
            get(&server, target).text(),
            format!("front {target}"),
            "{mode:?}"
        );
        fs::remove_file(folder.path().join("composer.json")).expect("remove a file");
        wait_for("it stays hidden", || {
            get(&server, target).text() == "SECRET"
        });
    }
}
