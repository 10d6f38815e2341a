//! `surus internals`: what an isolate costs, measured.

use std::process::ExitCode;

use surus_zend::{measure, Engine, EngineConfig, Internals};

use crate::cli::InternalsArgs;
use crate::{failed, print};

pub(crate) fn run(arguments: &InternalsArgs) -> ExitCode {
    let engine = match Engine::start(&EngineConfig {
        ini: Vec::new(),
        dev: false,
        server_name: None,
        store: 0,
        in_turn: false,
        environment: None,
    }) {
        Ok(engine) => engine,
        Err(error) => return failed(&error),
    };
    let found = match measure(&engine, usize::from(arguments.isolates)) {
        Ok(found) => found,
        Err(error) => return failed(&error),
    };
    print(&if arguments.json {
        json(&found)
    } else {
        table(&found)
    });
    ExitCode::SUCCESS
}

fn json(found: &Internals) -> String {
    format!(
        "{{\"idle_isolate_bytes\": {}, \"isolate_creation_ns\": {}, \"switch_ns\": {}}}\n",
        found.isolate_bytes,
        found.isolate_new.as_nanos(),
        found.isolate_switch.as_nanos(),
    )
}

fn table(found: &Internals) -> String {
    format!(
        "PHP               {}\nidle isolate      {} KB\nisolate creation  {:?}\nisolate switch    {:?}\n",
        found.php_version,
        found.isolate_bytes / 1000,
        found.isolate_new,
        found.isolate_switch,
    )
}
