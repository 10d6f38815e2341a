use std::cell::OnceCell;
use std::path::PathBuf;
use std::rc::Rc;

use http::StatusCode;
use serde_json::{json, Value};
use surus_edge::{plain, take_head, Answer, Backend, Connection, RequestBody, Spool};
use surus_zend::{BootError, Engine, Prepared, ResponseBody};

use super::websocket::reply;
use super::{limits, request, request_with, source_file, unreadable, Php, Streamed};
use crate::config::App;
use crate::queue;

/// An application that booted once and serves each request in a fiber.
pub(crate) struct Coroutine {
    engine: Engine,
    /// Empty until it boots. Only with development servers it can be empty.
    app: OnceCell<surus_zend::Coroutine>,
    spool: Spool,
    settings: App,
}

/// The result of preparing a reload.
pub(crate) enum Next {
    Version(Prepared),
    First(surus_zend::Coroutine),
}

impl Coroutine {
    pub(crate) async fn boot(engine: &Engine, app: &App) -> Result<Self, BootError> {
        let coroutine = Self::empty(engine, app);
        let _ = coroutine.app.set(boot(engine, app).await?);
        Ok(coroutine)
    }

    /// An application that has not booted yet: a reload will do that.
    pub(crate) fn empty(engine: &Engine, app: &App) -> Self {
        if !app.websocket_compression {
            surus_zend::without_websocket_compression();
        }
        Coroutine {
            engine: *engine,
            app: OnceCell::new(),
            spool: super::spool(app),
            settings: app.clone(),
        }
    }
}

impl Coroutine {
    fn timers(&self) -> Vec<Value> {
        let timers = self.app.get().map(surus_zend::Coroutine::timers);
        let shown = |timer: surus_zend::TimerInfo| {
            json!({
                "timer": timer.about,
                "next_s": timer.next.map(|time| time.as_secs_f64()),
                "running": timer.is_running,
                "runs": timer.runs,
            })
        };
        timers.into_iter().flatten().map(shown).collect()
    }

    #[inline(never)]
    fn call_with_body(
        self: &Rc<Self>,
        head: http::request::Parts,
        body: Option<RequestBody>,
        connection: Connection,
    ) -> Answer<ResponseBody> {
        let this = Rc::clone(self);
        Answer::Later(Box::pin(async move {
            match request(head, body, &connection, &this.spool, Streamed::Long).await {
                Ok(request) => match this.app.get() {
                    Some(app) => {
                        let ping = this.settings.websocket_ping;
                        app.call(request).await.map(|body| reply(body, ping))
                    }
                    None => plain(StatusCode::SERVICE_UNAVAILABLE),
                },
                Err(error) => unreadable(&error),
            }
        }))
    }
}

/// Boots the application in this process.
pub(crate) async fn boot(engine: &Engine, app: &App) -> Result<surus_zend::Coroutine, BootError> {
    let script = source_file(&app.source).map_err(|error| BootError(error.to_string()))?;
    surus_zend::Coroutine::boot(engine, &script, limits(app)).await
}

impl Backend for Coroutine {
    type Body = ResponseBody;

    // Inlined into one function: otherwise requests and responses would be copied between these calls.
    #[inline(always)]
    fn call(
        self: &Rc<Self>,
        head: &mut http::request::Parts,
        body: Option<RequestBody>,
        connection: &Connection,
    ) -> Answer<ResponseBody> {
        let at_hand = match &body {
            None => Some(surus_zend::RequestBody::Empty),
            Some(body) => body.at_hand().cloned().map(surus_zend::RequestBody::Full),
        };
        if let Some(body) = at_hand {
            let Some(app) = self.app.get() else {
                return Answer::Now(plain(StatusCode::SERVICE_UNAVAILABLE));
            };
            let ping = self.settings.websocket_ping;
            return match app.answer(request_with(head, connection, body, None)) {
                surus_zend::Answer::Now(response) => {
                    Answer::Now(response.map(|body| reply(body, ping)))
                }
                surus_zend::Answer::Later(future) => Answer::Later(Box::pin(async move {
                    future.await.map(|body| reply(body, ping))
                })),
            };
        }
        self.call_with_body(take_head(head), body, connection.clone())
    }
}

impl Php for Coroutine {
    type Next = Next;

    fn unfinished(&self) -> usize {
        self.app
            .get()
            .map_or(0, |app| app.in_flight() + app.websockets())
    }

    async fn prepare(&self) -> Result<Next, String> {
        let next = match self.app.get() {
            Some(app) => match source_file(&self.settings.source) {
                Ok(script) => app.prepare(&script).await.map(Next::Version),
                Err(error) => Err(BootError(error.to_string())),
            },
            None => boot(&self.engine, &self.settings).await.map(Next::First),
        };
        next.map_err(|error| error.to_string())
    }

    fn commit(&self, next: Next) {
        match (next, self.app.get()) {
            (Next::Version(next), Some(app)) => {
                app.commit(next);
                queue::follow(app);
            }
            (Next::First(app), None) => {
                app.start_timers();
                queue::follow(&app);
                let _ = self.app.set(app);
            }
            // Impossible: `prepare` has chosen by this state, and nothing else changes it.
            (Next::Version(_), None) | (Next::First(_), Some(_)) => {}
        }
    }

    fn start_timers(&self) {
        if let Some(app) = self.app.get() {
            app.start_timers();
            queue::follow(app);
        }
    }

    fn stop_timers(&self) {
        if let Some(app) = self.app.get() {
            queue::rest();
            // Another worker may lead once none of them runs.
            app.stop_timers();
        } else {
            surus_zend::lead_no_more();
        }
    }

    fn status(&self) -> Value {
        let memory = self.app.get().map(surus_zend::Coroutine::memory);
        let sockets = surus_zend::socket_counts();
        json!({
            "in_flight": self.app.get().map_or(0, surus_zend::Coroutine::in_flight),
            "websockets": sockets.open,
            "websocket_messages_received": sockets.received,
            "websocket_messages_sent": sockets.sent,
            "php_memory_bytes": memory.map(|(now, _)| now),
            "php_memory_peak_bytes": memory.map(|(_, peak)| peak),
            "timers": self.timers(),
        })
    }

    fn files(&self) -> Vec<PathBuf> {
        self.app
            .get()
            .map(surus_zend::Coroutine::files)
            .unwrap_or_default()
    }
}
