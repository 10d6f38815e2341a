//! A peer for PHP's sockets: echoes lines, and answers a GET with its first line.

use std::{io, net::SocketAddr};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

/// Runs on the event loop for as long as that lives.
pub(crate) async fn start() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::task::spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::task::spawn_local(async move {
                // A client that leaves is no error.
                let _ = serve(stream).await;
            });
        }
    });
    Ok(address)
}

async fn serve(stream: TcpStream) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    while stream.read_line(&mut line).await? > 0 {
        if line.starts_with("GET ") {
            return answer(stream, line.trim_end()).await;
        }
        tokio::task::yield_now().await;
        stream.get_mut().write_all(line.as_bytes()).await?;
        line.clear();
    }
    Ok(())
}

async fn answer(mut stream: BufReader<TcpStream>, first: &str) -> io::Result<()> {
    let mut line = String::new();
    while stream.read_line(&mut line).await? > 2 {
        line.clear();
    }
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        first.len()
    );
    let socket = stream.get_mut();
    socket.write_all(head.as_bytes()).await?;
    // In two pieces: the reader waits twice.
    tokio::task::yield_now().await;
    socket.write_all(first.as_bytes()).await?;
    socket.shutdown().await
}
