//! The self-test at start: two isolates at once, each of which must find its own state after it has waited.
//!
//! Where a PHP build or an extension breaks isolation in a way that the script can see, the worker does not start and
//! says what was not isolated, rather than mixing up requests later.

use std::{fs::OpenOptions, io::Write, path::PathBuf};

use crate::{
    exchange::Exchange,
    ffi,
    isolate::Isolate,
    request::{Limits, Request, RequestBody, Script},
    task::{Outcome, Task},
    BootError, Engine,
};

const STACK_SIZE: usize = 1024 * 1024;

impl Engine {
    /// Runs the self-test. Inside the runtime of a worker, before its application boots.
    pub async fn self_test(&self) -> Result<(), BootError> {
        let script = ScriptFile::new().map_err(|error| {
            BootError(format!(
                "no file for the self-test in a temporary folder: {error}"
            ))
        })?;
        let path = &script.0;
        let (first, second) = tokio::join!(run(path, 0), run(path, 1));
        for outcome in [first?, second?] {
            if outcome != "isolated" {
                return Err(BootError(format!(
                    "this PHP cannot be isolated: two requests at once shared {outcome}; \
                     a PHP extension that docs/isolates.md does not call safe may be the reason"
                )));
            }
        }
        Ok(())
    }
}

/// The script as a file, which PHP needs; gone when dropped.
struct ScriptFile(PathBuf);

impl ScriptFile {
    fn new() -> std::io::Result<ScriptFile> {
        let name = format!("surus-self-test-{}.php", std::process::id());
        let mut result = Err(std::io::ErrorKind::NotFound.into());
        for folder in [std::env::temp_dir(), PathBuf::from("/dev/shm")] {
            let path = folder.join(&name);
            result = OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&path)
                .and_then(|mut file| file.write_all(include_bytes!("self_test.php")))
                .map(|()| ScriptFile(path));
            if result.is_ok() {
                break;
            }
        }
        result
    }
}

impl Drop for ScriptFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// What the script found not to be its own any more.
async fn run(path: &std::path::Path, id: usize) -> Result<String, BootError> {
    let nobody = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let uri = http::Uri::try_from(format!("/?id={id}")).unwrap_or_default();
    let request = Request {
        method: http::Method::GET,
        uri,
        version: http::Version::HTTP_11,
        headers: http::HeaderMap::new(),
        peer: nobody,
        local: nobody,
        https: false,
        body: RequestBody::Empty,
    };
    let script = Script {
        filename: path.to_path_buf(),
        script_name: "/self_test.php".to_string(),
        path_info: None,
        document_root: PathBuf::from("/"),
    };
    let task = Task::new(&Isolate::new(None)?, STACK_SIZE)?;
    let exchange = Exchange::new(request, Some(script), false);
    task.assign(ffi::RUN_CLASSIC, &exchange);
    let limits = Limits {
        request_timeout: Some(std::time::Duration::from_secs(10)),
        ..Limits::default()
    };
    let outcome = task.start(&exchange, &limits).await;
    let printed = String::from_utf8_lossy(&exchange.take_output())
        .trim()
        .to_string();
    match outcome {
        Outcome::Ok => Ok(printed),
        other => Err(BootError(format!(
            "the self-test did not end ({other:?}); the PHP error is above"
        ))),
    }
}
