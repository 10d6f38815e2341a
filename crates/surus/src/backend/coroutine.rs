use std::path::Path;

use surus_edge::{Backend, Connection, Reply, RequestBody, Spool};
use surus_zend::{BootError, Engine, ResponseBody};

use super::{limits, request, unreadable, Php, Streamed};
use crate::config::App;

/// An application that booted once and serves each request in a fiber.
pub(crate) struct Coroutine {
    app: surus_zend::Coroutine,
    spool: Spool,
}

impl Coroutine {
    pub(crate) async fn boot(engine: &Engine, script: &Path, app: &App) -> Result<Self, BootError> {
        let spool = Spool::new(app.spool.clone());
        let app = boot(engine, script, app).await?;
        Ok(Coroutine { app, spool })
    }
}

/// The application in this process.
pub(crate) async fn boot(
    engine: &Engine,
    script: &Path,
    app: &App,
) -> Result<surus_zend::Coroutine, BootError> {
    surus_zend::Coroutine::boot(engine, script, limits(app)).await
}

impl Backend for Coroutine {
    type Body = ResponseBody;

    async fn call(
        &self,
        incoming: http::Request<RequestBody>,
        connection: &Connection,
    ) -> http::Response<Reply<ResponseBody>> {
        match request(incoming, connection, &self.spool, Streamed::Long).await {
            Ok(request) => self.app.call(request).await.map(Reply::Backend),
            Err(error) => unreadable(&error),
        }
    }
}

impl Php for Coroutine {
    fn unfinished(&self) -> usize {
        self.app.in_flight()
    }
}
