//! Who waits for another request lets that one come: semaphores, message queues and FIFOs, between requests of one process
//! as between processes.

use std::path::{Path, PathBuf};
use std::thread;

use nix::sys::stat::Mode as Permissions;
use surus_tests::http::{encode, Request};
use surus_tests::parallel::together;
use surus_tests::surus::{Mode, Surus};
use surus_tests::system_v::SystemV;
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

use crate::{ask, serve};

fn server(mode: Mode) -> Surus {
    match mode {
        Mode::Process => serve(mode).config("[app.app]\nprocesses = 8\n").start(),
        Mode::Classic | Mode::Coroutine | Mode::Snapshot => serve(mode).start(),
    }
}

fn case(what: &str, path: &Path) -> String {
    format!("{what}&name={}", encode(path.to_str().expect("UTF-8")))
}

fn fifo(folder: &TempDir, name: &str) -> PathBuf {
    let path = folder.path().join(name);
    nix::unistd::mkfifo(&path, Permissions::from_bits_truncate(0o600)).expect("a FIFO");
    path
}

/// The first one waits for the second, which comes once the first is there.
fn one_after_the_other(server: &Surus, first: &str, second: &str) -> (String, String) {
    let address = server.address();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| ask(address, first));
        server.wait_for_in_flight(1);
        let said = ask(address, second);
        (waiting.join().expect("an answer"), said)
    })
}

#[test]
fn a_semaphore_is_waited_for() {
    let folder = TempDir::new("partners");
    for mode in Mode::ALL {
        let server = server(mode);
        let name = folder.path().join(mode.name());
        let kernels = SystemV::of(&name);
        let semaphore = case("semaphore", &name);
        let (answers, _) = together(6, |_| ask(server.address(), &semaphore));
        assert_eq!(answers, ["alone"; 6], "{}", mode.name());
        let removed = ask(server.address(), &case("remove_semaphore", &name));
        assert_eq!(removed, "true");
        assert!(!kernels.exists());
    }
}

#[test]
fn messages_are_waited_for_and_room_for_them() {
    let folder = TempDir::new("partners");
    for mode in Mode::ALL {
        let server = server(mode);
        let queue = folder.path().join(mode.name());
        let kernels = SystemV::of(&queue);
        let (receive, send) = (case("receive", &queue), case("send", &queue));
        let all = "a6000 b6000 c6000 d6000".to_owned();
        let said = one_after_the_other(&server, &receive, &send);
        assert_eq!(said, (all.clone(), "sent".to_owned()), "{}", mode.name());
        let said = one_after_the_other(&server, &send, &receive);
        assert_eq!(said, ("sent".to_owned(), all), "{}", mode.name());
        assert!(!kernels.exists());
    }
}

#[test]
fn the_other_end_of_a_fifo_is_waited_for() {
    let folder = TempDir::new("partners");
    for mode in Mode::ALL {
        let server = server(mode);
        let fifo = fifo(&folder, mode.name());
        let (read, write) = (case("read_fifo", &fifo), case("write_fifo", &fifo));
        let (text, size) = ("through the FIFO".to_owned(), "16".to_owned());
        for _ in 0..3 {
            let said = one_after_the_other(&server, &read, &write);
            assert_eq!(said, (text.clone(), size.clone()), "{}", mode.name());
            let said = one_after_the_other(&server, &write, &read);
            assert_eq!(said, (size.clone(), text.clone()), "{}", mode.name());
        }
        let said = ask(server.address(), &case("other_opens", &fifo));
        assert_eq!(said, "both4text");
    }
}

#[test]
fn a_full_fifo_is_waited_for() {
    let folder = TempDir::new("partners");
    for mode in Mode::ALL {
        let server = server(mode);
        let fifo = fifo(&folder, &format!("{}-long", mode.name()));
        let (read, write) = (case("read_long", &fifo), case("write_long", &fifo));
        let (wrote, got) = one_after_the_other(&server, &write, &read);
        assert_eq!(wrote, got, "{}", mode.name());
        let (got, wrote) = one_after_the_other(&server, &read, &write);
        assert_eq!(wrote, got, "{}", mode.name());
        assert_eq!(ask(server.address(), "through_program"), "same");
    }
}

#[test]
fn a_partner_that_does_not_come_is_waited_for_until_the_deadline() {
    let folder = TempDir::new("partners");
    for mode in Mode::ISOLATES {
        let config = "[app.app]\nrequest_timeout = \"1s\"\n";
        let server = serve(mode).config(config).start();
        let name = format!("{}-late", mode.name());
        let fifo = fifo(&folder, &name);
        let kernels = SystemV::of(&fifo);
        let cases = [case("read_fifo", &fifo), case("receive", &fifo)];
        let (statuses, _) = together(4, |number| {
            let case = cases.get(number).map_or("pid", String::as_str);
            let asked = Request::get(&format!("/?case={case}")).send(server.address());
            asked.status
        });
        assert_eq!(statuses, [504, 504, 200, 200], "{}", mode.name());
        wait_for("it is left behind", || !kernels.exists());
    }
}
