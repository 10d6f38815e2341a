//! `surus doctor`: what the requests of an application would leave to each other in coroutine mode. The examination
//! itself is written in PHP, `Surus\Doctor`.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use surus_zend::command_line::{self, Invocation, Options, Source, SETTINGS};

use crate::cli::{DoctorArgs, ServeArgs};
use crate::config::{Config, Entry};
use crate::{environment, event_loop, failed, misconfigured, print};

const CODE: &str = "exit((new Surus\\Doctor\\Doctor($argv[1], array_slice($argv, 2)))->run());";

const CLASSIC: &str = "This is a classic site: each request has a PHP of its own, and leaves nothing to the next one. \
There is nothing to examine.\n";

pub(crate) fn run(arguments: DoctorArgs) -> ExitCode {
    let serve = ServeArgs {
        path: arguments.path,
        ..ServeArgs::default()
    };
    let config = match Config::resolve(&serve) {
        Ok(config) => config,
        Err(error) => return misconfigured(&error),
    };
    let Entry::Coroutine { script } = &config.app.entry else {
        print(CLASSIC);
        return ExitCode::SUCCESS;
    };
    // No other thread runs yet.
    for variable in environment::of(&config) {
        let variable = variable.to_bytes();
        if let Some(at) = variable.iter().position(|&byte| byte == b'=') {
            let name = std::ffi::OsStr::from_bytes(&variable[..at]);
            std::env::set_var(name, std::ffi::OsStr::from_bytes(&variable[at + 1..]));
        }
    }
    let mut ini = SETTINGS.as_bytes().to_vec();
    for (name, value) in &config.ini {
        command_line::define(&mut ini, format!("{name}={value}").as_bytes());
    }
    let options = Options {
        ini: CString::new(ini).unwrap_or_default(),
        ..Options::default()
    };
    if let Err(error) = command_line::start(options) {
        return failed(&error);
    }
    let words = [
        b"surus doctor".to_vec(),
        script.as_os_str().as_bytes().to_vec(),
    ];
    let requests = arguments.requests.into_iter().map(String::into_bytes);
    let invocation = Invocation {
        source: Source::Code(CString::new(CODE).unwrap_or_default()),
        arguments: words
            .into_iter()
            .chain(requests)
            .map(|word| CString::new(word).unwrap_or_default())
            .collect(),
        lint: false,
    };
    match event_loop::run(command_line::run_alone(invocation)) {
        Ok(Ok(status)) => ExitCode::from(status as u8),
        Ok(Err(error)) => failed(&error),
        Err(error) => failed(&error),
    }
}
