//! Static files.

use std::fs;
use std::path::PathBuf;

use crate::support::Server;
use surus_edge::{CachedDisk, Kind, Limits, Resolution, Site};

/// A folder of its own, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("surus-edge-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_file_is_sent_whole_with_its_type_and_date() {
    let folder = Folder::new("whole");
    let content: Vec<u8> = (0..300_000u32).map(|number| number as u8).collect();
    let file = folder.0.join("data.css");
    fs::write(&file, &content).unwrap();
    let server = Server::with_file(Limits::default(), file);
    let mut client = server.connect();
    let answer = client.get("/file");
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.header("content-type"),
        Some("text/css; charset=utf-8")
    );
    assert_eq!(answer.header("content-length"), Some("300000"));
    assert!(answer.body == content);

    let modified = answer.header("last-modified").unwrap().to_owned();
    let head = "host: test\r\nif-modified-since";
    client.send(&format!("GET /file HTTP/1.1\r\n{head}: {modified}\r\n\r\n"));
    let unchanged = client.read(true);
    assert_eq!(
        (unchanged.status, unchanged.header("last-modified")),
        (304, Some(modified.as_str()))
    );
    client.send(&format!(
        "GET /file HTTP/1.1\r\n{head}: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n"
    ));
    assert_eq!(client.read(true).status, 200);
    client.send(&format!("GET /file HTTP/1.1\r\n{head}: yesterday\r\n\r\n"));
    assert_eq!(client.read(true).status, 200);

    client.send("HEAD /file HTTP/1.1\r\nhost: test\r\n\r\n");
    assert_eq!(client.read(false).header("content-length"), Some("300000"));
    client.send("POST /file HTTP/1.1\r\nhost: test\r\ncontent-length: 0\r\n\r\n");
    let refused = client.read(true);
    assert_eq!(
        (refused.status, refused.header("allow")),
        (405, Some("GET, HEAD"))
    );
}

#[test]
fn an_empty_file_is_200() {
    let folder = Folder::new("empty");
    let file = folder.0.join("empty.txt");
    fs::write(&file, "").unwrap();
    let server = Server::with_file(Limits::default(), file);
    let answer = server.connect().get("/file");
    assert_eq!(
        (answer.status, answer.header("content-length")),
        (200, Some("0"))
    );
}

#[test]
fn what_is_no_file_is_404() {
    let folder = Folder::new("none");
    let server = Server::with_file(Limits::default(), folder.0.join("none.txt"));
    assert_eq!(server.connect().get("/file").status, 404);
    let server = Server::with_file(Limits::default(), folder.0.clone());
    assert_eq!(server.connect().get("/file").status, 404);
}

#[test]
fn on_a_real_disk_links_are_followed_for_files_and_not_for_scripts_elsewhere() {
    let folder = Folder::new("links");
    let outside = Folder::new("outside");
    fs::write(outside.0.join("secret.php"), "<?php").unwrap();
    fs::write(outside.0.join("logo.svg"), "<svg/>").unwrap();
    fs::write(folder.0.join("index.php"), "<?php").unwrap();
    std::os::unix::fs::symlink(outside.0.join("secret.php"), folder.0.join("link.php")).unwrap();
    std::os::unix::fs::symlink(outside.0.join("logo.svg"), folder.0.join("logo.svg")).unwrap();
    // The root itself may be a link: a deployment's "current".
    let current = outside.0.join("current");
    std::os::unix::fs::symlink(&folder.0, &current).unwrap();
    let site = Site::new(&current, "index.php").unwrap();
    let disk = CachedDisk::new();
    for _ in 0..2 {
        assert_eq!(site.resolve(&disk, "/link.php"), Resolution::NotFound);
        let Resolution::Script(script) = site.resolve(&disk, "/x") else {
            panic!("no front controller")
        };
        assert_eq!(
            script.filename,
            folder.0.canonicalize().unwrap().join("index.php")
        );
        let Resolution::File { stat, .. } = site.resolve(&disk, "/logo.svg") else {
            panic!("no file")
        };
        assert_eq!((stat.kind, stat.length), (Kind::File, 6));
    }
    // What did not exist is there as soon as it does.
    fs::write(folder.0.join("new.txt"), "new").unwrap();
    assert!(matches!(
        site.resolve(&disk, "/new.txt"),
        Resolution::File { .. }
    ));
}
