use std::path::PathBuf;

use serde_json::{json, Value};
use surus_edge::{Backend, Connection, Reply, RequestBody, Spool};
use surus_zend::{BootError, Engine, Prepared, ResponseBody};

use super::{limits, request, source_file, unreadable, Php, Streamed};
use crate::config::App;

/// An application that booted once and serves each request in a fiber.
pub(crate) struct Coroutine {
    app: surus_zend::Coroutine,
    spool: Spool,
    /// The script as it was named. Symbolic links in it are followed at each boot.
    source: PathBuf,
}

impl Coroutine {
    pub(crate) async fn boot(engine: &Engine, app: &App) -> Result<Self, BootError> {
        Ok(Coroutine {
            spool: Spool::new(app.spool.clone()),
            source: app.source.clone(),
            app: boot(engine, app).await?,
        })
    }
}

/// The application in this process.
pub(crate) async fn boot(engine: &Engine, app: &App) -> Result<surus_zend::Coroutine, BootError> {
    let script = source_file(&app.source).map_err(|error| BootError(error.to_string()))?;
    surus_zend::Coroutine::boot(engine, &script, limits(app)).await
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
    type Next = Prepared;

    fn unfinished(&self) -> usize {
        self.app.in_flight()
    }

    async fn prepare(&self) -> Result<Prepared, String> {
        let script = source_file(&self.source).map_err(|error| error.to_string())?;
        let prepared = self.app.prepare(&script).await;
        prepared.map_err(|error| error.to_string())
    }

    fn commit(&self, next: Prepared) {
        self.app.commit(next);
    }

    fn status(&self) -> Value {
        let (memory, peak) = self.app.memory();
        json!({
            "in_flight": self.app.in_flight(),
            "php_memory_bytes": memory,
            "php_memory_peak_bytes": peak,
        })
    }
}
