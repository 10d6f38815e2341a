//! `surus php`: PHP as php-cli runs it, with its switches (`switches.rs`) and information about it (`about.rs`).

mod about;
mod switches;

use std::ffi::{CString, OsString};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;

use surus_zend::command_line::{self, Invocation, Lines, Options, Source, SETTINGS};

use crate::{event_loop, failed, print, queue};
use about::About;
use switches::{Mode, Switches, Wrong};

/// The value of `$argv[0]` if no file is run.
const NO_FILE: &str = "Standard input code";
/// php-cli's exit code for wrong usage and for a file that cannot be read.
const WRONG: u8 = 1;

/// The script next to the executable that runs `surus php`, for programs that start `PHP_BINARY`.
const WRAPPER: &str = "surus-php";

/// `arguments`: those after `php`.
pub(crate) fn run(arguments: Vec<OsString>) -> ExitCode {
    let arguments = arguments.into_iter().map(OsString::into_vec).collect();
    let switches = match Switches::parse(arguments) {
        Ok(switches) => switches,
        Err(Wrong::Usage(why)) => {
            let _ = writeln!(std::io::stderr(), "{why}");
            print(about::USAGE);
            return ExitCode::from(WRONG);
        }
        Err(Wrong::Said(why)) => {
            print(&format!("{why}\n"));
            return ExitCode::from(WRONG);
        }
    };
    if switches.about == Some(About::Usage) {
        print(about::USAGE);
        return ExitCode::SUCCESS;
    }
    if let Some(file) = &switches.file {
        let path = Path::new(std::ffi::OsStr::from_bytes(file));
        if path.is_dir() || std::fs::File::open(path).is_err() {
            print(&format!("Could not open input file: {}\n", path.display()));
            return ExitCode::from(WRONG);
        }
    }
    if let Err(error) = command_line::start(options(&switches)) {
        return failed(&error);
    }
    queue::in_command();
    match event_loop::run(command_line::run_alone(script(switches))) {
        // Only the low eight bits, as in the kernel.
        Ok(Ok(status)) => ExitCode::from(status as u8),
        Ok(Err(error)) => failed(&error),
        Err(error) => failed(&error),
    }
}

/// Converts a text of the command line, which has no NUL bytes.
fn text(bytes: impl Into<Vec<u8>>) -> CString {
    CString::new(bytes).unwrap_or_default()
}

fn options(switches: &Switches) -> Options {
    let mut ini = SETTINGS.as_bytes().to_vec();
    if !switches.no_ini && switches.ini_path.is_none() {
        // The php.ini is that of the server, whose limit is for requests. Debian's php.ini of php-cli has none.
        ini.extend_from_slice(b"memory_limit=-1\n");
    }
    for define in &switches.defines {
        command_line::define(&mut ini, define);
    }
    for extension in &switches.zend_extensions {
        command_line::define(&mut ini, &[b"zend_extension=", &extension[..]].concat());
    }
    Options {
        ini: text(ini),
        ini_path: switches.ini_path.clone().map(text),
        no_ini: switches.no_ini,
        tasks: true,
        executable: wrapper().unwrap_or_default(),
    }
}

/// The path for `PHP_BINARY`: a script that accepts php-cli's switches, which this executable does not. `None` if it
/// does not exist.
fn wrapper() -> Option<CString> {
    let path = std::env::current_exe().ok()?.with_file_name(WRAPPER);
    let data = path.metadata().ok()?;
    let runs = data.is_file() && data.permissions().mode() & 0o111 != 0;
    runs.then(|| text(path.into_os_string().into_vec()))
}

fn script(switches: Switches) -> Invocation {
    let name = switches
        .file
        .clone()
        .unwrap_or_else(|| NO_FILE.as_bytes().to_vec());
    let file = switches.file.map(text);
    let source = match (switches.about, switches.mode) {
        (Some(about), _) => Source::Code(text(about.code())),
        (None, Mode::Code(code)) => Source::Code(text(code)),
        (None, Mode::Lines { begin, each, end }) => {
            let lines = Lines {
                begin: begin.map(text),
                each: each.map(text),
                end: end.map(text),
            };
            Source::Lines(lines, file)
        }
        (None, Mode::Shown(shown)) => {
            let path = file.unwrap_or_else(|| text("php://stdin"));
            Source::Code(text(about::shown(shown, path.as_bytes())))
        }
        (None, Mode::File | Mode::Lint) => match file {
            Some(file) => Source::File(file),
            None => Source::StandardInput,
        },
    };
    let arguments = std::iter::once(name).chain(switches.arguments);
    Invocation {
        source,
        arguments: arguments.map(text).collect(),
        lint: switches.lint,
    }
}
