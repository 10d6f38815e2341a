use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderValue, LOCATION};
use http::{Method, Response, StatusCode, Uri};
use serde_json::{json, Value};
use surus_edge::{
    plain, serve_file, take_head, Answer, Backend, BoxError, CachedDisk, Connection, Hidden, Reply,
    RequestBody, Resolution, Site, Spool,
};
use surus_zend::{BootError, ClassicConfig, Engine, ResponseBody};
use tokio::task::spawn_local;

use super::{request, source_file, unreadable, Php, Streamed};
use crate::config::App;

/// How often to check whether a replaced release still has requests.
const RETIRED: Duration = Duration::from_millis(100);

/// A folder of scripts and files, served as nginx and php-fpm would.
pub(crate) struct Classic<S> {
    /// The configured path of the folder. Its symbolic links are resolved at each reload.
    source: PathBuf,
    front: String,
    hidden: Hidden,
    spool: Spool,
    release: RefCell<Rc<Release<S>>>,
    /// Replaced releases that still have requests.
    retired: Rc<RefCell<Vec<Rc<Release<S>>>>>,
}

/// The folder as it was resolved, with a cache and isolates that have seen no other.
pub(crate) struct Release<S> {
    site: Site,
    disk: CachedDisk,
    scripts: S,
}

/// Runs the scripts.
pub(crate) trait Scripts: 'static {
    type Body: http_body::Body<Data = Bytes, Error = BoxError> + Unpin + 'static;

    fn call(
        &self,
        request: surus_zend::Request,
        script: surus_zend::Script,
    ) -> impl Future<Output = Response<Reply<Self::Body>>>;

    fn unfinished(&self) -> usize;

    /// The same, for another version of the scripts.
    fn renew(&self) -> Result<Self, BootError>
    where
        Self: Sized;

    /// Numbers for `surus status`.
    fn status(&self) -> Value;
}

/// The isolates of this process.
pub(crate) struct Isolates {
    engine: Engine,
    config: ClassicConfig,
    pub(crate) pool: surus_zend::Classic,
}

impl Isolates {
    pub(crate) fn new(engine: &Engine, app: &App) -> Result<Self, BootError> {
        Self::start(engine, super::isolates(app))
    }

    fn start(engine: &Engine, config: ClassicConfig) -> Result<Self, BootError> {
        Ok(Isolates {
            engine: *engine,
            pool: surus_zend::Classic::new(engine, config.clone())?,
            config,
        })
    }
}

impl Scripts for Isolates {
    type Body = ResponseBody;

    async fn call(
        &self,
        request: surus_zend::Request,
        script: surus_zend::Script,
    ) -> Response<Reply<ResponseBody>> {
        self.pool.call(request, script).await.map(Reply::Backend)
    }

    fn unfinished(&self) -> usize {
        let (alive, idle) = self.pool.isolates();
        alive - idle
    }

    fn renew(&self) -> Result<Self, BootError> {
        Self::start(&self.engine, self.config.clone())
    }

    fn status(&self) -> Value {
        json!({"isolates": self.pool.isolates().0, "isolates_replaced": self.pool.replaced()})
    }
}

impl<S: Scripts> Classic<S> {
    pub(crate) fn new(app: &App, front: &str, scripts: S) -> io::Result<Self> {
        Ok(Classic {
            source: app.source.clone(),
            front: front.to_owned(),
            hidden: app.hidden.clone(),
            spool: super::spool(app),
            release: RefCell::new(Rc::new(Release::open(
                &app.source,
                front,
                &app.hidden,
                scripts,
            )?)),
            retired: Rc::default(),
        })
    }
}

impl<S: Scripts> Release<S> {
    fn open(source: &Path, front: &str, hidden: &Hidden, scripts: S) -> io::Result<Self> {
        let root = source_file(source)?;
        let site = Site::new(&root, front).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", root.display()))
        })?;
        Ok(Release {
            site: site.hiding(hidden),
            disk: CachedDisk::new(),
            scripts,
        })
    }
}

impl<S: Scripts> Backend for Classic<S> {
    type Body = S::Body;

    fn call(
        self: &Rc<Self>,
        head: &mut http::request::Parts,
        body: Option<RequestBody>,
        connection: &Connection,
    ) -> Answer<S::Body> {
        let release = Rc::clone(&self.release.borrow());
        let script = match release.site.resolve(&release.disk, head.uri.path()) {
            Resolution::Script(script) => super::script_of(&release.site, script),
            Resolution::File { path, .. } => {
                return Answer::Now(serve_file(&head.method, &head.headers, &path))
            }
            Resolution::Redirect(path) => {
                return Answer::Now(redirect(&head.method, &path, &head.uri))
            }
            Resolution::NotFound => return Answer::Now(plain(StatusCode::NOT_FOUND)),
            Resolution::Refused => return Answer::Now(plain(StatusCode::BAD_REQUEST)),
        };
        let (this, head, connection) = (Rc::clone(self), take_head(head), connection.clone());
        Answer::Later(Box::pin(async move {
            match request(head, body, &connection, &this.spool, Streamed::None).await {
                Ok(request) => release.scripts.call(request, script).await,
                Err(error) => unreadable(&error),
            }
        }))
    }
}

impl<S: Scripts> Php for Classic<S> {
    type Next = Release<S>;

    fn unfinished(&self) -> usize {
        let retired = self.retired.borrow();
        let old: usize = retired.iter().map(|each| each.scripts.unfinished()).sum();
        old + self.release.borrow().scripts.unfinished()
    }

    async fn prepare(&self) -> Result<Release<S>, String> {
        let scripts = self.release.borrow().scripts.renew();
        let scripts = scripts.map_err(|error| error.to_string())?;
        let release = Release::open(&self.source, &self.front, &self.hidden, scripts);
        release.map_err(|error| error.to_string())
    }

    fn commit(&self, next: Release<S>) {
        let old = self.release.replace(Rc::new(next));
        self.retired.borrow_mut().push(old);
        let retired = Rc::clone(&self.retired);
        spawn_local(async move {
            while !retired.borrow().is_empty() {
                retired
                    .borrow_mut()
                    .retain(|release| release.scripts.unfinished() > 0);
                tokio::time::sleep(RETIRED).await;
            }
        });
    }

    fn status(&self) -> Value {
        let mut status = self.release.borrow().scripts.status();
        if status["in_flight"].is_null() {
            status["in_flight"] = self.unfinished().into();
        }
        status
    }
}

/// 301 lets clients turn a POST into a GET, as they do for nginx; 308 keeps the method of the rest.
pub(super) fn redirect<B>(method: &Method, path: &str, from: &Uri) -> Response<Reply<B>> {
    let location = match from.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    let status = if matches!(*method, Method::GET | Method::HEAD) {
        StatusCode::MOVED_PERMANENTLY
    } else {
        StatusCode::PERMANENT_REDIRECT
    };
    let mut response = plain(status);
    match HeaderValue::from_str(&location) {
        Ok(location) => {
            response.headers_mut().insert(LOCATION, location);
            response
        }
        Err(_) => plain(StatusCode::BAD_REQUEST),
    }
}
