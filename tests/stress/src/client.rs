//! One request: sends it, does with the answer what the plan says, and checks it.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use bytes::Bytes;
use http::{header, HeaderMap, HeaderValue, Method, Response};
use http_body_util::BodyExt;
use surus_zend::{Classic, Coroutine, Request, RequestBody, ResponseBody, Script};
use tokio::time::timeout;

use crate::{
    body::Pieces,
    cases::{Answer, Brings},
    plan::{Plan, Reading},
};

/// An application of the engine.
#[derive(Debug)]
pub(crate) enum Application {
    Classic(Classic),
    Coroutine(Coroutine),
}

impl Application {
    /// Requests that PHP has not finished.
    pub(crate) fn unfinished(&self) -> usize {
        match self {
            Application::Classic(classic) => {
                let (alive, idle) = classic.isolates();
                alive - idle
            }
            Application::Coroutine(coroutine) => coroutine.in_flight(),
        }
    }
}

/// What all requests share.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) scripts: PathBuf,
    /// For sessions and moved files.
    pub(crate) folder: PathBuf,
    pub(crate) peer: SocketAddr,
}

/// How a request has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    Answered,
    Failed,
    TimedOut,
    /// Its time was over before its turn came.
    Refused,
    ClientLeft,
}

fn multipart(id: &str) -> Bytes {
    let content = id.repeat(1000);
    format!(
        "--xyz\r\nContent-Disposition: form-data; name=\"field\"\r\n\r\n{id}\r\n\
         --xyz\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\
         Content-Type: text/plain\r\n\r\n{content}\r\n--xyz--\r\n"
    )
    .into()
}

/// As the scripts are given it: its length differs.
pub(crate) fn id(plan: &Plan) -> String {
    format!("n{}", plan.number)
}

fn request(plan: &Plan, world: &World) -> Request {
    let id = id(plan);
    let mut headers = HeaderMap::new();
    headers.insert(header::HOST, HeaderValue::from_static("stress"));
    let text = |value: String| HeaderValue::from_str(&value).expect("plain text");
    headers.insert("x-peer", text(world.peer.to_string()));
    headers.insert("x-folder", text(world.folder.display().to_string()));
    let content = match plan.case.brings {
        Brings::Nothing => None,
        Brings::Upload => Some(("multipart/form-data; boundary=xyz", multipart(&id))),
        Brings::Body => Some(("text/plain", Bytes::from(id.repeat(1000)))),
    };
    let (method, body) = match content {
        None => (Method::GET, RequestBody::Empty),
        Some((kind, whole)) => {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
            headers.insert(header::CONTENT_LENGTH, whole.len().into());
            let body = if plan.pieces == 1 && !plan.breaks_off {
                RequestBody::Full(whole)
            } else {
                let pieces = Pieces::new(whole, plan.pieces, plan.pause, plan.breaks_off);
                RequestBody::Stream(Box::pin(pieces))
            };
            (Method::POST, body)
        }
    };
    let uri = format!("/?case={}&id={id}&us={}", plan.case.name, plan.microseconds);
    Request {
        method,
        uri: uri.parse().expect("a valid target"),
        version: http::Version::HTTP_11,
        headers,
        peer: Some(world.peer),
        local: world.peer,
        https: false,
        interim: None,
        body,
        trailers: None,
    }
}

async fn call(
    application: &Application,
    request: Request,
    world: &World,
) -> Response<ResponseBody> {
    match application {
        Application::Classic(classic) => {
            let script = Script {
                filename: world.scripts.join("index.php"),
                script_name: "/index.php".to_owned(),
                path_info: None,
                document_root: world.scripts.clone(),
            };
            classic.call(request, script).await
        }
        Application::Coroutine(coroutine) => coroutine.call(request).await,
    }
}

/// Runs the plan. The error says what was wrong with the answer.
pub(crate) async fn run(
    plan: &Plan,
    application: &Application,
    world: &World,
) -> Result<Ended, String> {
    let answer = call(application, request(plan, world), world);
    let response = match plan.leaves_after {
        None => answer.await,
        Some(limit) => match timeout(limit, answer).await {
            Ok(response) => response,
            Err(_) => return Ok(Ended::ClientLeft),
        },
    };
    let status = response.status().as_u16();
    let own = response
        .headers()
        .get("x-own")
        .map(|value| value.as_bytes().to_owned());
    let come_again = response.headers().contains_key(header::RETRY_AFTER);
    let text = match read(response.into_body(), plan).await? {
        Read::Whole(text) => text,
        Read::CutOff => return Ok(Ended::TimedOut),
        Read::Left => return Ok(Ended::ClientLeft),
    };
    if own.is_some_and(|own| own != id(plan).as_bytes()) {
        return Err("another request's header".to_owned());
    }
    // A hurried request may wait for an isolate, or for its application to boot anew, until its time is over.
    if status == 503 && come_again && plan.target.hurried {
        return Ok(Ended::Refused);
    }
    check(plan, status, &text)
}

enum Read {
    Whole(String),
    CutOff,
    /// The client did not read to the end.
    Left,
}

async fn read(mut body: ResponseBody, plan: &Plan) -> Result<Read, String> {
    let mut whole = Vec::new();
    let mut pieces = 0;
    loop {
        match plan.reading {
            Reading::Aborts(after) if pieces >= after => return Ok(Read::Left),
            Reading::Slowly(pause) => tokio::time::sleep(pause).await,
            _ => {}
        }
        // An answer that does not come to its end would go unnoticed for ever.
        match timeout(Duration::from_secs(120), body.frame()).await {
            Err(_) => return Err("the body does not end".to_owned()),
            Ok(None) => break,
            // Its time was over when its head had been sent.
            Ok(Some(Err(_))) if plan.target.hurried => return Ok(Read::CutOff),
            Ok(Some(Err(error))) => return Err(format!("the body failed: {error}")),
            Ok(Some(Ok(frame))) => {
                if let Ok(data) = frame.into_data() {
                    whole.extend_from_slice(&data);
                }
            }
        }
        pieces += 1;
    }
    Ok(Read::Whole(String::from_utf8_lossy(&whole).into_owned()))
}

fn check(plan: &Plan, status: u16, text: &str) -> Result<Ended, String> {
    if status == 504 && plan.target.hurried {
        return Ok(Ended::TimedOut);
    }
    let id = id(plan);
    let exact = |expected: String| {
        if status == 200 && text == expected {
            return Ok(Ended::Answered);
        }
        let seen = &text[..text.len().min(200)];
        Err(format!("{status} {seen:?} instead of {expected:?}"))
    };
    let broken = plan.breaks_off && plan.case.brings != Brings::Nothing;
    match plan.case.answer {
        _ if broken && status == 200 => Ok(Ended::Answered),
        Answer::Says(what) => exact(format!("{id} {what}")),
        Answer::Prints(what, rest) => exact(format!("{id} {what}{}{rest}", id.to_uppercase())),
        Answer::Streams(size) => {
            let good = status == 200
                && text.starts_with(&id)
                && text[id.len() + 1..].bytes().all(|b| b == b'n');
            let complete = text.len() == id.len() + 1 + size;
            if good && complete {
                return Ok(Ended::Answered);
            }
            Err(format!("{status} with {} bytes", text.len()))
        }
        Answer::Fails if status == 500 => Ok(Ended::Failed),
        Answer::Ends if status == 500 || status == 200 => Ok(Ended::Failed),
        _ => Err(format!("{status} {:?}", &text[..text.len().min(200)])),
    }
}
