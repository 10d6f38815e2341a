//! What docs/security.md says: isolates part mistakes, not enemies; users of the system part these.
#![forbid(unsafe_code)]

use std::fs;
use std::os::unix::fs::{chown, PermissionsExt};

use nix::unistd::{Uid, User};
use surus_tests::http::{Connection, Request};
use surus_tests::surus::{Mode, Surus};
use surus_tests::temp::TempDir;

/// Looks for a neighbour's secret in the memory of a process, by what it looks like: "mine-" and 16 digits.
const LOOK: &str = r#"
function look(string $process): string
{
    $maps = @file("/proc/{$process}/maps");
    $memory = @fopen("/proc/{$process}/mem", 'r');
    if ($maps === false || $memory === false) {
        return 'not permitted';
    }
    stream_set_read_buffer($memory, 0);
    foreach ($maps as $line) {
        if (!preg_match('~^([0-9a-f]+)-([0-9a-f]+) rw-p \S+ 00:00 0 *(\S*)$~', trim($line), $found)) {
            continue;
        }
        [$from, $to] = [hexdec($found[1]), hexdec($found[2])];
        for ($at = $from; $at < $to; $at += 65536) {
            if (fseek($memory, $at) !== 0) {
                break;
            }
            $bytes = @fread($memory, (int) min(65600, $to - $at));
            if (is_string($bytes) && preg_match('~mine' . '-([0-9]{16})~', $bytes, $secret)) {
                return $secret[1];
            }
        }
    }
    return 'nothing';
}

function keep(string $secret): string
{
    $kept = 'mine' . '-' . $secret;
    usleep(60_000_000);
    return $kept;
}

function answer(array $query): string
{
    return match ($query['do'] ?? '') {
        'keep' => keep($query['secret']),
        'look' => look($query['at'] ?? 'self'),
        'read' => (string) @file_get_contents($query['file']),
        'pid' => (string) getmypid(),
        default => '',
    };
}
"#;

/// `who`: of the files, which nobody else may read.
fn site(name: &str, who: Option<&str>) -> TempDir {
    let folder = TempDir::new(name);
    let files = [
        folder.file("look.php", &format!("<?php {LOOK}")),
        folder.file(
            "index.php",
            "<?php require __DIR__ . '/look.php'; echo answer($_GET);",
        ),
        folder.file(
            "app.php",
            "<?php require __DIR__ . '/look.php'; return fn () => answer($_GET);",
        ),
        folder.file("secret.txt", "a secret"),
    ];
    if let Some(name) = who {
        let user = User::from_name(name).expect("the users").expect("the user");
        let (user, group) = (Some(user.uid.as_raw()), Some(user.gid.as_raw()));
        for file in files {
            chown(&file, user, group).expect("give it away");
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("close it");
        }
    }
    folder
}

/// A request of this server that has the secret, and waits with it.
fn keeps(server: &Surus, secret: &str) -> Connection {
    let mut waiting = Connection::open(server.address()).expect("a connection");
    let request = Request::get(&format!("/?do=keep&secret={secret}"));
    waiting
        .write(&request.bytes(server.address()))
        .expect("a request");
    server.wait_for_in_flight(1);
    waiting
}

fn ask(server: &Surus, query: &str) -> String {
    let request = Request::get(&format!("/?{query}"));
    request.send(server.address()).expect(200).text()
}

/// If this fails isolates have become a boundary, and the document is to be written anew.
#[test]
fn isolates_do_not_hide_memory_from_each_other() {
    for mode in Mode::ISOLATES {
        let folder = site("same-process", None);
        let server = Surus::serve(&mode.script(folder.path())).mode(mode).start();
        let secret = "4711081500042195";
        let _waiting = keeps(&server, secret);
        // What a request was asked is in memory more than once: any of it will do.
        assert_eq!(ask(&server, "do=look"), secret, "{mode:?}");
    }
}

/// As the document shows it: a server for each tenant, with a user of its own.
#[test]
fn servers_of_different_users_are_apart() {
    if !Uid::effective().is_root() {
        // Others cannot start workers as somebody else.
        return;
    }
    for mode in Mode::ALL {
        let start = |user: &str| {
            let folder = site(user, Some(user));
            let processes = match mode {
                Mode::Process => "[app.app]\nprocesses = 2\n",
                _ => "",
            };
            let server = Surus::serve(&mode.script(folder.path()))
                .mode(mode)
                .config(&format!("[server]\nuser = '{user}'\n{processes}"))
                .start();
            (folder, server)
        };
        let (folder, one) = start("www-data");
        let (_other_folder, other) = start("nobody");
        let secret = "4711081500042195";
        let _waiting = keeps(&one, secret);
        let file = folder.path().join("secret.txt");
        let read = |file: &str| format!("do=read&file={file}");
        let name = file.to_str().expect("a path");
        assert_eq!(ask(&one, &read(name)), "a secret", "{mode:?}");
        assert_eq!(ask(&other, &read(name)), "", "{mode:?}");
        let status = one.status();
        let pids = status["workers"].as_array().expect("workers");
        let pids = pids.iter().chain([&status]).map(|one| &one["pid"]);
        for pid in pids {
            let look = format!("do=look&at={pid}");
            assert_eq!(ask(&other, &look), "not permitted", "{mode:?} {pid}");
            assert_eq!(ask(&other, &read(&format!("/proc/{pid}/environ"))), "");
        }
        // The same user's other processes are no more hidden than neighbours in one process are.
        let own = ask(&one, "do=pid");
        assert_ne!(ask(&one, &format!("do=look&at={own}")), "not permitted");
    }
}
