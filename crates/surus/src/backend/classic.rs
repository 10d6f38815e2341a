use std::future::Future;
use std::io;
use std::path::Path;

use bytes::Bytes;
use http::header::{HeaderValue, LOCATION};
use http::{Method, Response, StatusCode, Uri};
use surus_edge::{
    plain, serve_file, Backend, BoxError, CachedDisk, Connection, Reply, RequestBody, Resolution,
    Site, Spool,
};
use surus_zend::{BootError, ClassicConfig, Engine, ResponseBody};

use super::{limits, request, unreadable, Php, Streamed};
use crate::config::App;

/// A folder of scripts and files, served as nginx and php-fpm would.
pub(crate) struct Classic<S> {
    site: Site,
    disk: CachedDisk,
    spool: Spool,
    scripts: S,
}

/// What runs the scripts.
pub(crate) trait Scripts: 'static {
    type Body: http_body::Body<Data = Bytes, Error = BoxError> + Unpin + 'static;

    fn call(
        &self,
        request: surus_zend::Request,
        script: surus_zend::Script,
    ) -> impl Future<Output = Response<Reply<Self::Body>>>;

    fn unfinished(&self) -> usize;
}

impl Scripts for surus_zend::Classic {
    type Body = ResponseBody;

    async fn call(
        &self,
        request: surus_zend::Request,
        script: surus_zend::Script,
    ) -> Response<Reply<ResponseBody>> {
        self.call(request, script).await.map(Reply::Backend)
    }

    fn unfinished(&self) -> usize {
        let (alive, idle) = self.isolates();
        alive - idle
    }
}

/// The isolates of this process.
pub(crate) fn isolates(engine: &Engine, app: &App) -> Result<surus_zend::Classic, BootError> {
    let config = ClassicConfig {
        limits: limits(app),
        min_isolates: app.min_isolates,
        max_isolates: app.max_isolates,
        idle: app.isolate_idle,
        spill: app.response_disk,
        spill_folder: app.spool.folder.clone(),
    };
    surus_zend::Classic::new(engine, config)
}

impl<S: Scripts> Classic<S> {
    pub(crate) fn new(root: &Path, front: &str, app: &App, scripts: S) -> io::Result<Self> {
        let site = Site::new(root, front).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", root.display()))
        })?;
        Ok(Classic {
            site,
            disk: CachedDisk::new(),
            spool: Spool::new(app.spool.clone()),
            scripts,
        })
    }

    fn script(&self, script: surus_edge::Script) -> surus_zend::Script {
        let text = |bytes| {
            String::from_utf8(bytes)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into())
        };
        surus_zend::Script {
            filename: script.filename,
            script_name: text(script.name),
            path_info: script.path_info.map(text),
            document_root: self.site.root().to_owned(),
        }
    }
}

impl<S: Scripts> Backend for Classic<S> {
    type Body = S::Body;

    async fn call(
        &self,
        incoming: http::Request<RequestBody>,
        connection: &Connection,
    ) -> Response<Reply<S::Body>> {
        let script = match self.site.resolve(&self.disk, incoming.uri().path()) {
            Resolution::Script(script) => self.script(script),
            Resolution::File { path, .. } => {
                return serve_file(incoming.method(), incoming.headers(), &path)
            }
            Resolution::Redirect(path) => {
                return redirect(incoming.method(), &path, incoming.uri())
            }
            Resolution::NotFound => return plain(StatusCode::NOT_FOUND),
            Resolution::Refused => return plain(StatusCode::BAD_REQUEST),
        };
        match request(incoming, connection, &self.spool, Streamed::None).await {
            Ok(request) => self.scripts.call(request, script).await,
            Err(error) => unreadable(&error),
        }
    }
}

impl<S: Scripts> Php for Classic<S> {
    fn unfinished(&self) -> usize {
        self.scripts.unfinished()
    }
}

/// 301 lets clients turn a POST into a GET, as they do for nginx; 308 keeps the method of the rest.
fn redirect<B>(method: &Method, path: &str, from: &Uri) -> Response<Reply<B>> {
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
