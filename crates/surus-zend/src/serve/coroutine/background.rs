//! `Surus\background()`: code of a version of an application that belongs to no request, and ends with the version.

use std::{
    cell::RefCell,
    rc::{Rc, Weak},
};

use super::{App, Version};
use crate::{
    exchange::{timers::Run, Exchange},
    serve::task::running_isolate,
};

/// Of one version, at a time.
const MOST: usize = 100;

thread_local! {
    /// Versions that serve, and their applications.
    static SERVING: RefCell<Vec<(Weak<App>, Weak<Version>)>> = const { RefCell::new(Vec::new()) };
}

impl App {
    /// From now on, code of this version may begin such work.
    pub(super) fn allow_background(self: &Rc<Self>, version: &Rc<Version>) {
        SERVING.with_borrow_mut(|serving| {
            serving.retain(|(_, version)| version.strong_count() > 0);
            serving.push((Rc::downgrade(self), Rc::downgrade(version)));
        });
    }
}

impl Version {
    /// No new requests come: what runs in the background is cancelled, as a request whose client has left is.
    pub(super) fn end_background(&self) {
        for exchange in self.background.borrow().iter() {
            exchange.client_has_left();
        }
    }
}

fn serving() -> Option<(Rc<App>, Rc<Version>)> {
    let isolate = running_isolate();
    SERVING.with_borrow(|serving| {
        let mut all = serving.iter();
        all.find_map(|(app, version)| {
            let (app, version) = (app.upgrade()?, version.upgrade()?);
            std::ptr::eq(Rc::as_ptr(&version.isolate), isolate).then_some((app, version))
        })
    })
}

#[no_mangle]
extern "C" fn surus_rs_background(number: u64) -> bool {
    let (Some((app, version)), Ok(number)) = (serving(), usize::try_from(number)) else {
        return false;
    };
    if version.retired.get() || app.ends.get() || version.background.borrow().len() >= MOST {
        return false;
    }
    let exchange = Exchange::for_nobody(app.engine.dev);
    version.background.borrow_mut().push(exchange.clone());
    tokio::task::spawn_local(async move {
        let limit = app.limits.background_timeout;
        app.run_clientless(&version, &exchange, number, Run::Background, limit)
            .await;
        let mut running = version.background.borrow_mut();
        running.retain(|other| !Rc::ptr_eq(other, &exchange));
    });
    true
}
