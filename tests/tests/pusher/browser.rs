//! The clients from npm, unmodified, in a browser: one visitor with laravel-echo, another one with pusher-js alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::{json, Value};
use surus_tests::fixture;
use surus_tests::process::Process;
use surus_tests::surus::{Mode, Surus};
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

use super::{with_apps, CHAT};

/// A file of a package.
fn package(name: &str) -> PathBuf {
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools/npm/node_modules");
    let path = modules.join(name);
    assert!(path.exists(), "no {}: run bin/setup test", path.display());
    path
}

/// What the visitors have reported.
struct Reports(PathBuf);

impl Reports {
    fn all(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.0).unwrap_or_default();
        let lines = text.lines().map(serde_json::from_str);
        lines.collect::<Result<_, _>>().expect("JSON")
    }

    /// What this visitor has reported of this, in order.
    fn of(&self, user: &str, what: &str) -> Vec<Value> {
        let all = self.all().into_iter();
        let own = all.filter(|report| report["user"] == user && report["what"] == what);
        own.map(|report| report["value"].clone()).collect()
    }

    /// How often this was reported.
    fn count(&self, what: &str) -> usize {
        let is_that = |report: &&Value| report["what"] == what;
        self.all().iter().filter(is_that).count()
    }

    /// Waits for so many of them.
    fn wait(&self, user: &str, what: &str, count: usize) -> Vec<Value> {
        let problem = format!("{user} reports no {what}");
        wait_for(&problem, || {
            let errors: Vec<Value> = self
                .all()
                .into_iter()
                .filter(|report| report["what"] == "error")
                .collect();
            assert!(errors.is_empty(), "{errors:?}");
            self.of(user, what).len() >= count
        });
        self.of(user, what)
    }
}

#[test]
fn echo_and_pusher_js_work_unmodified() {
    let site = TempDir::new("visitors");
    for entry in fs::read_dir(fixture("pusher/browser")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name");
        fs::copy(&path, site.path().join(name)).expect("copy a file");
    }
    for (from, to) in [
        ("pusher-js/dist/web/pusher.js", "pusher.js"),
        ("laravel-echo/dist/echo.iife.js", "echo.js"),
    ] {
        fs::copy(package(from), site.path().join(to)).expect("copy a file");
    }
    // Two workers, so that some of what is said goes from one to the other.
    let server = Surus::serve(site.path()).mode(Mode::Classic).workers(2);
    let server = with_apps(server).start();
    let at = server.address();
    let profile = TempDir::new("chromium");
    let mut command = Command::new("chromium");
    command
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
        ])
        .args(["--remote-debugging-port=0", "--no-first-run"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("http://{at}/index.html"));
    let browser = Process::start("chromium", command, Signal::SIGKILL, profile.path());
    let reports = Reports(site.path().join("reports"));
    let sockets = ["ann", "bob"].map(|user| {
        for (what, count) in [
            ("connected", 1),
            ("subscribed", 2),
            ("refused", 1),
            ("here", 1),
        ] {
            reports.wait(user, what, count);
        }
        assert_eq!(reports.of(user, "refused"), [json!(403)]);
        reports.of(user, "connected")[0]
            .as_str()
            .expect("a text")
            .to_owned()
    });

    // Each has seen the other one, there already or coming; who came while the other one was there was greeted.
    for user in ["ann", "bob"] {
        wait_for("they do not see each other", || {
            let here = reports.of(user, "here")[0].clone();
            let mut seen: Vec<Value> = here.as_array().expect("a list").clone();
            seen.extend(reports.of(user, "joining"));
            seen.sort_by_key(Value::to_string);
            assert!(seen.len() <= 2, "{user}: {seen:?}");
            seen == [json!("Ann"), json!("Bob")]
        });
    }
    let greetings = || ["ann", "bob"].map(|user| reports.of(user, "whisper"));
    wait_for("nobody is greeted", || {
        greetings().concat().len() == reports.count("joining")
    });
    // Echo passes on the data only.
    let [to_ann, to_bob] = greetings();
    assert!(
        to_ann.iter().all(|each| *each == json!({"by": "bob"})),
        "{to_ann:?}"
    );
    assert!(
        to_bob
            .iter()
            .all(|each| *each == json!({"by": "ann", "user_id": "ann"})),
        "{to_bob:?}"
    );

    let made = json!({"title": "Grüße", "number": 7});
    CHAT.trigger(at, "news", "made", &made.to_string());
    // As Laravel names the events of an application.
    CHAT.trigger(at, "news", "App\\Events\\Made", &made.to_string());
    assert_eq!(
        reports.wait("bob", "news", 1)[..],
        *std::slice::from_ref(&made)
    );
    assert_eq!(reports.wait("ann", "news", 2), [made.clone(), made]);
    // broadcast()->toOthers()
    let paid = json!({"name": "paid", "channel": "private-orders", "data": "{\"sum\":5}", "socket_id": sockets[0]});
    CHAT.post(at, "/events", &paid).expect(200);
    assert_eq!(reports.wait("bob", "orders", 1), [json!({"sum": 5})]);
    reports.wait("bob", "signed in", 1);
    CHAT.trigger(at, "#server-to-user-bob", "greeting", "\"hello\"");
    assert_eq!(reports.wait("bob", "greeting", 1), [json!("hello")]);
    CHAT.trigger(at, "#server-to-user-bob", "leave", "");
    assert_eq!(reports.wait("ann", "leaving", 1), [json!("Bob")]);
    assert!(reports.of("ann", "orders").is_empty());
    drop(browser);
    let is_empty = || CHAT.get(at, "/channels", &[]) == json!({"channels": {}});
    wait_for("visitors are still there", is_empty);
}
