//! `surus status` and its like.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use surus_tests::surus::{Surus, CONTROL};
use surus_tests::temp::TempDir;

#[test]
fn the_control_socket_is_its_owners_and_goes_with_the_server() {
    let folder = TempDir::new("socket");
    folder.file("app.php", "<?php return fn () => 'hello';");
    let mut server = Surus::serve(folder.path()).start();
    let id = server.process().id();
    let socket = server.folder().join(CONTROL).join(format!("{id}.sock"));
    let mode = fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let (code, text) = server.command(&["stop"]);
    assert_eq!((code, text.as_str()), (Some(0), "stopping\n"));
    let status = loop {
        if let Some(status) = server.process().ended() {
            break status;
        }
    };
    assert_eq!(status.code(), Some(0));
    assert!(!socket.exists());
    let (code, text) = server.command(&["status"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("no server was found"), "{text}");
}

#[test]
fn a_status_is_for_people_and_for_programs() {
    let folder = TempDir::new("status");
    folder.file("app.php", "<?php return fn () => 'hello';");
    let server = Surus::serve(folder.path()).workers(2).start();
    let status = server.status();
    assert_eq!(status["mode"], "coroutine");
    assert_eq!(status["listen"][0], server.address().to_string());
    let workers = status["workers"].as_array().unwrap();
    assert_eq!(workers.len(), 2);
    for worker in workers {
        assert_eq!(worker["state"], "ready");
        assert_eq!(worker["restarts"], 0);
        assert!(worker["rss_bytes"].as_u64().unwrap() > 1_000_000);
        assert!(worker["php_memory_bytes"].as_u64().unwrap() > 100_000);
    }
    let (code, text) = server.command(&["status"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains(&server.address().to_string()), "{text}");
    assert!(text.contains("ready"), "{text}");
    let (code, text) = server.command(&["status", "/elsewhere"]);
    assert_eq!(code, Some(2), "{text}");
}
