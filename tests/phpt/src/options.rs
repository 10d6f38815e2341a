//! php-cli's command line, as sapi/cli/php_cli.c reads it.

use std::{ffi::CString, os::unix::ffi::OsStrExt};

use surus_zend::command_line::{define, Invocation, Options, Source, SETTINGS};

pub(crate) struct Command {
    pub(crate) options: Options,
    pub(crate) script: Invocation,
}

pub(crate) enum Parsed {
    Run(Box<Command>),
    /// Something else than running a script.
    Stock,
}

/// Options with a value.
const WITH_VALUE: &[u8] = b"cdfrzBEFRSt";

pub(crate) fn parse(arguments: &[CString]) -> Parsed {
    let mut ini = SETTINGS.as_bytes().to_vec();
    let mut options = Options::default();
    let (mut file, mut code) = (None, None);
    let mut lint = false;
    let mut next = 1;
    while let Some(argument) = arguments.get(next).map(|a| a.as_bytes()) {
        if argument == b"--" {
            break;
        }
        if argument.len() < 2 || argument[0] != b'-' {
            break;
        }
        next += 1;
        let mut letters = &argument[1..];
        while let Some((&letter, rest)) = letters.split_first() {
            letters = rest;
            if !WITH_VALUE.contains(&letter) {
                match letter {
                    b'n' => options.no_ini = true,
                    b'q' | b'C' => {}
                    b'l' => lint = true,
                    _ => return Parsed::Stock,
                }
                continue;
            }
            let value = if rest.is_empty() {
                let Some(value) = arguments.get(next) else {
                    return Parsed::Stock;
                };
                next += 1;
                value.clone()
            } else {
                owned(rest.strip_prefix(b"=").unwrap_or(rest))
            };
            letters = &[];
            match letter {
                b'c' => options.ini_path = Some(value),
                b'd' => define(&mut ini, value.as_bytes()),
                b'f' => file = Some(value),
                b'r' => code = Some(value),
                _ => return Parsed::Stock,
            }
        }
    }
    let ended = arguments.get(next).is_some_and(|a| a.as_bytes() == b"--");
    if ended {
        next += 1;
    } else if file.is_none() && code.is_none() && next < arguments.len() {
        file = Some(arguments[next].clone());
        next += 1;
    }
    options.ini = owned(&ini);
    options.executable = std::env::current_exe()
        .map(|path| owned(path.as_os_str().as_bytes()))
        .unwrap_or_default();
    let name = file
        .clone()
        .unwrap_or_else(|| c"Standard input code".into());
    let rest = arguments.get(next..).unwrap_or_default().iter().cloned();
    let script = Invocation {
        arguments: std::iter::once(name).chain(rest).collect(),
        source: match (code, file) {
            (Some(code), _) => Source::Code(code),
            (None, Some(file)) => Source::File(file),
            (None, None) => Source::StandardInput,
        },
        lint,
    };
    Parsed::Run(Box::new(Command { options, script }))
}

fn owned(bytes: &[u8]) -> CString {
    CString::new(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::ffi::{CStr, OsStr};

    use super::*;

    fn run(arguments: &[&CStr]) -> Command {
        let arguments: Vec<CString> = arguments.iter().map(|&a| a.into()).collect();
        match parse(&arguments) {
            Parsed::Run(invocation) => *invocation,
            Parsed::Stock => panic!("left to the stock program"),
        }
    }

    #[test]
    fn options_come_before_the_script_and_arguments_after_it() {
        let got = run(&[
            c"php", c"-n", c"-dx=1", c"-d", c"y=/a", c"-f", c"a.php", c"--", c"-n",
        ]);
        assert!(got.options.no_ini);
        let ini = OsStr::from_bytes(got.options.ini.as_bytes());
        assert!(ini.to_string_lossy().ends_with("x=1\ny=\"/a\"\n"));
        assert!(matches!(got.script.source, Source::File(f) if f.as_c_str() == c"a.php"));
        assert_eq!(
            got.script.arguments,
            [c"a.php".into(), CString::from(c"-n")]
        );
    }

    #[test]
    fn code_and_standard_input() {
        let got = run(&[c"php", c"-r", c"echo 1;", c"b"]);
        assert!(matches!(got.script.source, Source::Code(_)));
        assert_eq!(got.script.arguments.len(), 2);
        let got = run(&[c"php", c"--", c"b"]);
        assert!(matches!(got.script.source, Source::StandardInput));
    }
}
