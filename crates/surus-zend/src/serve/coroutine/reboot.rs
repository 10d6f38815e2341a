//! A fatal error ends an isolate: the application boots again in another one, and requests wait for it.

use std::rc::Rc;
use std::time::Duration;

use super::{App, Version};

/// For a boot, where requests have no time limit.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Counts a request that waits for a boot, until it is dropped.
struct Waiting<'a>(&'a App);

impl<'a> Waiting<'a> {
    fn begin(app: &'a App) -> Option<Self> {
        let waiting = app.waiting.get();
        if app.in_flight.get() + waiting >= app.limits.max_in_flight {
            return None;
        }
        app.waiting.set(waiting + 1);
        Some(Waiting(app))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.set(self.0.waiting.get() - 1);
    }
}

impl App {
    /// The version that takes requests; waits while it is being booted again. None when it does not boot, and when too
    /// many requests wait already.
    pub(super) async fn current(self: &Rc<Self>) -> Option<Rc<Version>> {
        let version = self.version.borrow().clone();
        if !version.retired.get() {
            return Some(version);
        }
        let _waiting = Waiting::begin(self)?;
        let limit = self.limits.request_timeout.unwrap_or(LONGEST_WAIT);
        // The first to wake may bring the new version down before the others have a turn: they wait for the next.
        tokio::time::timeout(limit, async {
            loop {
                let version = self.version.borrow().clone();
                if !version.retired.get() {
                    return Some(version);
                }
                let booted = self.rebooted.notified();
                if !self.rebooting.get() {
                    self.reboot();
                }
                booted.await;
                if self.boot_failed.get() {
                    return None;
                }
            }
        })
        .await
        .unwrap_or(None)
    }

    /// Boots the application anew while the isolate that failed goes on; that one ends with its last request.
    pub(super) fn retire(self: &Rc<Self>, version: &Rc<Version>) {
        if version.retired.replace(true) {
            return;
        }
        version.idle.borrow_mut().clear();
        if Rc::ptr_eq(version, &self.version.borrow()) {
            self.reboot();
        }
    }

    fn reboot(self: &Rc<Self>) {
        if self.rebooting.replace(true) {
            return;
        }
        let app = self.clone();
        tokio::task::spawn_local(async move {
            let script = app.script.borrow().clone();
            match Version::boot(&app.engine, &script, &app.limits).await {
                Ok(version) => {
                    app.boot_failed.set(false);
                    // A reload may have been quicker.
                    if app.version.borrow().retired.get() {
                        app.version.replace(Rc::new(version));
                    }
                }
                Err(error) => {
                    app.boot_failed.set(true);
                    tracing::error!(%error, "the application did not boot again after a fatal error; the next request tries again");
                }
            }
            app.rebooting.set(false);
            app.rebooted.notify_waiters();
        });
    }
}
