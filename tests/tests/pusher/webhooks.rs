//! What the server of an application is told.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use serde_json::{json, Value};
use surus_tests::fixture;
use surus_tests::pusher::{App, Client};
use surus_tests::surus::{Mode, Surus};
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

const HOOK: App = App {
    id: "hook",
    key: "hook-key",
    secret: "hook-secret",
};

/// A route of the application itself, and a port where nobody is.
const CONFIG: &str = r#"
[pusher.hook]
key = "hook-key"
secret = "hook-secret"
webhook = "/hook?a=b"
webhook_events = ["channel_occupied", "channel_vacated", "member_added", "member_removed", "client_event"]

[pusher.lost]
key = "lost-key"
secret = "lost-secret"
prefix = "lost/"
webhook = "http://127.0.0.1:1/"
"#;

struct Hooks(PathBuf);

impl Hooks {
    /// How often each event was told, apart from the ids of sockets.
    fn told(&self) -> BTreeMap<String, usize> {
        let text = fs::read_to_string(&self.0).unwrap_or_default();
        let mut told = BTreeMap::new();
        for line in text.lines() {
            let batch: Value = serde_json::from_str(line).expect("JSON");
            assert!(batch["time_ms"].is_u64(), "{batch}");
            for event in batch["events"].as_array().expect("a list") {
                let mut event = event.clone();
                event
                    .as_object_mut()
                    .expect("an object")
                    .remove("socket_id");
                *told.entry(event.to_string()).or_default() += 1;
            }
        }
        told
    }

    fn wait(&self, event: &Value) {
        let text = event.to_string();
        wait_for(&format!("it is not told: {event}"), || {
            self.told().contains_key(&text)
        });
    }
}

#[test]
fn an_application_is_told_what_happens_once() {
    let folder = TempDir::new("hooks");
    let hooks = Hooks(folder.path().join("hooks"));
    let path = hooks.0.to_str().expect("UTF-8");
    // The first request fails, and is sent again.
    fs::write(format!("{path}.fail"), "").expect("write a file");
    let server = Surus::serve(&fixture("pusher").join("index.php"))
        .mode(Mode::Classic)
        .workers(2)
        .config(CONFIG)
        .env("HOOKS", path)
        .start();
    let at = server.address();
    let mut clients: Vec<Client> = (0..12).map(|_| Client::connect(at, HOOK)).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.subscribe("news", None);
        client.subscribe("presence-room", Some(&format!("u{}", number % 2)));
    }
    clients[0].whisper("presence-room", "client-e", &json!({"x": 1}));
    let member =
        |name: &str, user: &str| json!({"name": name, "channel": "presence-room", "user_id": user});
    let channel = |name: &str, channel: &str| json!({"name": name, "channel": channel});
    let whisper = json!({"name": "client_event", "channel": "presence-room", "event": "client-e", "data": "{\"x\":1}", "user_id": "u0"});
    let mut expected = vec![
        channel("channel_occupied", "news"),
        channel("channel_occupied", "presence-room"),
        member("member_added", "u0"),
        member("member_added", "u1"),
        whisper,
    ];
    expected.iter().for_each(|event| hooks.wait(event));
    // Whichever worker tells: the other one goes on when it is killed.
    kill(Pid::from_raw(server.workers()[0]), Signal::SIGKILL).expect("kill a worker");
    for client in clients {
        client.shut();
    }
    let ends = [
        member("member_removed", "u0"),
        member("member_removed", "u1"),
        channel("channel_vacated", "news"),
        channel("channel_vacated", "presence-room"),
    ];
    ends.iter().for_each(|event| hooks.wait(event));
    expected.extend(ends);
    let all = expected.iter().map(|event| (event.to_string(), 1));
    assert_eq!(hooks.told(), all.collect());
}
