//! One request over a connection of its own, whose client may leave at any moment.

use std::{io, net::SocketAddr, rc::Rc, time::Duration};

use socket2::SockRef;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{sleep, timeout},
};

use crate::{
    plan::{Leave, Plan},
    proxy::Proxy,
};

/// How long a client waits for its answer: longer than any request may take.
const PATIENCE: Duration = Duration::from_secs(90);

#[derive(Debug)]
pub(crate) enum Outcome {
    Answer {
        status: u16,
        body: String,
    },
    /// The client has left before there was a whole answer.
    Left,
    /// The connection was refused.
    Refused(io::Error),
    /// The connection was closed before there was a whole answer; this came.
    Closed(String),
    Hang,
}

/// Sends the request of `plan` and takes the answer, or leaves. `usual` is what the operation takes.
pub(crate) async fn run(
    plan: &Plan,
    address: SocketAddr,
    proxy: Option<&Rc<Proxy>>,
    usual: Duration,
) -> Outcome {
    let mut stream = match TcpStream::connect(address).await {
        Ok(stream) => stream,
        Err(error) => return Outcome::Refused(error),
    };
    let leaving = async {
        match (plan.leave, proxy) {
            (None, _) => std::future::pending().await,
            (Some(Leave::After(part)), _) => sleep(usual * part as u32 / 1000).await,
            (Some(Leave::AtPacket(count)), Some(proxy)) => proxy.packets(count).await,
            (Some(Leave::AtPacket(count)), None) => sleep(Duration::from_millis(count)).await,
        }
    };
    let outcome = tokio::select! {
        outcome = timeout(PATIENCE, talk(plan, address, &mut stream)) => outcome.unwrap_or(Outcome::Hang),
        () = leaving => Outcome::Left,
    };
    if matches!(outcome, Outcome::Left) && plan.resets {
        let _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
    }
    outcome
}

async fn talk(plan: &Plan, address: SocketAddr, stream: &mut TcpStream) -> Outcome {
    let mut bytes = Vec::new();
    let mut result = send(plan, address, stream).await;
    if result.is_ok() {
        result = stream.read_to_end(&mut bytes).await.map(drop);
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    match (answer(&text), result) {
        (Some((status, body)), _) => Outcome::Answer { status, body },
        (None, Err(error)) => Outcome::Closed(format!("{error}; {text}")),
        (None, Ok(())) => Outcome::Closed(text),
    }
}

/// How many lines an uploaded file has, and how many pieces its request comes in.
const LINES: usize = 20_000;
const PIECES: usize = 5;
const BOUNDARY: &str = "adversary";

async fn send(plan: &Plan, address: SocketAddr, stream: &mut TcpStream) -> io::Result<()> {
    let common = format!(
        "{} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n",
        plan.target()
    );
    if !plan.operation.uploads() {
        return stream
            .write_all(format!("GET {common}\r\n").as_bytes())
            .await;
    }
    let body = format!(
        "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"words.txt\"\r\n\r\n{}\r\n--{BOUNDARY}--\r\n",
        format!("{}\n", plan.token()).repeat(LINES),
    );
    let request = format!(
        "POST {common}Content-Type: multipart/form-data; boundary={BOUNDARY}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len(),
    );
    for piece in request.as_bytes().chunks(request.len() / PIECES + 1) {
        stream.write_all(piece).await?;
        sleep(Duration::from_millis(plan.delay / 4)).await;
    }
    Ok(())
}

/// Status and body of a whole answer.
fn answer(text: &str) -> Option<(u16, String)> {
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let header = |name: &str| {
        head.lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(each, _)| each.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim().to_owned())
    };
    if header("transfer-encoding").is_some() {
        return Some((status, chunks(body)?));
    }
    let length: usize = header("content-length")?.parse().ok()?;
    (body.len() == length).then(|| (status, body.to_owned()))
}

fn chunks(mut text: &str) -> Option<String> {
    let mut body = String::new();
    loop {
        let (size, rest) = text.split_once("\r\n")?;
        let size = usize::from_str_radix(size, 16).ok()?;
        if size == 0 {
            return Some(body);
        }
        body.push_str(rest.get(..size)?);
        text = rest.get(size..)?.strip_prefix("\r\n")?;
    }
}
