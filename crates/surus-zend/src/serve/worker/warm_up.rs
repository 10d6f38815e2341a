//! Requests of a boot, before its snapshot is taken.

use std::{
    future::{poll_fn, Future},
    pin::Pin,
};

use http::{header, HeaderValue, Response, StatusCode, Uri};
use http_body::Body;

use crate::{
    body::response_body::ResponseBody,
    engine::process::BootError,
    exchange::{
        request::{AppLimits, Request, Script},
        Exchange,
    },
    ffi,
    serve::{
        coroutine::version::Version,
        task::{Outcome, Task},
    },
};

/// Answers a request for `uri` as one of a client, and drops the answer. A status of 500 and more is an error.
pub(super) async fn ask(
    task: &Task,
    version: &Version,
    uri: &Uri,
    served: &Script,
    limits: &AppLimits,
    dev: bool,
) -> Result<(), BootError> {
    let mut request = Request::nobodys(uri.clone());
    let host = HeaderValue::from_static("localhost");
    request.headers.insert(header::HOST, host);
    let exchange = Exchange::new(request, Some(served.clone()), dev);
    if version.route(&exchange).is_some() {
        return Err(wrong(uri, "no route takes it"));
    }
    let inputs = version.inputs.as_ref();
    if let Some(inputs) = inputs.filter(|inputs| inputs.has(&exchange)) {
        if inputs.clone().read(&exchange).await.is_some() {
            return Err(wrong(uri, "its input is refused"));
        }
    }
    task.assign(ffi::RUN_CALL, &exchange);
    let turn = task.resume();
    let work = async {
        let outcome = task.drive(&exchange, limits, turn).await;
        exchange.finish();
        outcome
    };
    let (outcome, status) = tokio::join!(work, read(exchange.ready()));
    match outcome {
        Outcome::Ok | Outcome::Exception if !status.is_server_error() => Ok(()),
        _ => Err(wrong(
            uri,
            &format!("it is answered with {status}; the log says why"),
        )),
    }
}

fn wrong(uri: &Uri, why: &str) -> BootError {
    BootError(format!("warm_up: {uri}: {why}"))
}

/// Reads a response to its end, as a client would.
async fn read(response: impl Future<Output = Response<ResponseBody>>) -> StatusCode {
    let response = response.await;
    let status = response.status();
    let mut body = response.into_body();
    while let Some(Ok(_)) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {}
    status
}
