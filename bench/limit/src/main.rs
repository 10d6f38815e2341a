//! The upper bound of the benchmark: hyper alone, one thread, giving the answers that Surus gives.
//!
//! Whatever Surus adds (PHP, isolates, routing, limits) is paid on top of this, so the ratio to this server is the
//! price of Surus. It runs on the settings that Surus's own edge needs for speed: TCP_NODELAY, and answers to
//! pipelined requests flushed together. JSON is encoded for each request, as a PHP handler does it.
//!
//! Usage: `surus-limit 127.0.0.1:8080`; prints `limit ready ADDRESS` once it listens.
#![forbid(unsafe_code)]

use std::convert::Infallible;
use std::io::Write;
use std::net::SocketAddr;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::LazyLock;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::header::{HeaderValue, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use tokio::net::TcpListener;

/// What the other servers have as a file, from memory.
static FILE: LazyLock<Bytes> = LazyLock::new(|| b"0123456789abcdef".repeat(1 << 16).into());

#[derive(Serialize)]
struct Message {
    message: &'static str,
}

#[derive(Serialize)]
struct User<'a> {
    id: &'a str,
}

fn main() -> ExitCode {
    let Some(address) = std::env::args().nth(1) else {
        eprintln!("usage: surus-limit ADDRESS:PORT");
        return ExitCode::from(2);
    };
    match run(&address) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("surus-limit: {address}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(address: &str) -> Result<(), Box<dyn std::error::Error>> {
    let address: SocketAddr = address.parse()?;
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(serve(address))?;
    Ok(())
}

async fn serve(address: SocketAddr) -> std::io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    println!("limit ready {}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(async move {
            // An error here is a client that went away: the load generator does that at the end of each run.
            let _ = http1::Builder::new()
                .pipeline_flush(true)
                .serve_connection(TokioIo::new(stream), service_fn(answer))
                .await;
        });
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

type Answer = Response<Either<Full<Bytes>, Pieces>>;

/// A body of this many pieces of 1 KB, whose length is not announced.
struct Pieces(u32);

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.0 == 0 {
            return Poll::Ready(None);
        }
        self.0 -= 1;
        Poll::Ready(Some(Ok(Frame::data(FILE.slice(..1024)))))
    }
}

async fn answer(request: Request<Incoming>) -> Result<Answer, BoxError> {
    if request.method() == Method::POST {
        let length = match request.uri().path() {
            "/keep" => keep(request.into_body()).await?,
            _ => length(request.into_body()).await?,
        };
        return Ok(response("text/plain", length.to_string().into()));
    }
    let path = request.uri().path();
    if let Some(milliseconds) = path.strip_prefix("/delay/") {
        tokio::time::sleep(Duration::from_millis(milliseconds.parse()?)).await;
        return Ok(response("text/plain", Bytes::from_static(b"ok")));
    }
    Ok(match path {
        "/plaintext" => response("text/plain", Bytes::from_static(b"Hello, World!")),
        "/json" => json(&Message {
            message: "Hello, World!",
        }),
        "/ok.php" => response("text/html; charset=UTF-8", Bytes::from_static(b"ok")),
        "/small.txt" => response("text/plain", FILE.slice(..1024)),
        "/large.txt" => response("text/plain", FILE.clone()),
        "/stream" => body("text/plain", Either::Right(Pieces(64))),
        _ => match path.strip_prefix("/users/") {
            Some(id) if !id.is_empty() && !id.contains('/') => json(&User { id }),
            _ => {
                let mut missing = response("text/plain", Bytes::from_static(b"not found"));
                *missing.status_mut() = StatusCode::NOT_FOUND;
                missing
            }
        },
    })
}

/// Reads a body to its end and keeps nothing of it.
async fn length(mut body: Incoming) -> Result<usize, hyper::Error> {
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        length += frame?.data_ref().map_or(0, Bytes::len);
    }
    Ok(length)
}

/// Writes a body to a file without a name, off the event loop.
async fn keep(mut body: Incoming) -> Result<usize, BoxError> {
    let mut file = tempfile::tempfile()?;
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            length += data.len();
            let write = move || file.write_all(&data).map(|()| file);
            file = tokio::task::spawn_blocking(write).await??;
        }
    }
    Ok(length)
}

fn json<T: Serialize>(value: &T) -> Answer {
    let body = serde_json::to_vec(value).expect("plain structs of strings always encode");
    response("application/json", body.into())
}

fn response(content_type: &'static str, bytes: Bytes) -> Answer {
    body(content_type, Either::Left(Full::new(bytes)))
}

fn body(content_type: &'static str, body: Either<Full<Bytes>, Pieces>) -> Answer {
    let mut response = Response::new(body);
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
