//! Requests of the HTTP API.

use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::{Bytes, BytesMut};
use http::header::{HeaderValue, CONTENT_TYPE};
use http::request::Parts;
use http::{Method, Response, StatusCode, Uri};
use http_body::Body;
use surus_edge::{plain, Answer, BodyError, Later, Reply, RequestBody};
use surus_pusher::api;

use super::Served;

pub(super) fn answer<B: 'static>(
    served: &Rc<Served>,
    head: &Parts,
    body: Option<RequestBody>,
) -> Answer<B> {
    let at_hand = match &body {
        None => Some(Bytes::new()),
        Some(body) => body.at_hand().cloned(),
    };
    let (served, method, uri) = (served.clone(), head.method.clone(), head.uri.clone());
    if let Some(bytes) = at_hand {
        let mut responding: Later<B> =
            Box::pin(async move { respond(&served, &method, &uri, &bytes).await });
        // It waits only for other servers.
        return match responding
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(response) => Answer::Now(response),
            Poll::Pending => Answer::Later(responding),
        };
    }
    let most = match api::admit(&served.front, &request(&method, &uri, &[])) {
        Ok(most) => most,
        Err(refused) => return Answer::Now(response(refused)),
    };
    Answer::Later(Box::pin(async move {
        match read(body, most).await {
            Ok(bytes) => respond(&served, &method, &uri, &bytes).await,
            Err(status) => plain(status),
        }
    }))
}

async fn read(body: Option<RequestBody>, most: usize) -> Result<Bytes, StatusCode> {
    let Some(mut body) = body else {
        return Ok(Bytes::new());
    };
    let mut all = BytesMut::new();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let frame = frame.map_err(|error| {
            let error = error.downcast_ref::<BodyError>();
            error.map_or(StatusCode::BAD_REQUEST, |error| error.status())
        })?;
        if let Ok(data) = frame.into_data() {
            if all.len() + data.len() > most {
                return Err(StatusCode::PAYLOAD_TOO_LARGE);
            }
            all.extend_from_slice(&data);
        }
    }
    Ok(all.freeze())
}

fn request<'a>(method: &'a Method, uri: &'a Uri, body: &'a [u8]) -> api::Request<'a> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    api::Request {
        method: method.as_str(),
        path: uri.path(),
        query: uri.query().unwrap_or_default(),
        body,
        now: now.map_or(0, |now| now.as_secs()),
    }
}

async fn respond<B>(
    served: &Served,
    method: &Method,
    uri: &Uri,
    body: &[u8],
) -> Response<Reply<B>> {
    response(api::answer(&served.front, &request(method, uri, body)).await)
}

fn response<B>(answer: api::Response) -> Response<Reply<B>> {
    let mut response = Response::new(Reply::Bytes(answer.body.to_string().into()));
    *response.status_mut() =
        StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
