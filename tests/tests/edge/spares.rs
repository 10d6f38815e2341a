//! Files of bodies are used again. Nobody may notice.

use std::fs;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::thread;

use nix::sys::signal::Signal;
use serde_json::Value;
use surus_tests::fixture;
use surus_tests::http::{Connection, Part, Request};
use surus_tests::surus::{Mode, Surus};
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

use super::uploads::noise;

const SIZE: usize = 3 << 20;

const LIMITS: &str = "[app.app]\nmax_body = \"64M\"\n[php]\nupload_max_filesize = \"64M\"\n";

fn spares() -> Surus {
    Surus::serve(&fixture("spares").join("index.php"))
        .mode(Mode::Classic)
        .config(LIMITS)
        .start()
}

fn ask(server: &Surus, request: Request) -> Value {
    request.send(server.address()).expect(200).json()
}

fn upload(server: &Surus, query: &str, content: &[u8]) -> Value {
    let parts = [Part::file("file", "a.bin", "image/x-noise", content)];
    let request = Request::post(&format!("/index.php?{query}")).multipart(&parts);
    ask(server, request)
}

fn post(server: &Surus, query: &str, content: &[u8]) -> Value {
    let request = Request::post(&format!("/index.php?{query}"));
    ask(server, request.body("image/x-noise", content))
}

/// The sum of what is at `path`, as PHP sees it.
fn sum_of(server: &Surus, path: &str) -> Value {
    ask(
        server,
        Request::get(&format!("/index.php?do=file&beside={path}")),
    )["md5"]
        .take()
}

fn beside(server: &Surus, name: &str) -> String {
    server.folder().join(name).display().to_string()
}

/// Uploads until one is in the file that another one was in.
fn until_used_again(server: &Surus) -> Value {
    let mut seen = Vec::new();
    let mut found = Value::Null;
    wait_for("no file is used again", || {
        found = upload(server, "do=look", &noise(SIZE));
        let inode = &found["inode"];
        seen.contains(inode) || {
            seen.push(inode.clone());
            false
        }
    });
    found
}

#[test]
fn files_are_used_again_and_show_nothing_of_the_past() {
    let server = spares();
    let long = until_used_again(&server);
    assert_eq!((&long["mode"], &long["links"]), (&0o600.into(), &1.into()));
    let mut lengths = vec![SIZE, SIZE + 1, 300_000, 299_999, 2 * SIZE, 262_145];
    lengths.extend([SIZE / 2, 400_000]);
    for (number, length) in lengths.into_iter().enumerate() {
        let mut content = noise(length);
        content[0] = number as u8;
        let form = upload(&server, "do=look", &content);
        assert_eq!(form["size"], length, "{length}");
        assert_eq!((&form["mode"], &form["links"]), (&0o600.into(), &1.into()));
        let body = post(&server, "do=body", &content);
        assert_eq!(body["length"], length);
        assert_eq!(body["md5"], form["md5"], "{length}");
    }
}

/// A script that holds its file open sees what was uploaded to it, whatever is uploaded meanwhile.
#[test]
fn what_php_has_open_is_not_written_again() {
    let server = spares();
    until_used_again(&server);
    let mut content = noise(SIZE);
    content[7] ^= 1;
    let sum = upload(&server, "do=look", &content)["md5"].take();
    let until = beside(&server, "until");
    let kept = thread::scope(|scope| {
        let kept = scope.spawn(|| upload(&server, &format!("do=keep&beside={until}"), &content));
        let open = PathBuf::from(format!("{until}.open"));
        wait_for("the script has not begun", || open.exists());
        for _ in 0..8 {
            upload(&server, "do=look", &noise(SIZE));
            post(&server, "do=body", &noise(SIZE));
        }
        fs::write(&until, "").expect("written");
        kept.join().expect("an answer")
    });
    assert_eq!(kept["md5"], sum);
}

#[test]
fn what_php_has_kept_is_its_own() {
    let server = spares();
    for (task, done) in [("move", "moved"), ("link", "linked")] {
        until_used_again(&server);
        let mut content = noise(SIZE);
        content[9] ^= 1;
        let sum = upload(&server, "do=look", &content)["md5"].take();
        let path = beside(&server, task);
        let answer = upload(&server, &format!("do={task}&beside={path}"), &content);
        assert_eq!(answer[done], true);
        for _ in 0..6 {
            upload(&server, "do=look", &noise(SIZE));
            post(&server, "do=body", &noise(SIZE));
        }
        assert_eq!(sum_of(&server, &path), sum, "{task}");
    }
    upload(&server, "do=open", &noise(SIZE));
    for _ in 0..3 {
        assert_eq!(upload(&server, "do=look", &noise(SIZE))["mode"], 0o600);
    }
}

/// Two seconds after the last body its room on the disk is free.
#[test]
fn spares_do_not_stay() {
    let mut server = spares();
    until_used_again(&server);
    let worker = server.workers()[0];
    let spares = || {
        let open = fs::read_dir(format!("/proc/{worker}/fd")).expect("its descriptors");
        open.flatten()
            .filter(|file| {
                fs::metadata(file.path())
                    .is_ok_and(|found| found.is_file() && found.len() >= 262_144)
            })
            .filter_map(|file| fs::read_link(file.path()).ok())
            .filter(|path| path.starts_with(server.folder()))
            .collect::<Vec<_>>()
    };
    // Where the machine stands still just then, it has gone before it is seen.
    wait_for("there are none", || {
        post(&server, "do=body", &noise(SIZE));
        !spares().is_empty()
    });
    wait_for("they stay", || spares().is_empty());
    let folder = server.folder().to_path_buf();
    server.process().signal(Signal::SIGTERM);
    wait_for("it has not ended", || server.process().ended().is_some());
    assert_eq!(folders_of_spares(&folder), Vec::<PathBuf>::new());
}

fn folders_of_spares(folder: &std::path::Path) -> Vec<PathBuf> {
    let all = fs::read_dir(folder).expect("the folder").flatten();
    all.map(|entry| entry.path())
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("surus-spool-"))
        })
        .collect()
}

/// What a worker leaves behind that is killed is removed by the next one; what is in use is not.
#[test]
fn what_is_left_behind_is_removed() {
    let server = spares();
    until_used_again(&server);
    let [left] = &folders_of_spares(server.folder())[..] else {
        panic!("one folder");
    };
    let used = server.folder().join("surus-spool-used");
    fs::create_dir(&used).expect("made");
    let lock = fs::File::open(&used).expect("opened");
    nix::fcntl::Flock::lock(
        lock.try_clone().expect("another"),
        nix::fcntl::FlockArg::LockExclusive,
    )
    .map_err(|(_, error)| error)
    .map(std::mem::forget)
    .unwrap_or_else(|error| panic!("locked {}: {error}", lock.as_raw_fd()));
    let worker = server.workers()[0];
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(worker), Signal::SIGKILL).expect("killed");
    wait_for("no other worker", || {
        server.workers().first().is_some_and(|now| *now != worker)
    });
    until_used_again(&server);
    assert!(!left.exists(), "{}", left.display());
    assert!(used.exists());
}

/// Others may write to the folder of spares, too.
#[test]
fn what_others_call_so_is_left_alone() {
    let server = spares();
    let there = |name: &str| server.folder().join(name);
    nix::unistd::mkfifo(&there("surus-spool-pipe"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    fs::create_dir(there("others")).expect("made");
    fs::write(there("others/file"), "text").expect("written");
    std::os::unix::fs::symlink(there("others"), there("surus-spool-link")).expect("a link");
    until_used_again(&server);
    for name in ["surus-spool-pipe", "surus-spool-link", "others/file"] {
        assert!(fs::symlink_metadata(there(name)).is_ok(), "{name}");
    }
}

/// What waits for bodies does not take the room of one that has come.
#[test]
fn spares_make_room_on_a_disk_that_is_full() {
    let folder = TempDir::new("full");
    let mount = format!(
        "mount -t tmpfs -o size=12m spool {} && exec \"$0\" \"$@\"",
        folder.path().display()
    );
    let place = format!(
        "[app.app]\nspool_folder = \"{}\"\n",
        folder.path().display()
    );
    let config = LIMITS.replace("[app.app]\n", &place);
    let server = Surus::serve(&fixture("spares").join("index.php"))
        .mode(Mode::Classic)
        .config(&config)
        .under(&["unshare", "--mount", "sh", "-c", &mount])
        .start();
    let content = noise(SIZE);
    let head =
        format!("POST /index.php?do=body HTTP/1.1\r\nHost: a\r\nContent-Length: {SIZE}\r\n\r\n");
    let (all, last) = content.split_at(SIZE - 1);
    let mut clients: Vec<Connection> = (0..3)
        .map(|_| {
            let mut client = Connection::open(server.address()).expect("a connection");
            client.write(head.as_bytes()).expect("written");
            client.write(all).expect("written");
            client
        })
        .collect();
    for client in &mut clients {
        client.write(last).expect("written");
        client.response("POST").expect("an answer").expect(200);
    }
    let long = noise(8 << 20);
    assert_eq!(post(&server, "do=body", &long)["length"], long.len());
}

#[test]
fn a_body_in_a_file_is_read_in_every_way() {
    let server = spares();
    let content = noise(SIZE + 12_345);
    let sum = post(&server, "do=body", &content)["md5"].take();
    for _ in 0..3 {
        let parts = post(&server, "do=parts", &content);
        let hex = |bytes: &[u8]| {
            bytes
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        };
        assert_eq!((&parts["all"], &parts["again"]), (&sum, &sum));
        let line = |bytes: &[u8]| {
            let end = bytes
                .iter()
                .position(|&byte| byte == b'\n')
                .map_or(bytes.len(), |at| at + 1);
            hex(&bytes[..end])
        };
        assert_eq!(parts["start"], line(&content[..5]));
        assert_eq!(parts["middle"], hex(&content[300_000..300_005]));
        assert_eq!(parts["place"], 300_005);
        assert_eq!(parts["end"], line(&content[content.len() - 5..]));
        assert_eq!(parts["behind"], -1);
        let from = post(&server, "do=body", &content[70_000..270_000])["md5"].take();
        assert_eq!(parts["from"], from);
    }
}
