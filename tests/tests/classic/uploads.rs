//! Uploaded files.

use std::path::Path;

use serde_json::Value;
use surus_tests::http::{Part, Request};
use surus_tests::surus::{Mode, Surus};
use surus_tests::temp::TempDir;

use crate::{same, surus};

#[test]
fn checked_and_moved() {
    let big = b"0123456789abcdef".repeat(64 * 1024);
    let parts = [
        Part::field("title", "Three files"),
        Part::file("one", "one.txt", "text/plain", b"the first"),
        Part::file("big", "big.bin", "application/octet-stream", &big),
        Part::file("list[a]", "a.txt", "text/plain", b"a"),
        Part::file("list[b]", "b.txt", "text/plain", b""),
    ];
    let answer = same(Request::post("/upload.php").multipart(&parts))
        .expect(200)
        .json();
    let one = &answer["files"]["one"];
    assert_eq!(
        (&one["uploaded"], &one["moved"], &one["again"]),
        (&true.into(), &true.into(), &false.into())
    );
    assert_eq!(answer["files"]["big"]["size"], 1_048_576);
    assert_eq!(answer["foreign"], false);
}

/// 2 MiB is PHP's own limit for a file.
#[test]
fn too_large() {
    let large = vec![b'x'; 2 * 1024 * 1024 + 1];
    let parts = [Part::file(
        "large",
        "l.bin",
        "application/octet-stream",
        &large,
    )];
    let answer = same(Request::post("/upload.php").multipart(&parts))
        .expect(200)
        .json();
    assert_eq!(answer["files"]["large"]["error"], 1);
}

/// Their names are random: PHP's cache of paths is the process's, and would be full of them one day.
#[test]
fn their_names_do_not_fill_the_cache_of_paths() {
    const LOOK: &str = "$file = $_FILES['kept']['tmp_name'];
        file_get_contents($file);
        if (isset($_GET['moved'])) { move_uploaded_file($file, __DIR__ . '/moved'); }
        echo count(realpath_cache_get());";
    for mode in Mode::ALL {
        let folder = TempDir::new("paths");
        folder.file("index.php", &format!("<?php {LOOK}"));
        let app =
            format!("<?php return function () {{ ob_start(); {LOOK} return ob_get_clean(); }};");
        folder.file("app.php", &app);
        let server = Surus::serve(&mode.script(folder.path()))
            .mode(mode)
            .config(if mode == Mode::Process {
                "[app.app]\nprocesses = 1\n"
            } else {
                ""
            })
            .start();
        let upload = |target: &str| -> usize {
            let parts = [Part::file("kept", "k.txt", "text/plain", b"kept")];
            let request = Request::post(target).multipart(&parts);
            let answer = request.send(server.address()).expect(200);
            answer.text().parse().expect("a number")
        };
        // A file is in it for as long as its request lasts.
        let first = upload("/?moved");
        for _ in 0..20 {
            upload("/");
            upload("/?moved");
        }
        assert!(upload("/") <= first + 1, "{mode:?}");
    }
}

#[test]
fn removed_at_the_end() {
    let parts = [Part::file("kept", "k.txt", "text/plain", b"kept")];
    let request = Request::post("/info.php").multipart(&parts);
    request.send(surus().address()).expect(200);
    let left: Vec<_> = std::fs::read_dir(surus().folder())
        .expect("read the folder")
        .filter_map(Result::ok)
        .map(|file| file.path())
        .filter(|path| is_upload(path))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

fn is_upload(path: &Path) -> bool {
    // Other tests of this binary upload at the same time: only what nobody moves counts.
    path.file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with("php"))
        && std::fs::read(path).is_ok_and(|content| content == b"kept")
}

#[test]
fn malformed() {
    for body in [
        "",
        "------x\r\n",
        "------x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nunfinished",
    ] {
        same(Request::post("/upload.php").body("multipart/form-data; boundary=----x", body));
    }
}

/// Content of a file that is more than the server keeps in memory, with all in it that may be taken for its end.
fn large() -> Vec<u8> {
    b"\r\n--\r\n------x\r--x--\n\0\r\r\n---".repeat(10_000)
}

fn head(name: &str, more: &str) -> Vec<u8> {
    let head = format!("--x\r\nContent-Disposition: form-data; name=\"{name}\"{more}\r\n\r\n");
    head.into_bytes()
}

fn file(name: &str, content: &[u8]) -> Vec<u8> {
    [&head(name, "; filename=\"a.bin\""), content, b"\r\n"].concat()
}

fn field(name: &str, value: &str) -> Vec<u8> {
    [&head(name, ""), value.as_bytes(), b"\r\n"].concat()
}

const END: &[u8] = b"--x--\r\n";

fn form(parts: &[&[u8]]) -> Value {
    let request = Request::post("/upload.php");
    same(request.body("multipart/form-data; boundary=x", parts.concat()))
        .expect(200)
        .json()
}

/// Large forms are written down before PHP sees them, and their files are not written again.
#[test]
fn kept_apart() {
    let content = large();
    let first = file("first", &content);
    let last = file("last[a]", &content.repeat(2));
    let (empty, text) = (file("empty", b""), field("text", "a text"));

    let answer = form(&[&text, &first, &empty, &last, &text, END]);
    assert_eq!(answer["files"]["first"]["size"], content.len());
    assert_eq!(answer["files"]["empty"]["size"], 0);
    assert_eq!(answer["post"]["text"], "a text");

    // A limit that the form sets, for what follows.
    let limit = field("MAX_FILE_SIZE", "300000");
    let answer = form(&[
        &last,
        &limit,
        &first,
        &file("second", &content.repeat(2)),
        &text,
        END,
    ]);
    assert_eq!(answer["files"]["first"]["error"], 0);
    assert_eq!(answer["files"]["second"]["error"], 2);

    // PHP's own limits: of a file, and for the number of files.
    let larger = file("larger", &vec![b'x'; 2 * 1024 * 1024 + 1]);
    let answer = form(&[&first, &larger, &last, END]);
    assert_eq!(answer["files"]["larger"]["error"], 1);
    let many: Vec<u8> = (0..24)
        .flat_map(|i| file(&format!("f{i}"), format!("content {i}").as_bytes()))
        .collect();
    let answer = form(&[&many, &first, &text, END]);
    assert_eq!(
        answer["files"].as_object().map(serde_json::Map::len),
        Some(20)
    );
    form(&[&first, &many, &text, END]);

    // The end is missing, or there is more behind it.
    let answer = form(&[&text, &first[..first.len() - 2]]);
    assert_eq!(answer["files"]["first"]["error"], 3);
    form(&[&text, &first]);
    form(&[&text, &first, b"--x"]);
    form(&[&text, &first, END, &first, END]);
}

/// What no browser sends: some readers find other files in it than others, and PHP is right.
#[test]
fn odd_forms() {
    let content = large();
    let first = file("first", &content);
    let with = |more: &str| [&head("odd", more), &content[..], b"\r\n"].concat();
    let part = |text: &str| [text.as_bytes(), &content, b"\r\n"].concat();
    for odd in [
        with("; filename=\"\""),
        with("; filename=\"a\\\"b\""),
        with("; filename=\"dir/a.bin\""),
        with("; filename=\"C:\\dir\\a.bin\""),
        with("; filename='a.bin'"),
        with("; filename=a.bin"),
        with("; FILENAME=\"a.bin\""),
        with(";filename=\"a.bin\""),
        with("; filename*=UTF-8''a.bin"),
        with("; filename=\"a.bin\"; name=\"again\""),
        with("; filename=\"a.bin\"\r\nContent-Type: text/x;\r\n y=z"),
        with("; filename=\"a.bin\"\r\nContent-Type: image/png"),
        with("; filename=\"a.bin\"\nContent-Type: image/png"),
        with("\r\nContent-Disposition: form-data; name=\"b\"; filename=\"b\""),
        file("a[", &content),
        file("a]b[c]", &content),
        file("[]", &content),
        file("", &content),
        part("--x\r\nContent-Disposition: form-data; filename=\"a.bin\"\r\n\r\n"),
        part("--x\r\nContent-Disposition: attachment; name=\"a\"; filename=\"a.bin\"\r\n\r\n"),
        part("--x\r\nContent-Type: text/plain\r\n\r\n"),
        part("--x\r\n\r\n"),
        part("--x\n"),
        part("--xx\r\n"),
        [
            &head("odd", "; filename=\"a.bin\"")[..],
            b"--x\r\n",
            &content,
            b"\r\n",
        ]
        .concat(),
        [&head("odd", "; filename=\"a.bin\"")[..], &content, b"\n"].concat(),
        [
            &head("odd", "; filename=\"a.bin\"")[..],
            &content,
            b"\r\n--xy\r\n",
        ]
        .concat(),
    ] {
        form(&[&odd, &first, END]);
        form(&[&first, &odd, &first, END]);
    }
    let body = [&first[..], END].concat();
    for content_type in [
        "multipart/form-data",
        "multipart/form-data; boundary=y",
        "multipart/form-data; boundary=\"x\"",
        "multipart/form-data; boundary=\"x",
        "Multipart/Form-Data; charset=utf-8; boundary=x",
        "multipart/form-data, boundary=x",
        "multipart/mixed; boundary=x",
    ] {
        same(Request::post("/upload.php").body(content_type, &body[..]));
        same(Request::post("/input.php").body(content_type, &body[..]));
        same(Request::new("PUT", "/input.php").body(content_type, &body[..]));
    }
}

/// Bodies that are no forms are PHP's input, whatever their size.
#[test]
fn raw_bodies() {
    for size in [0, 1, 20_000, 262_144, 262_145, 1_000_003] {
        let body = &large().repeat(4)[..size];
        for method in ["POST", "PUT", "PATCH", "DELETE", "GET"] {
            same(Request::new(method, "/input.php").body("application/x-own", body));
        }
        same(Request::post("/input.php").body("application/x-www-form-urlencoded", body));
    }
}
