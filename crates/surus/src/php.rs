//! `surus php`: a script on the command line, as php-cli runs it.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use surus_zend::command_line::{self, Options, Script, Source, SETTINGS};

use crate::cli::PhpArgs;
use crate::{event_loop, failed, misconfigured};

pub(crate) fn run(arguments: &PhpArgs) -> ExitCode {
    let script = arguments.script.display();
    if arguments.script.is_dir() {
        return misconfigured(&format!("{script} is a folder, not a script"));
    }
    if let Err(error) = std::fs::File::open(&arguments.script) {
        return misconfigured(&format!("cannot read {script}: {error}"));
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
    match event_loop::run(command_line::run_alone(script)) {
        // The kernel keeps the low eight bits, and so does this.
        Ok(Ok(status)) => ExitCode::from(status as u8),
        Ok(Err(error)) => failed(&error),
        Err(error) => failed(&error),
    }
}
