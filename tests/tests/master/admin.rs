//! What an operator sees: numbers, the live view in the terminal, and the page in a browser.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::time::{Duration, Instant};

use surus_tests::http::{Connection, Request};
use surus_tests::surus::{binary, Mode, Surus, CONTROL};
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

const APP: &str = "<?php return function ($request) {
    match (preg_replace('~^/long/.*~', '/long', $request->path())) {
        '/long' => usleep(60_000_000),
        '/missing' => http_response_code(404),
        '/broken' => throw new Exception('no'),
        default => null,
    };
    return 'hello';
};";

fn server(folder: &TempDir) -> (Surus, SocketAddr) {
    folder.file("app.php", APP);
    let admin = SocketAddr::from((Ipv4Addr::LOCALHOST, surus_tests::ports::free()));
    let server = Surus::serve(&folder.path().join("app.php"))
        .workers(2)
        .config(&format!("[server]\nadmin = '{admin}'\n"))
        .start();
    (server, admin)
}

fn sum(status: &serde_json::Value, pointer: &str) -> u64 {
    let workers = status["workers"].as_array().unwrap();
    workers
        .iter()
        .map(|worker| worker.pointer(pointer).unwrap().as_u64().unwrap())
        .sum()
}

#[test]
fn requests_are_counted_by_their_answers() {
    let folder = TempDir::new("counted");
    let (server, admin) = server(&folder);
    for (path, count, status) in [("/", 20, 200), ("/missing", 3, 404), ("/broken", 2, 500)] {
        for _ in 0..count {
            Request::get(path).send(server.address()).expect(status);
        }
    }
    // The last one is counted when its client may have its answer already.
    wait_for("not all are counted", || {
        sum(&server.status(), "/requests_total") == 25
    });
    let status = server.status();
    assert_eq!(sum(&status, "/responses/2xx"), 20);
    assert_eq!(sum(&status, "/responses/4xx"), 3);
    assert_eq!(sum(&status, "/responses/5xx"), 2);
    let web = Request::get("/status").send(admin).expect(200).json();
    assert_eq!(sum(&web, "/requests_total"), 25);
    assert_eq!(web["pid"], status["pid"]);
    let text = Request::get("/metrics").send(admin).expect(200).text();
    let value = |name: &str| -> f64 {
        let lines = text.lines().filter(|line| line.starts_with(name));
        lines
            .map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap())
            .sum()
    };
    assert_eq!(value("surus_responses_total"), 25.0, "{text}");
    assert_eq!(value("surus_request_duration_seconds_count"), 25.0);
    assert!(value("surus_resident_bytes") > 1e6);
    Request::get("/nothing").send(admin).expect(404);
    Request::post("/status").send(admin).expect(404);
}

#[test]
fn requests_in_flight_are_shown_with_what_they_wait_for() {
    for mode in Mode::ISOLATES {
        let folder = TempDir::new("waiting");
        folder.file("app.php", APP);
        folder.file("index.php", "<?php usleep(60_000_000);");
        let server = Surus::serve(&mode.script(folder.path())).mode(mode).start();
        let target = if mode == Mode::Classic {
            "/?long"
        } else {
            "/long"
        };
        let mut waiting = Connection::open(server.address()).unwrap();
        let request = Request::get(target).bytes(server.address());
        waiting.write(&request).unwrap();
        let mut worker = serde_json::Value::Null;
        wait_for("it does not wait", || {
            worker = server.status()["workers"][0].take();
            worker["parked"] == 1
        });
        assert_eq!(worker["in_flight"], 1, "{worker}");
        let request = &worker["requests_in_flight"][0];
        assert_eq!(request["uri"], target);
        let age = request["age_s"].as_f64().unwrap();
        wait_for("it does not grow old", || {
            let status = server.status();
            let request = &status["workers"][0]["requests_in_flight"][0];
            request["age_s"].as_f64().unwrap() > age + 0.3
        });
        let place = request["waits_for"].as_str().unwrap();
        assert!(place.starts_with("usleep() at "), "{place}");
        let script = mode.script(folder.path());
        assert!(place.contains(&script.display().to_string()), "{place}");
        // Not all have answered each time, where the machine is slow.
        wait_for("it is not shown", || {
            let (code, text) = server.command(&["top", "-n", "2", "--every", "0.2"]);
            assert_eq!(code, Some(0), "{text}");
            text.contains("requests/s") && text.contains("usleep()")
        });
    }
}

#[test]
fn the_dashboard_works_in_a_browser() {
    let folder = TempDir::new("dashboard");
    let (server, admin) = server(&folder);
    for _ in 0..7 {
        Request::get("/").send(server.address()).expect(200);
    }
    let markup = Request::get("/long/%3Cscript%3Edocument.title=1%3C/script%3E?secret");
    let mut waiting = Connection::open(server.address()).unwrap();
    waiting.write(&markup.bytes(server.address())).unwrap();
    wait_for("it does not wait for a second", || {
        let status = server.status();
        let workers = status["workers"].as_array().unwrap();
        let mut ages = workers
            .iter()
            .filter_map(|worker| worker["requests_in_flight"][0]["age_s"].as_f64());
        ages.any(|age| age > 1.0)
    });
    let output = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
        ])
        .arg(format!(
            "--user-data-dir={}",
            folder.path().join("profile").display()
        ))
        .args(["--virtual-time-budget=2500", "--dump-dom"])
        .arg(format!("http://{admin}/"))
        .output()
        .expect("chromium");
    let page = String::from_utf8_lossy(&output.stdout);
    for pid in server.workers() {
        assert!(page.contains(&format!("<td>{pid}</td>")), "{page}");
    }
    assert!(page.contains("<b>7</b>requests"), "{page}");
    assert!(page.contains("</b>p99"), "{page}");
    // The request in flight, in its row: how old it is, what it is, what it waits for, and where.
    let rows = page.split("<tbody id=\"requests\">").nth(1);
    let row = rows
        .and_then(|rows| rows.split("</tr>").next())
        .expect("a row");
    let cells: Vec<&str> = row
        .split("<td")
        .skip(1)
        .map(|cell| cell.split_once('>').map_or(cell, |(_, text)| text))
        .map(|text| text.trim_end_matches("</td>"))
        .collect();
    let [age, request, waits_for, worker] = cells[..] else {
        panic!("{row}");
    };
    let seconds: f64 = age.trim_end_matches([' ', 's']).parse().expect(age);
    assert!((1.0..60.0).contains(&seconds), "{age}");
    assert!(request.starts_with("GET /long/"), "{request}");
    assert!(request.ends_with("?…"), "{request}");
    assert!(waits_for.starts_with("usleep() at "), "{waits_for}");
    assert!(["1", "2"].contains(&worker), "{worker}");
    assert!(page.contains("<title>Surus</title>"), "{page}");
}

/// In a terminal each view takes the place of the one before.
#[test]
fn the_live_view_is_drawn_in_a_terminal() {
    let folder = TempDir::new("terminal");
    let (server, _) = server(&folder);
    let mut waiting = Connection::open(server.address()).unwrap();
    let request = Request::get("/long").bytes(server.address());
    waiting.write(&request).unwrap();
    let shown = |text: &str| text.contains("GET /long") && text.contains("usleep() at ");
    let top = format!("{} top -n 3 --every 0.3", binary().display());
    let mut views = String::new();
    wait_for("it is not shown", || {
        let output = Command::new("script")
            .args(["-qec", &top, "/dev/null"])
            .env("RUNTIME_DIRECTORY", server.folder().join(CONTROL))
            .output()
            .expect("script");
        views = String::from_utf8_lossy(&output.stdout).into_owned();
        shown(&views)
    });
    // Cursor home, and the rest of the screen empty.
    assert!(views.matches("\x1b[H\x1b[J").count() >= 2, "{views:?}");
}

/// A client that says nothing, or half of it, keeps nobody from his answer.
#[test]
fn slow_clients_do_not_hold_up_the_admin_listener() {
    let folder = TempDir::new("slow-admin");
    let (server, admin) = server(&folder);
    let mut slow = Vec::new();
    for _ in 0..10 {
        let mut connection = Connection::open(admin).unwrap();
        connection.write(b"GET /sta").unwrap();
        slow.push(connection);
    }
    let begun = Instant::now();
    Request::get("/status").send(admin).expect(200);
    // They are sent away after five seconds.
    assert!(begun.elapsed() < Duration::from_secs(4));
    assert_eq!(server.workers().len(), 2);
}
