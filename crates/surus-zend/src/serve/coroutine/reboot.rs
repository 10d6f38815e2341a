//! A fatal error ends an isolate: the application boots again in another one, and requests wait for it.

use std::rc::Rc;
use std::time::Duration;

use super::{App, Version};

/// The longest wait for a boot where requests have no time limit.
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
    /// The version that takes requests; waits while the application boots again. None if the boot fails, or if too many
    /// requests wait already.
    pub(super) async fn current(self: &Rc<Self>) -> Option<Rc<Version>> {
        let version = self.version.borrow().clone();
        if !version.retired.get() {
            return Some(version);
        }
        let _waiting = Waiting::begin(self)?;
        let limit = self.limits.request_timeout.unwrap_or(LONGEST_WAIT);
        // The first request that wakes may crash the new version before the others run: then they wait for the next
        // one.
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

    /// Boots the application again while the failed isolate finishes its requests. It is freed after its last request.
    pub(super) fn retire(self: &Rc<Self>, version: &Rc<Version>) {
        if version.retired.replace(true) {
            return;
        }
        version.idle.borrow_mut().clear();
        version.end_background();
        version.end_websockets();
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
                    // A reload may have replaced the version meanwhile.
                    if app.version.borrow().retired.get() {
                        let version = Rc::new(version);
                        let old = app.version.replace(version.clone());
                        app.allow_background(&version);
                        App::keep_over(&old, &version);
                        app.follow_timers(&version, false);
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
