//! Scripts from the command line.

use std::{ffi::CString, ffi::OsString, io::Write, os::unix::ffi::OsStrExt, path::Path};

use crate::{
    exchange::Exchange,
    ffi,
    isolate::Isolate,
    request::Limits,
    task::{Outcome, Task},
    Engine,
};

const STACK_SIZE: usize = 8 * 1024 * 1024;

/// Runs a script in an isolate, its output on stdout. Returns the process's exit code.
pub async fn run_script(_engine: &Engine, script: &Path, arguments: &[OsString]) -> i32 {
    let limits = Limits {
        request_timeout: None,
        ..Limits::default()
    };
    let task = match Isolate::new(None).and_then(|isolate| Task::new(&isolate, STACK_SIZE)) {
        Ok(task) => task,
        Err(error) => {
            eprintln!("surus: {error}");
            return 1;
        }
    };
    let strings: Vec<CString> = std::iter::once(script.as_os_str().as_bytes())
        .chain(arguments.iter().map(|a| a.as_bytes()))
        .map(|a| CString::new(a).unwrap_or_default())
        .collect();
    let pointers = strings.iter().map(|s| s.as_ptr().cast_mut()).collect();
    let exchange = Exchange::for_script(script, pointers, true);
    task.assign(ffi::RUN_CLASSIC, &exchange);
    let turn = task.resume();
    let outcome = task.drive(&exchange, &limits, turn).await;
    let _ = std::io::stdout().flush();
    match outcome {
        Outcome::Ok => 0,
        _ => 255,
    }
}
