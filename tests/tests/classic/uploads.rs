//! Uploaded files.

use std::path::Path;

use surus_tests::http::{Part, Request};

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
