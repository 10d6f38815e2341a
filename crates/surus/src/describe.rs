//! `surus routes` and `surus openapi`: describe an application without serving it.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use surus_zend::{AppLimits, BootError, Coroutine, Engine, EngineConfig, RouteInfo};

use crate::config::{Config, Entry};
use crate::{environment, event_loop, failed, misconfigured};

pub(crate) fn routes(config: &Config) -> ExitCode {
    boot(config, async |engine, script, limits| {
        Ok(table(&Coroutine::routes(engine, script, limits).await?))
    })
}

pub(crate) fn openapi(config: &Config) -> ExitCode {
    boot(config, async |engine, script, limits| {
        Ok(Coroutine::openapi(engine, script, limits).await? + "\n")
    })
}

/// Boots the application in this process, and prints the result of `ask`.
fn boot(
    config: &Config,
    ask: impl AsyncFnOnce(&Engine, &Path, &AppLimits) -> Result<String, BootError>,
) -> ExitCode {
    let Entry::Coroutine { script } = &config.app.entry else {
        return misconfigured(&"only an application in coroutine mode has routes");
    };
    let engine = match Engine::start(&EngineConfig {
        ini: config.ini.clone(),
        dev: config.dev,
        in_turn: false,
        server_name: config.app.server_name.clone(),
        store: 0,
        environment: Some(environment::of(config)),
    }) {
        Ok(engine) => engine,
        Err(error) => return failed(&error),
    };
    engine.enter_worker(config.app.preempt_after);
    let limits = crate::backend::limits(&config.app);
    let text = match event_loop::run(ask(&engine, script, &limits)) {
        Ok(Ok(text)) => text,
        Ok(Err(error)) => return failed(&error),
        Err(error) => return failed(&error),
    };
    match write!(std::io::stdout(), "{text}") {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

/// Aligned columns; conditions come after the pattern.
fn table(routes: &[RouteInfo]) -> String {
    let rows: Vec<[String; 3]> = routes
        .iter()
        .map(|route| {
            let mut pattern = route.pattern.clone();
            if !route.host.is_empty() {
                pattern.push_str(&format!("  host {}", route.host));
            }
            for header in &route.headers {
                pattern.push_str(&format!("  {header}"));
            }
            [route.methods.clone(), pattern, route.about.clone()]
        })
        .collect();
    let width = |column: usize| {
        let sizes = rows.iter().map(|row| row[column].chars().count());
        sizes.max().unwrap_or(0)
    };
    let (first, second) = (width(0), width(1));
    rows.iter()
        .map(|[methods, pattern, about]| {
            format!("{methods:<first$}  {pattern:<second$}  {about}\n")
        })
        .collect()
}
