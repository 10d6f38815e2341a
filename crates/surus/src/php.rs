//! `surus php`: a script on the command line.

use std::process::ExitCode;

use surus_zend::{run_script, Engine, EngineConfig};
use tokio::task::LocalSet;

use crate::cli::PhpArgs;
use crate::{failed, misconfigured};

pub(crate) fn run(arguments: &PhpArgs) -> ExitCode {
    let script = match arguments.script.canonicalize() {
        Ok(script) => script,
        Err(error) => return misconfigured(&format!("{}: {error}", arguments.script.display())),
    };
    // Without a value a setting is switched on, as with php -d.
    let ini = arguments
        .define
        .iter()
        .map(|define| define.split_once('=').unwrap_or((define, "1")));
    let ini = ini
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let engine = match Engine::start(&EngineConfig { ini, dev: true }) {
        Ok(engine) => engine,
        Err(error) => return failed(&error),
    };
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error),
    };
    let code = LocalSet::new().block_on(&runtime, async {
        engine.enter_worker(std::time::Duration::from_millis(10));
        run_script(&engine, &script, &arguments.args).await
    });
    // The kernel keeps the low eight bits, and so does this.
    ExitCode::from(code as u8)
}
