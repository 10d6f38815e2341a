//! Process mode, on the side of workers and on that of the processes.

use std::rc::Rc;

use http::Response;
use serde_json::{json, Value};
use surus_edge::{take_head, Answer, Backend, Connection, Reply, RequestBody, Spool};
use surus_zend::{BootError, ResponseBody};

use super::classic::Scripts;
use super::{request, unreadable, Php, Streamed};
use crate::config::App;
use crate::process::{Processes, Runs};

/// The scripts of a classic site.
impl Scripts for Processes {
    type Body = ResponseBody;

    async fn call(
        &self,
        request: surus_zend::Request,
        script: surus_zend::Script,
    ) -> Response<Reply<ResponseBody>> {
        self.call(request, Some(script)).await
    }

    /// A process finishes requests of a worker that has exited.
    fn unfinished(&self) -> usize {
        0
    }

    /// The master replaces the processes.
    fn renew(&self) -> Result<Self, BootError> {
        Ok(self.clone())
    }

    fn status(&self) -> Value {
        json!({"in_flight": self.in_flight()})
    }
}

/// An application that boots in each process.
pub(crate) struct Remote {
    processes: Processes,
    spool: Spool,
}

impl Remote {
    pub(crate) fn new(processes: Processes, app: &App) -> Self {
        Remote {
            processes,
            spool: super::spool(app),
        }
    }
}

impl Backend for Remote {
    type Body = ResponseBody;

    fn call(
        self: &Rc<Self>,
        head: &mut http::request::Parts,
        body: Option<RequestBody>,
        connection: &Connection,
    ) -> Answer<ResponseBody> {
        let (this, head, connection) = (Rc::clone(self), take_head(head), connection.clone());
        Answer::Later(Box::pin(async move {
            match request(head, body, &connection, &this.spool, Streamed::None).await {
                Ok(request) => this.processes.call(request, None).await,
                Err(error) => unreadable(&error),
            }
        }))
    }
}

impl Php for Remote {
    type Next = ();

    fn has_isolates(&self) -> bool {
        false
    }

    fn unfinished(&self) -> usize {
        0
    }

    /// The master replaces the processes.
    async fn prepare(&self) -> Result<(), String> {
        Ok(())
    }

    fn commit(&self, (): ()) {}

    fn status(&self) -> Value {
        json!({"in_flight": self.processes.in_flight()})
    }
}

impl Runs for surus_zend::Classic {
    async fn run(
        &self,
        request: surus_zend::Request,
        script: Option<surus_zend::Script>,
    ) -> Response<ResponseBody> {
        match script {
            Some(script) => self.call(request, script).await,
            None => not_found(),
        }
    }

    fn unfinished(&self) -> usize {
        let (alive, idle) = self.isolates();
        alive - idle
    }
}

impl Runs for surus_zend::Coroutine {
    async fn run(
        &self,
        request: surus_zend::Request,
        _: Option<surus_zend::Script>,
    ) -> Response<ResponseBody> {
        self.call(request).await
    }

    fn unfinished(&self) -> usize {
        self.in_flight()
    }
}

/// Cannot happen: workers name a script with each request of a classic site.
fn not_found() -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::empty());
    *response.status_mut() = http::StatusCode::NOT_FOUND;
    response
}
