//! Applications that a command line script sends requests to: `csrc/app/in_process.c`.
//!
//! The script's task is parked while a fiber of its isolate answers, so both run on one thread and in one PHP. A
//! request is handled as in a server: routes, validation, middleware, the return contract.

use std::{
    cell::RefCell,
    ffi::{c_char, c_int, c_void},
    future::poll_fn,
    path::Path,
    pin::Pin,
    rc::{Rc, Weak},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, Uri};
use http_body::Body;

use crate::{
    blocking::park_on,
    body::response_body::ResponseBody,
    engine::isolate::Isolate,
    exchange::{
        answers::plain_answer,
        fields,
        inputs::RouteInputs,
        request::{AppLimits, Request, RequestBody},
        routing::find_route,
        Exchange,
    },
    ffi::{self, write_message, Str},
    router::Router,
    serve::{
        coroutine::FIBER_STACK,
        task::{Outcome, Task},
    },
};

/// The most bytes of a response body; the rest is cut off.
const MAX_BODY: usize = 256 << 20;

thread_local! {
    /// The isolate of the running script.
    static ISOLATE: RefCell<Weak<Isolate>> = const { RefCell::new(Weak::new()) };
}

/// From now on the script of this isolate may send requests to applications.
pub(crate) fn allow(isolate: &Rc<Isolate>) {
    ISOLATE.set(Rc::downgrade(isolate));
}

/// The routes and inputs that an application has declared.
struct Application {
    router: Option<Router>,
    inputs: Option<Rc<RouteInputs>>,
    last: RefCell<Captured>,
}

#[derive(Default)]
struct Captured {
    status: u16,
    head: Vec<u8>,
    body: Vec<u8>,
}

impl Application {
    fn new(boot: &Exchange) -> Result<Application, String> {
        let routes = boot.routes.borrow();
        let router = if routes.is_empty() {
            None
        } else {
            Some(Router::new(&routes)?)
        };
        Ok(Application {
            router,
            inputs: RouteInputs::take(boot),
            last: RefCell::default(),
        })
    }

    async fn answer(&self, isolate: &Rc<Isolate>, request: Request) -> Captured {
        let exchange = Exchange::new(request, None, false);
        if let Some(answer) = find_route(self.router.as_ref(), &exchange) {
            return collect(answer).await;
        }
        if let Some(inputs) = &self.inputs {
            if let Some(refusal) = inputs.read(&exchange).await {
                return collect(refusal).await;
            }
        }
        let task = match Task::new(isolate, FIBER_STACK) {
            Ok(task) => task,
            Err(error) => {
                tracing::error!(%error, "no fiber for a request");
                return collect(plain_answer(503)).await;
            }
        };
        task.assign(ffi::RUN_CALL, &exchange);
        let limits = AppLimits::default();
        let drive = async {
            let outcome = task.start(&exchange, &limits).await;
            if outcome == Outcome::Abandoned {
                exchange.answer_instead(|| plain_answer(500));
            }
            exchange.finish();
        };
        // Concurrently: PHP may wait until the bytes that it has sent are read.
        let ((), answer) = tokio::join!(drive, async { collect(exchange.ready().await).await });
        answer
    }
}

async fn collect(response: Response<ResponseBody>) -> Captured {
    let (parts, mut body) = response.into_parts();
    let mut answer = Captured {
        status: parts.status.as_u16(),
        ..Captured::default()
    };
    for (name, value) in &parts.headers {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\n"] {
            answer.head.extend_from_slice(part);
        }
    }
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let Ok(data) = frame.map(|frame| frame.into_data().unwrap_or_default()) else {
            break;
        };
        if answer.body.len() + data.len() > MAX_BODY {
            tracing::error!("a response of more than {MAX_BODY} bytes is cut off");
            break;
        }
        answer.body.extend_from_slice(&data);
    }
    answer
}

/// The request, or a message that says why it is invalid.
fn request(raw: &ffi::InProcessRequest) -> Result<Request, String> {
    // SAFETY: C passes texts that live for this call.
    let [method, target, head, body] =
        [&raw.method, &raw.target, &raw.head, &raw.body].map(|text| unsafe { text.bytes() });
    let method = Method::from_bytes(method).map_err(|_| "This is no method".to_owned())?;
    let target = String::from_utf8_lossy(target);
    let uri: Uri = target
        .parse()
        .ok()
        .filter(|_| target.starts_with('/'))
        .ok_or_else(|| format!("A target is a path and perhaps a query, not \"{target}\""))?;
    let mut headers = HeaderMap::new();
    for line in head.split(|&byte| byte == b'\n').filter(|l| !l.is_empty()) {
        let (name, value) = fields::of_line(line)
            .ok_or_else(|| format!("This is no header: {}", String::from_utf8_lossy(line)))?;
        headers.append(name, value);
    }
    if !headers.contains_key("host") {
        headers.insert("host", HeaderValue::from_static("localhost"));
    }
    if !body.is_empty() {
        headers.insert("content-length", HeaderValue::from(body.len()));
    }
    Ok(Request {
        method,
        headers,
        body: if body.is_empty() {
            RequestBody::Empty
        } else {
            RequestBody::Full(Bytes::copy_from_slice(body))
        },
        ..Request::nobodys(uri)
    })
}

#[no_mangle]
extern "C" fn surus_rs_in_process_begin() -> *mut c_void {
    let exchange = Exchange::for_script(Path::new("-"), false);
    Rc::into_raw(exchange).cast_mut().cast()
}

#[no_mangle]
unsafe extern "C" fn surus_rs_in_process_end(
    raw: *mut c_void,
    error: *mut c_char,
    error_size: usize,
) -> *mut c_void {
    // SAFETY: from `begin`, whose reference ends here; room for a message of this size.
    let (exchange, message) = unsafe {
        (
            Rc::from_raw(raw.cast::<Exchange>()),
            std::slice::from_raw_parts_mut(error.cast::<u8>(), error_size),
        )
    };
    match Application::new(&exchange) {
        Ok(application) => Box::into_raw(Box::new(application)).cast(),
        Err(reason) => {
            write_message(message, &reason);
            std::ptr::null_mut()
        }
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_in_process_free(application: *mut c_void) {
    // SAFETY: from `end`, once.
    drop(unsafe { Box::from_raw(application.cast::<Application>()) });
}

#[no_mangle]
unsafe extern "C" fn surus_rs_in_process_call(
    application: *mut c_void,
    raw: *const ffi::InProcessRequest,
    to: *mut ffi::InProcessAnswer,
) -> bool {
    // SAFETY: an application from `end`, and a request that lives for this call.
    let (application, request) = unsafe { (&*application.cast::<Application>(), request(&*raw)) };
    let isolate = ISOLATE.with_borrow(Weak::upgrade);
    let answer = match (request, isolate) {
        (Ok(request), Some(isolate)) => park_on(async {
            let head_only = request.method == Method::HEAD;
            let mut answer = application.answer(&isolate, request).await;
            if head_only {
                answer.body.clear();
            }
            answer
        })
        .map_err(|_| "The script is to end".to_owned()),
        (Err(reason), _) => Err(reason),
        (Ok(_), None) => Err("This script has no isolate of its own".to_owned()),
    };
    let answered = answer.is_ok();
    let mut last = application.last.borrow_mut();
    *last = answer.unwrap_or_else(|reason| Captured {
        body: reason.into_bytes(),
        ..Captured::default()
    });
    // SAFETY: room for an answer; its texts stay until the next call.
    unsafe {
        to.write(ffi::InProcessAnswer {
            status: c_int::from(last.status),
            head: Str::new(&last.head),
            body: Str::new(&last.body),
        });
    }
    answered
}
