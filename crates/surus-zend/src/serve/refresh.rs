//! Invalidates changed files before a reload, and collects the errors of a boot for its report.

use std::{
    cell::RefCell,
    path::{Path, PathBuf},
    time::Duration,
};

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

const STACK_SIZE: usize = 1024 * 1024;

/// The most bytes of a boot's errors that are kept.
const KEPT: usize = 16 * 1024;

impl Engine {
    /// Invalidates each script in OPcache whose file or inode has changed since `since`, in Unix seconds, and clears
    /// the realpath cache of this process. For the worker that is the first to reload.
    pub async fn refresh(&self, since: u64) -> Result<(), BootError> {
        let uri = http::Uri::try_from(format!("/?since={since}")).unwrap_or_default();
        let script = Script {
            filename: PathBuf::from("surus refresh"),
            script_name: String::new(),
            path_info: None,
            document_root: PathBuf::from("/"),
        };
        let task = Task::new(&Isolate::new(None)?, STACK_SIZE)?;
        let exchange = Exchange::new(Request::nobodys(uri), Some(script), false);
        task.assign(ffi::RUN_REFRESH, &exchange);
        let limits = AppLimits {
            request_timeout: None,
            ..AppLimits::default()
        };
        match task.start(&exchange, &limits).await {
            Outcome::Ok => Ok(()),
            other => Err(BootError(format!(
                "OPcache could not be refreshed ({other:?}); the PHP error is in the log"
            ))),
        }
    }
}

thread_local! {
    /// Running boots, and the errors that they have logged.
    static BOOTS: RefCell<Vec<(*const Exchange, String)>> = const { RefCell::new(Vec::new()) };
}

/// Collects the errors that the boot of this exchange logs. If the boot fails, they are in its report and not in the
/// log. Otherwise they go to the log when this is dropped.
pub(crate) struct BootLog<'a>(&'a Exchange);

impl<'a> BootLog<'a> {
    pub(crate) fn begin(exchange: &'a Exchange) -> Self {
        BOOTS.with_borrow_mut(|boots| boots.push((exchange, String::new())));
        BootLog(exchange)
    }

    /// Why `script` did not boot. `late`: its time limit, if that was exceeded.
    pub(crate) fn error(&self, script: &Path, late: Option<Duration>) -> BootError {
        let log = self.take();
        let mut text = format!("{} did not boot", script.display());
        if let Some(limit) = late {
            text += &format!(" within boot_timeout, {limit:?}");
        }
        match log.trim() {
            "" => {}
            log => text += &format!(": {log}"),
        }
        BootError(text)
    }

    fn take(&self) -> String {
        BOOTS.with_borrow_mut(|boots| {
            let own = boots
                .iter_mut()
                .find(|(exchange, _)| std::ptr::eq(*exchange, self.0));
            own.map(|(_, log)| std::mem::take(log)).unwrap_or_default()
        })
    }
}

impl Drop for BootLog<'_> {
    fn drop(&mut self) {
        let left = self.take();
        if !left.is_empty() {
            tracing::error!(target: "php", "{}", left.trim_end());
        }
        BOOTS.with_borrow_mut(|boots| {
            boots.retain(|(exchange, _)| !std::ptr::eq(*exchange, self.0))
        });
    }
}

/// Keeps an error for the boot's report; false if it is not an error of a boot, or the report is full.
pub(crate) fn keep_boot_error(exchange: *const Exchange, line: &str) -> bool {
    BOOTS.with_borrow_mut(|boots| {
        let Some((_, log)) = boots.iter_mut().find(|(booting, _)| *booting == exchange) else {
            return false;
        };
        let fits = log.len() + line.len() < KEPT;
        if fits {
            log.push_str(line);
            log.push('\n');
        }
        fits
    })
}
