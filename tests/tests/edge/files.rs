//! Static files, and those that PHP has the server send.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use surus_tests::http::{Request, Response};
use surus_tests::surus::{Mode, Surus};
use surus_tests::temp::TempDir;

use super::server;

/// A folder of files, served in either mode.
struct Site {
    server: Surus,
    _folder: TempDir,
}

impl Site {
    fn new(mode: Mode) -> Self {
        let folder = TempDir::new("files");
        folder.folder("files/.git");
        folder.folder("private");
        for (name, text) in [
            ("files/data.bin", "0123456789"),
            ("files/style.css", "body { color: green }"),
            ("files/app.js", "let plain = 1;"),
            ("files/app.js.br", "as br"),
            ("files/app.js.gz", "as gz"),
            ("files/app.js.zst", "as zst"),
            ("files/old.js", "new"),
            ("files/old.js.gz", "stale"),
            ("files/empty.txt", ""),
            ("files/.env", "SECRET"),
            ("files/.git/config", "SECRET"),
            ("files/source.php5", "SECRET"),
            ("private/secret.txt", "SECRET"),
        ] {
            folder.file(name, text);
        }
        let hour_ago = SystemTime::now() - Duration::from_secs(3600);
        let stale = fs::File::options()
            .write(true)
            .open(folder.path().join("files/old.js.gz"))
            .expect("open");
        stale.set_modified(hour_ago).expect("set a time");
        let root = folder.path().join("files");
        let server = match mode {
            Mode::Classic | Mode::Process => Surus::serve(&root).mode(mode).start(),
            Mode::Coroutine | Mode::Snapshot => {
                let config = format!("[app.app]\npublic = \"{}\"\n", root.display());
                server(mode, &config).start()
            }
        };
        Site {
            server,
            _folder: folder,
        }
    }

    fn each(test: impl Fn(&Self)) {
        for mode in Mode::ISOLATES {
            test(&Self::new(mode));
        }
    }

    fn get(&self, target: &str, headers: &[(&str, &str)]) -> Response {
        self.ask("GET", target, headers)
    }

    fn ask(&self, method: &str, target: &str, headers: &[(&str, &str)]) -> Response {
        headers
            .iter()
            .fold(Request::new(method, target), |request, (name, value)| {
                request.header(name, value)
            })
            .send(self.server.address())
    }
}

#[test]
fn a_file_and_what_is_said_of_it() {
    Site::each(|site| {
        let file = site.get("/data.bin", &[]).expect(200);
        assert_eq!(file.text(), "0123456789");
        assert_eq!(file.header("content-length"), Some("10"));
        assert_eq!(file.header("accept-ranges"), Some("bytes"));
        assert_eq!(
            file.header("content-type"),
            Some("application/octet-stream")
        );
        assert!(file
            .header("etag")
            .is_some_and(|etag| etag.starts_with('"')));
        let head = site.ask("HEAD", "/data.bin", &[]).expect(200);
        for name in ["content-length", "etag", "last-modified", "accept-ranges"] {
            assert_eq!(head.header(name), file.header(name), "{name}");
        }
        assert_eq!(site.get("/empty.txt", &[]).expect(200).text(), "");
        assert_eq!(
            site.get("/style.css", &[]).header("content-type"),
            Some("text/css; charset=utf-8")
        );
    });
}

#[test]
fn conditions() {
    Site::each(|site| {
        let file = site.get("/data.bin", &[]);
        let etag = file.header("etag").expect("an etag");
        let date = file.header("last-modified").expect("a date");
        let weak = format!("\"other\", W/{etag}");
        for (header, value, status) in [
            ("If-None-Match", etag, 304),
            ("If-None-Match", weak.as_str(), 304),
            ("If-None-Match", "*", 304),
            ("If-None-Match", "\"other\"", 200),
            ("If-Modified-Since", date, 304),
            ("If-Modified-Since", "Sun, 06 Nov 1994 08:49:37 GMT", 200),
            ("If-Match", etag, 200),
            ("If-Match", "\"other\"", 412),
            ("If-Unmodified-Since", "Sun, 06 Nov 1994 08:49:37 GMT", 412),
        ] {
            for method in ["GET", "HEAD"] {
                let got = site.ask(method, "/data.bin", &[(header, value)]);
                assert_eq!(got.status, status, "{method} {header}: {value}");
                if status == 304 {
                    assert_eq!(got.header("etag"), Some(etag));
                    assert_eq!(got.header("content-type"), None);
                }
            }
        }
    });
}

#[test]
fn one_range() {
    Site::each(|site| {
        for (range, content_range, text) in [
            ("bytes=2-4", "bytes 2-4/10", "234"),
            ("bytes=7-", "bytes 7-9/10", "789"),
            ("bytes=-4", "bytes 6-9/10", "6789"),
            ("bytes=8-100", "bytes 8-9/10", "89"),
        ] {
            let part = site.get("/data.bin", &[("Range", range)]).expect(206);
            assert_eq!(part.header("content-range"), Some(content_range));
            assert_eq!(part.text(), text);
        }
        let none = site.get("/data.bin", &[("Range", "bytes=10-")]).expect(416);
        assert_eq!(none.header("content-range"), Some("bytes */10"));
        for ignored in ["bytes=4-2", "lines=1-2", "bytes=0-9,0-9,0-9"] {
            site.get("/data.bin", &[("Range", ignored)]).expect(200);
        }
        site.ask("HEAD", "/data.bin", &[("Range", "bytes=2-4")])
            .expect(200);
    });
}

#[test]
fn several_ranges() {
    Site::each(|site| {
        let parts = site
            .get("/data.bin", &[("Range", "bytes=0-1,5-5,-2")])
            .expect(206);
        let kind = parts.header("content-type").expect("a type");
        let boundary = kind
            .strip_prefix("multipart/byteranges; boundary=")
            .expect(kind);
        let part = |range: &str, text: &str| {
            format!("\r\n--{boundary}\r\nContent-Type: application/octet-stream\r\nContent-Range: bytes {range}/10\r\n\r\n{text}")
        };
        let expected = [
            part("0-1", "01"),
            part("5-5", "5"),
            part("8-9", "89"),
            format!("\r\n--{boundary}--\r\n"),
        ];
        assert_eq!(parts.text(), expected.concat());
    });
}

#[test]
fn if_range() {
    Site::each(|site| {
        let file = site.get("/data.bin", &[]);
        let etag = file.header("etag").expect("an etag");
        let date = file.header("last-modified").expect("a date");
        let weak = format!("W/{etag}");
        for (value, status) in [
            (etag, 206),
            (date, 206),
            ("\"other\"", 200),
            (weak.as_str(), 200),
            ("Sun, 06 Nov 1994 08:49:37 GMT", 200),
        ] {
            for range in ["bytes=0-1", "bytes=0-1,5-5"] {
                let headers = [("Range", range), ("If-Range", value)];
                let got = site.get("/data.bin", &headers).expect(status);
                assert_eq!(got.text() == "0123456789", status == 200, "{range} {value}");
            }
        }
    });
}

#[test]
fn files_that_are_compressed_already() {
    Site::each(|site| {
        let plain = site.get("/app.js", &[]);
        assert_eq!(plain.text(), "let plain = 1;");
        for (accepted, encoding, text) in [
            ("gzip, br, zstd", "br", "as br"),
            ("gzip, zstd", "zstd", "as zst"),
            ("gzip", "gzip", "as gz"),
            ("br;q=0.1, gzip", "gzip", "as gz"),
        ] {
            let headers = [("Accept-Encoding", accepted)];
            let file = site.get("/app.js", &headers).expect(200);
            assert_eq!(file.header("content-encoding"), Some(encoding));
            assert_eq!(file.header("vary"), Some("accept-encoding"));
            assert_eq!(file.text(), text);
            assert!(file
                .header("content-type")
                .is_some_and(|kind| kind.starts_with("text/javascript")));
            let etag = file.header("etag").expect("an etag");
            assert_ne!(plain.header("etag"), Some(etag));
            let again = [headers[0], ("If-None-Match", etag)];
            site.get("/app.js", &again).expect(304);
        }
        let old = site.get("/old.js", &[("Accept-Encoding", "gzip")]);
        assert_eq!(
            (old.header("content-encoding"), old.text().as_str()),
            (None, "new")
        );
        let part = [("Accept-Encoding", "br"), ("Range", "bytes=0-2")];
        assert_eq!(site.get("/app.js", &part).expect(206).text(), "let");
    });
}

#[test]
fn nothing_that_is_not_public() {
    Site::each(|site| {
        for target in [
            "/.env",
            "/.git/config",
            "/%2eenv",
            "/source.php5",
            "/../private/secret.txt",
            "/%2e%2e/private/secret.txt",
            "/..%2fprivate%2fsecret.txt",
            "/data.bin%00.txt",
            "/%00",
            "/./../private/secret.txt",
            "//../private/secret.txt",
            "/data.bin/",
        ] {
            let response = site.get(target, &[]);
            assert!(!response.text().contains("SECRET"), "{target}");
            assert!(!response.text().contains("0123"), "{target}");
        }
    });
}

#[test]
fn a_file_that_php_has_sent() {
    let folder = TempDir::new("sendfile");
    folder.folder("sent/below");
    folder.file("sent/below/data.txt", "0123456789");
    let outside = folder.file("outside.txt", "SECRET");
    std::os::unix::fs::symlink(&outside, folder.path().join("sent/link")).expect("a link");
    let sent = folder.path().join("sent");
    let config = format!("[app.app]\nsendfile = [\"{}\"]\n", sent.display());
    for mode in Mode::ISOLATES {
        let server = server(mode, &config).start();
        let get = |file: &Path, range: Option<&str>| {
            let request = Request::get(&format!("/sendfile?file={}", file.display()));
            let request = match range {
                Some(range) => request.header("Range", range),
                None => request,
            };
            request.send(server.address())
        };
        for name in [sent.join("below/data.txt"), "below/data.txt".into()] {
            let response = get(&name, None).expect(200);
            assert_eq!(response.text(), "0123456789");
            assert_eq!(response.header("content-type"), Some("application/x-own"));
            assert_eq!(response.header("cache-control"), Some("private"));
            assert_eq!(response.header("x-sendfile"), None);
            assert!(response.header("etag").is_some());
            let part = get(&name, Some("bytes=3-4")).expect(206);
            assert_eq!(part.text(), "34");
            assert_eq!(part.header("content-range"), Some("bytes 3-4/10"));
            assert_eq!(part.header("content-type"), Some("application/x-own"));
            let parts = get(&name, Some("bytes=0-1,-1")).expect(206).text();
            for part in [
                "Content-Type: application/x-own\r\nContent-Range: bytes 0-1/10\r\n\r\n01\r\n",
                "Content-Range: bytes 9-9/10\r\n\r\n9\r\n",
            ] {
                assert!(parts.contains(part), "{parts}");
            }
            let none = get(&name, Some("bytes=10-")).expect(416);
            assert_eq!(none.header("content-range"), Some("bytes */10"));
            let etag = response.header("etag").expect("an etag");
            for (value, status) in [(etag, 206), ("\"other\"", 200)] {
                Request::get(&format!("/sendfile?file={}", name.display()))
                    .header("Range", "bytes=3-4")
                    .header("If-Range", value)
                    .send(server.address())
                    .expect(status);
            }
        }
        for name in [
            outside.as_path(),
            Path::new("../outside.txt"),
            Path::new("link"),
            Path::new("none"),
        ] {
            let response = get(name, None).expect(404);
            assert!(!response.text().contains("SECRET"));
        }
        assert!(server.log().contains("X-Sendfile"));
    }
}
