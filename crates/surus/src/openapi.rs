//! `surus openapi`: the OpenAPI document of an application, without a server.

use std::io::Write;
use std::process::ExitCode;

use surus_zend::{Coroutine, Engine, EngineConfig};
use tokio::task::LocalSet;

use crate::config::{Config, Entry};
use crate::{failed, misconfigured};

pub(crate) fn run(config: &Config) -> ExitCode {
    let Entry::Coroutine { script } = &config.app.entry else {
        return misconfigured(&"only an application in coroutine mode has routes to describe");
    };
    let engine = match Engine::start(&EngineConfig {
        ini: config.ini.clone(),
        dev: config.dev,
    }) {
        Ok(engine) => engine,
        Err(error) => return failed(&error),
    };
    engine.enter_worker(config.app.preempt_after);
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error),
    };
    let limits = crate::backend::limits(&config.app);
    let document = LocalSet::new().block_on(&runtime, Coroutine::openapi(&engine, script, &limits));
    runtime.shutdown_background();
    match document {
        Ok(document) => match writeln!(std::io::stdout(), "{document}") {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failed(&error),
        },
        Err(error) => failed(&error),
    }
}
