//! `surus php`: a script on the command line, as php-cli runs it.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use surus_zend::command_line::{self, Options, Script, Source, SETTINGS};
use tokio::task::LocalSet;

use crate::cli::PhpArgs;
use crate::{failed, misconfigured};

pub(crate) fn run(arguments: &PhpArgs) -> ExitCode {
    if let Err(error) = std::fs::File::open(&arguments.script) {
        return misconfigured(&format!("{}: {error}", arguments.script.display()));
    }
    let mut ini = SETTINGS.as_bytes().to_vec();
    for define in &arguments.define {
        command_line::define(&mut ini, define.as_bytes());
    }
    // The command line holds no NUL bytes. PHP_BINARY stays empty: what starts it expects php-cli's options.
    let text = |bytes: &[u8]| CString::new(bytes).unwrap_or_default();
    let options = Options {
        ini: text(&ini),
        ..Options::default()
    };
    let file = text(arguments.script.as_os_str().as_bytes());
    let rest = arguments.args.iter().map(|a| text(a.as_bytes()));
    let script = Script {
        arguments: std::iter::once(file.clone()).chain(rest).collect(),
        source: Source::File(file),
        lint: false,
    };
    if let Err(error) = command_line::start(options) {
        return failed(&error);
    }
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error),
    };
    match LocalSet::new().block_on(&runtime, command_line::run_alone(script)) {
        // The kernel keeps the low eight bits, and so does this.
        Ok(status) => ExitCode::from(status as u8),
        Err(error) => failed(&error),
    }
}
