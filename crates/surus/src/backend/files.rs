//! Files that the server sends in place of PHP: those of a public folder, and those that PHP names.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use http::header::{HeaderMap, HeaderName, HeaderValue, CONTENT_LENGTH};
use http::{Method, Response, StatusCode};
use surus_edge::{
    plain, serve_file, serve_file_with, Answer, Backend, CachedDisk, Connection, Refusal, Reply,
    RequestBody, Site,
};

use crate::config::App;

const X_SENDFILE: HeaderName = HeaderName::from_static("x-sendfile");

/// File responses of Symfony and Laravel check for this header.
const X_SENDFILE_TYPE: HeaderName = HeaderName::from_static("x-sendfile-type");

/// A backend with static files.
#[derive(Debug)]
pub(crate) struct Files<B> {
    inner: Rc<B>,
    public: Option<(Site, CachedDisk)>,
    sendfile: Option<Rc<SendFile>>,
}

impl<B: Backend> Files<B> {
    pub(crate) fn new(inner: Rc<B>, app: &App) -> io::Result<Self> {
        let public = match &app.public {
            Some(folder) => {
                let site = Site::new(folder, "index.html")?.hiding(&app.hidden);
                Some((site, CachedDisk::new()))
            }
            None => None,
        };
        Ok(Files {
            inner,
            public,
            sendfile: SendFile::new(&app.sendfile).map(Rc::new),
        })
    }
}

impl<B: Backend> Backend for Files<B> {
    type Body = B::Body;

    // Inlined into one function: otherwise requests and responses would be copied between these calls.
    #[inline(always)]
    fn call(
        self: &Rc<Self>,
        head: &mut http::request::Parts,
        body: Option<RequestBody>,
        connection: &Connection,
    ) -> Answer<B::Body> {
        if let Some((site, disk)) = &self.public {
            if matches!(head.method, Method::GET | Method::HEAD) {
                if let Some(file) = site.file(disk, head.uri.path()) {
                    return Answer::Now(serve_file(&head.method, &head.headers, &file));
                }
            }
        }
        let Some(sendfile) = &self.sendfile else {
            return self.inner.call(head, body, connection);
        };
        let (asked, sendfile) = (SendFile::begin(head), Rc::clone(sendfile));
        self.inner
            .call(head, body, connection)
            .map(move |response| sendfile.answer(&asked, response))
    }

    fn ended(&self, response: &mut Response<Reply<B::Body>>) {
        self.inner.ended(response);
    }

    fn refused(&self, why: Refusal) {
        self.inner.refused(why);
    }

    fn answered(&self, status: StatusCode, times: u32, took: Duration) {
        self.inner.answered(status, times, took);
    }

    fn give_back_memory(&self) {
        self.inner.give_back_memory();
    }
}

/// `X-Sendfile: PATH` in a response: the server sends that file in place of PHP, including ranges and conditions.
#[derive(Debug)]
struct SendFile {
    /// Without symbolic links. Only files below one of these are sent.
    folders: Vec<PathBuf>,
}

/// The parts of a request that are needed for its response.
struct Asked {
    method: Method,
    headers: HeaderMap,
}

impl SendFile {
    /// `None` without folders: then requests are not touched.
    fn new(folders: &[PathBuf]) -> Option<Self> {
        (!folders.is_empty()).then(|| SendFile {
            folders: folders.to_vec(),
        })
    }

    fn begin(head: &mut http::request::Parts) -> Asked {
        let asked = Asked {
            method: head.method.clone(),
            headers: head.headers.clone(),
        };
        head.headers
            .insert(X_SENDFILE_TYPE, HeaderValue::from_static("X-Sendfile"));
        asked
    }

    fn answer<B>(&self, asked: &Asked, response: Response<Reply<B>>) -> Response<Reply<B>> {
        let Some(name) = response.headers().get(X_SENDFILE) else {
            return response;
        };
        let name = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
        let Some(path) = self.allowed(name) else {
            tracing::error!(
                "X-Sendfile: {} is no file below a folder of `sendfile`",
                name.display()
            );
            return plain(StatusCode::NOT_FOUND);
        };
        let mut headers = response.headers().clone();
        headers.remove(X_SENDFILE);
        headers.remove(CONTENT_LENGTH);
        serve_file_with(&asked.method, &asked.headers, &path, headers)
    }

    fn allowed(&self, name: &Path) -> Option<PathBuf> {
        self.folders.iter().find_map(|folder| {
            // A relative name is searched in each folder; an absolute one stays as it is.
            let path = folder.join(name).canonicalize().ok()?;
            (path.starts_with(folder) && path.is_file()).then_some(path)
        })
    }
}
