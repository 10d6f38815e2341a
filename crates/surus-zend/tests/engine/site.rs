//! Scripts in a folder of their own, requests to them, and the answers.

use std::{
    fs,
    path::{Path, PathBuf},
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use http::{HeaderMap, Method, Response, Uri, Version};
use http_body::Body;
use surus_zend::{Request, RequestBody, ResponseBody, Script};

/// A folder that is removed when dropped.
#[derive(Debug)]
pub(crate) struct Site(PathBuf);

impl Site {
    pub(crate) fn new() -> Site {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("surus-zend-{}-{number}", std::process::id()));
        fs::create_dir(&folder).expect("a new folder");
        Site(folder)
    }

    /// With one script, without its opening tag.
    pub(crate) fn with(name: &str, code: &str) -> Site {
        let site = Site::new();
        site.write(name, code);
        site
    }

    pub(crate) fn write(&self, name: &str, code: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, format!("<?php\n{code}")).expect("a script is written");
        path
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn script(&self, name: &str) -> Script {
        Script {
            filename: self.path(name),
            script_name: format!("/{name}"),
            path_info: None,
            document_root: self.0.clone(),
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn request(method: Method, target: &str, body: RequestBody) -> Request {
    let nobody = ([127, 0, 0, 1], 80).into();
    Request {
        method,
        uri: target.parse::<Uri>().expect("a valid target"),
        version: Version::HTTP_11,
        headers: HeaderMap::new(),
        peer: Some(nobody),
        local: nobody,
        https: false,
        interim: None,
        body,
        trailers: None,
    }
}

pub(crate) fn get(target: &str) -> Request {
    request(Method::GET, target, RequestBody::Empty)
}

/// The next piece of a body; nothing at its end.
pub(crate) async fn piece(body: &mut ResponseBody) -> Option<Bytes> {
    std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx))
        .await
        .map(|frame| frame.expect("no error").into_data().expect("data"))
}

/// The status and the whole body.
pub(crate) async fn read(response: Response<ResponseBody>) -> (u16, String) {
    let (head, mut body) = response.into_parts();
    let mut text = Vec::new();
    while let Some(bytes) = piece(&mut body).await {
        text.extend_from_slice(&bytes);
    }
    let text = String::from_utf8(text).expect("UTF-8");
    (head.status.as_u16(), text)
}

/// Waits until a file is there, as a sign of PHP's.
pub(crate) async fn appears(path: &Path) {
    for _ in 0..1000 {
        if path.exists() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("{} never came", path.display());
}
