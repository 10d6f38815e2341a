//! Servers that repeat what they are told: over HTTP, as SOAP, line by line.

use std::{future::Future, io, net::Ipv4Addr, time::Duration};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    time::sleep,
};

/// `GET /?word=WORD&delay=MILLISECONDS` and `POST /soap`; its port.
pub(crate) async fn http() -> io::Result<u16> {
    serve(http_connection).await
}

/// `MILLISECONDS WORD` and a line feed; the word comes back; its port.
pub(crate) async fn lines() -> io::Result<u16> {
    serve(line_connection).await
}

async fn serve<F>(connection: fn(TcpStream) -> F) -> io::Result<u16>
where
    F: Future<Output = io::Result<()>> + 'static,
{
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let port = listener.local_addr()?.port();
    tokio::task::spawn_local(async move {
        loop {
            if let Ok((stream, _)) = listener.accept().await {
                let _ = stream.set_nodelay(true);
                tokio::task::spawn_local(connection(stream));
            }
        }
    });
    Ok(port)
}

async fn line_connection(stream: TcpStream) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    while stream.read_line(&mut line).await? > 0 {
        let (delay, word) = line.split_once(' ').unwrap_or(("0", ""));
        pause(delay).await;
        stream.get_mut().write_all(word.as_bytes()).await?;
        line.clear();
    }
    Ok(())
}

async fn http_connection(stream: TcpStream) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head).await? == 0 {
                return Ok(());
            }
        }
        let lower = head.to_ascii_lowercase();
        let length = lower
            .lines()
            .find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        stream.read_exact(&mut body).await?;
        let (kind, text) = if head.starts_with("POST /soap") {
            ("text/xml", soap(&String::from_utf8_lossy(&body)))
        } else {
            pause(parameter(&head, "delay=")).await;
            ("text/plain", parameter(&head, "word=").to_owned())
        };
        // PHP's own client asks for a close, curl and SOAP keep the connection.
        let keeps = !lower.contains("connection: close") && head.contains(" HTTP/1.1");
        let connection = if keeps { "keep-alive" } else { "close" };
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: {connection}\r\n\r\n{text}",
            text.len()
        );
        stream.get_mut().write_all(answer.as_bytes()).await?;
        if !keeps {
            return stream.get_mut().shutdown().await;
        }
    }
}

/// The value of `name` in the first line.
fn parameter<'a>(head: &'a str, name: &str) -> &'a str {
    head.split_once(name)
        .and_then(|(_, rest)| rest.split(['&', ' ', '\r']).next())
        .unwrap_or_default()
}

fn soap(request: &str) -> String {
    let word = request
        .split_once("<param0")
        .and_then(|(_, rest)| rest.split_once('>'))
        .and_then(|(_, rest)| rest.split('<').next())
        .unwrap_or_default();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\
         <e:Envelope xmlns:e=\"http://schemas.xmlsoap.org/soap/envelope/\" xmlns:a=\"urn:adversary\" \
         xmlns:x=\"http://www.w3.org/2001/XMLSchema\" xmlns:i=\"http://www.w3.org/2001/XMLSchema-instance\">\
         <e:Body><a:repeatResponse><return i:type=\"x:string\">{word}</return></a:repeatResponse></e:Body></e:Envelope>"
    )
}

async fn pause(milliseconds: &str) {
    let milliseconds = milliseconds.trim().parse().unwrap_or(0);
    if milliseconds > 0 {
        sleep(Duration::from_millis(milliseconds)).await;
    }
}
