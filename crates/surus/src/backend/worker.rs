use std::cell::RefCell;
use std::ffi::{CStr, CString};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use http::{Method, StatusCode, Uri};
use serde_json::{json, Value};
use surus_edge::{
    plain, serve_file, take_head, Answer, Backend, CachedDisk, Connection, Reply, RequestBody,
    Resolution, Site, Spool,
};
use surus_zend::{BootError, BootScript, Engine, PreparedIsolates, ResponseBody, Script};

use super::classic::redirect;
use super::{
    isolates, request, request_with, script_of, source_file, unreadable, whole, Php, Streamed,
};
use crate::config::{is_laravel, App, Mode};

/// Serves a Laravel application by its folders: its front controller answers one request.
const LARAVEL: &CStr = c"Surus\\Runtime\\LaravelRunner::serve($_SERVER['SCRIPT_FILENAME']);";

/// An application that boots once in each of several isolates, each of which serves one request at a time.
pub(crate) struct Worker {
    engine: Engine,
    settings: App,
    spool: Spool,
    release: RefCell<Release>,
    /// Empty until it boots. Only with development servers it can be empty.
    app: RefCell<Option<Rc<surus_zend::WorkerMode>>>,
}

/// The files of an application, as its paths were resolved.
struct Release {
    script: Script,
    files: Option<Rc<(Site, CachedDisk)>>,
    is_snapshot: bool,
    /// What runs before the front controller, and the scripts that are run then, by their paths.
    boot: Option<(PathBuf, Rc<(Site, CachedDisk)>)>,
    warm_up: Vec<Uri>,
}

/// Serves a front controller after a boot.
fn front_controller(boot: &Path) -> CString {
    let boot = boot
        .display()
        .to_string()
        .replace('\\', "\\\\")
        .replace('\'', "\\'");
    let code =
        format!("Surus\\Runtime\\FrontController::serve('{boot}', $_SERVER['SCRIPT_FILENAME']);");
    // A path has no zero byte.
    CString::new(code).unwrap_or_default()
}

impl Release {
    fn open(app: &App) -> io::Result<Self> {
        let file = source_file(&app.source)?;
        let files = match &app.files {
            Some(folder) => {
                let site = Site::new(&source_file(folder)?, "index.html")?.hiding(&app.hidden);
                Some(Rc::new((site, CachedDisk::new())))
            }
            None => None,
        };
        let folder = file.parent().unwrap_or(Path::new("/"));
        let root = files.as_ref().map_or(folder, |files| files.0.root());
        let name = file.strip_prefix(root).unwrap_or(&file);
        let boot = match &app.boot {
            Some(boot) => {
                let site = Site::new(root, &name.display().to_string())?.hiding(&app.hidden);
                Some((source_file(boot)?, Rc::new((site, CachedDisk::new()))))
            }
            None => None,
        };
        Ok(Release {
            script: Script {
                script_name: format!("/{}", name.display().to_string().trim_start_matches('/')),
                path_info: None,
                document_root: root.to_owned(),
                filename: file,
            },
            files,
            warm_up: app.warm_up.clone(),
            boot,
            is_snapshot: app.entry.mode() == Mode::Snapshot,
        })
    }

    fn boot_script(&self) -> BootScript {
        let file = self.script.filename.clone();
        BootScript {
            starter: match &self.boot {
                Some((boot, _)) => Some(front_controller(boot)),
                None => is_laravel(&file).then(|| LARAVEL.to_owned()),
            },
            file,
            is_snapshot: self.is_snapshot,
            warm_up: self.warm_up.clone(),
            served: self.script.clone(),
        }
    }
}

/// The result of preparing a reload.
pub(crate) struct Next {
    release: Release,
    version: Version,
}

enum Version {
    Next(PreparedIsolates),
    First(Rc<surus_zend::WorkerMode>),
}

impl Worker {
    pub(crate) async fn boot(engine: &Engine, app: &App) -> Result<Self, BootError> {
        let worker = Self::empty(engine, app).map_err(|error| BootError(error.to_string()))?;
        let script = worker.release.borrow().boot_script();
        let booted = surus_zend::WorkerMode::boot(engine, &script, isolates(app)).await?;
        worker.app.replace(Some(Rc::new(booted)));
        Ok(worker)
    }

    /// An application that has not booted yet: a reload will do that.
    pub(crate) fn empty(engine: &Engine, app: &App) -> io::Result<Self> {
        Ok(Worker {
            engine: *engine,
            spool: super::spool(app),
            release: RefCell::new(Release::open(app)?),
            app: RefCell::default(),
            settings: app.clone(),
        })
    }

    fn with_app<T: Default>(&self, what: impl FnOnce(&surus_zend::WorkerMode) -> T) -> T {
        self.app.borrow().as_deref().map(what).unwrap_or_default()
    }
}

impl Backend for Worker {
    type Body = ResponseBody;

    fn call(
        self: &Rc<Self>,
        head: &mut http::request::Parts,
        body: Option<RequestBody>,
        connection: &Connection,
    ) -> Answer<ResponseBody> {
        let (mut script, files, scripts) = {
            let release = self.release.borrow();
            let scripts = release.boot.as_ref().map(|(_, scripts)| scripts.clone());
            (release.script.clone(), release.files.clone(), scripts)
        };
        if let Some(scripts) = scripts {
            let (site, disk) = &*scripts;
            script = match site.resolve(disk, head.uri.path()) {
                Resolution::Script(found) => script_of(site, found),
                Resolution::File { path, .. } => {
                    return Answer::Now(serve_file(&head.method, &head.headers, &path))
                }
                Resolution::Redirect(path) => {
                    return Answer::Now(redirect(&head.method, &path, &head.uri))
                }
                Resolution::NotFound => return Answer::Now(plain(StatusCode::NOT_FOUND)),
                Resolution::Refused => return Answer::Now(plain(StatusCode::BAD_REQUEST)),
            };
        } else if let Some(files) =
            files.filter(|_| matches!(head.method, Method::GET | Method::HEAD))
        {
            let (site, disk) = &*files;
            if let Some(file) = site.file(disk, head.uri.path()) {
                return Answer::Now(serve_file(&head.method, &head.headers, &file));
            }
        }
        let Some(app) = self.app.borrow().clone() else {
            return Answer::Now(plain(StatusCode::SERVICE_UNAVAILABLE));
        };
        let at_hand = match &body {
            None => Some(surus_zend::RequestBody::Empty),
            Some(body) => body.at_hand().cloned().map(surus_zend::RequestBody::Full),
        };
        if let Some(body) = at_hand {
            return match app.answer(request_with(head, connection, body, None), script) {
                surus_zend::Answer::Now(response) => Answer::Now(response.map(whole)),
                surus_zend::Answer::Later(future) => {
                    Answer::Later(Box::pin(async { future.await.map(whole) }))
                }
            };
        }
        let (this, head, connection) = (Rc::clone(self), take_head(head), connection.clone());
        Answer::Later(Box::pin(async move {
            match request(head, body, &connection, &this.spool, Streamed::None).await {
                Ok(request) => app.call(request, script).await.map(Reply::Backend),
                Err(error) => unreadable(&error),
            }
        }))
    }
}

impl Php for Worker {
    type Next = Next;

    fn unfinished(&self) -> usize {
        self.with_app(surus_zend::WorkerMode::unfinished)
    }

    async fn prepare(&self) -> Result<Next, String> {
        let release = Release::open(&self.settings).map_err(|error| error.to_string())?;
        let app = self.app.borrow().clone();
        let script = release.boot_script();
        let version = match app {
            Some(app) => app.prepare(&script).await.map(Version::Next),
            None => {
                let config = isolates(&self.settings);
                let first = surus_zend::WorkerMode::boot(&self.engine, &script, config);
                first.await.map(|first| Version::First(Rc::new(first)))
            }
        };
        let version = version.map_err(|error| error.to_string())?;
        Ok(Next { release, version })
    }

    fn commit(&self, next: Next) {
        self.release.replace(next.release);
        match next.version {
            Version::Next(next) => self.with_app(|app| app.commit(next)),
            Version::First(first) => _ = self.app.replace(Some(first)),
        }
    }

    fn status(&self) -> Value {
        let (isolates, idle) = self.with_app(surus_zend::WorkerMode::isolates);
        json!({
            "in_flight": self.with_app(surus_zend::WorkerMode::in_flight),
            "isolates": isolates,
            "isolates_idle": idle,
            "isolates_replaced": self.with_app(surus_zend::WorkerMode::replaced),
            "php_memory_bytes": self.with_app(surus_zend::WorkerMode::memory),
        })
    }

    fn files(&self) -> Vec<PathBuf> {
        self.with_app(surus_zend::WorkerMode::files)
    }
}
