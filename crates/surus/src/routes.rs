//! `surus routes`: the routes of an application, without a server.

use std::io::Write;
use std::process::ExitCode;

use surus_zend::{Coroutine, Engine, EngineConfig, RouteInfo};
use tokio::task::LocalSet;

use crate::config::{Config, Entry};
use crate::{failed, misconfigured};

pub(crate) fn run(config: &Config) -> ExitCode {
    let Entry::Coroutine { script } = &config.app.entry else {
        return misconfigured(&"only an application in coroutine mode has routes");
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
    let routes = LocalSet::new().block_on(&runtime, Coroutine::routes(&engine, script, &limits));
    runtime.shutdown_background();
    let printed = routes
        .map_err(|error| error.to_string())
        .and_then(|routes| {
            write!(std::io::stdout(), "{}", table(&routes)).map_err(|error| error.to_string())
        });
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

/// Aligned columns; conditions stand behind the pattern.
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
