//! The self-test at start: two concurrent isolates, each of which must find its own state after it has parked.
//!
//! Where a PHP build or an extension breaks isolation in a way that the script can see, the server logs what is shared
//! and serves in process mode, rather than mixing up requests later. The script knows no state of unreviewed
//! extensions; their variables are compared instead.

use std::{ffi::CStr, path::PathBuf};

use crate::{
    engine::{
        isolate::Isolate,
        process::{BootError, Engine},
    },
    exchange::{
        request::{AppLimits, Request, Script},
        Exchange,
    },
    ffi,
    serve::task::{Outcome, Task},
};

/// Part of the binary: it needs no folder, and leaves no file behind.
const SCRIPT: &[u8] = include_bytes!("self_test.php");
/// `SURUS_SELF_TEST` of engine/self_test.c.
const SCRIPT_NAME: &str = "/surus-self-test.php";

const STACK_SIZE: usize = 1024 * 1024;

/// The result of the self-test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SelfTest {
    /// Two concurrent requests do not see each other's state.
    Isolated,
    /// They share state; a description of it.
    Shares(String),
}

impl Engine {
    /// Runs the self-test, in the runtime of a forked process, since it changes the settings of the process. Fails if
    /// it cannot be run at all.
    pub async fn self_test(&self) -> Result<SelfTest, BootError> {
        // SAFETY: PHP has started, and this process has no isolate yet; the text is static.
        unsafe { ffi::surus_prepare_self_test(SCRIPT.as_ptr().cast(), SCRIPT.len()) };
        let first = overlap().await?;
        // The first run may change data once (lazy binding, a cache that is filled): only the second run is watched.
        // SAFETY: on the event loop's stack; PHP has started.
        if first != SelfTest::Isolated || !unsafe { ffi::surus_watch_extensions() } {
            return Ok(first);
        }
        let second = overlap().await?;
        // SAFETY: as above; the name is a string of the extension, which stays loaded.
        let changed = unsafe {
            let name = ffi::surus_watched_change();
            (!name.is_null()).then(|| CStr::from_ptr(name).to_string_lossy())
        };
        match changed {
            Some(name) => Ok(SelfTest::Shares(format!(
                "variables of the extension {name}"
            ))),
            None => Ok(second),
        }
    }

    /// The loaded extensions that need a process for each request, and why; unreviewed extensions included.
    #[must_use]
    pub fn extensions_for_processes(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let (mut next, mut why) = (0, std::ptr::null());
        loop {
            // SAFETY: PHP has started; both strings are static.
            unsafe {
                let name = ffi::surus_extension_for_processes(&mut next, &mut why);
                if name.is_null() {
                    return found;
                }
                let text = |text| CStr::from_ptr(text).to_string_lossy().into_owned();
                found.push((text(name), text(why)));
            }
        }
    }
}

async fn overlap() -> Result<SelfTest, BootError> {
    let (first, second) = tokio::join!(run(0), run(1));
    let shared = [first?, second?].into_iter().find(|it| it != "isolated");
    Ok(shared.map_or(SelfTest::Isolated, SelfTest::Shares))
}

/// The state that the script found changed, or "isolated".
async fn run(id: usize) -> Result<String, BootError> {
    let uri = http::Uri::try_from(format!("/?id={id}")).unwrap_or_default();
    let script = Script {
        filename: PathBuf::from(SCRIPT_NAME),
        script_name: SCRIPT_NAME.to_string(),
        path_info: None,
        document_root: PathBuf::from("/"),
    };
    let task = Task::new(&Isolate::new(None)?, STACK_SIZE)?;
    let exchange = Exchange::new(Request::nobodys(uri), Some(script), false);
    task.assign(ffi::RUN_CLASSIC, &exchange);
    let limits = AppLimits {
        request_timeout: Some(std::time::Duration::from_secs(10)),
        ..AppLimits::default()
    };
    let outcome = task.start(&exchange, &limits).await;
    let printed = String::from_utf8_lossy(&exchange.take_output())
        .trim()
        .to_string();
    match outcome {
        Outcome::Ok => Ok(printed),
        other => Ok(format!(
            "something that a PHP error comes from ({other:?}; it is above)"
        )),
    }
}
