//! The same as app.php, with axum and tungstenite, on one thread.

use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::State;
use axum::response::Response;
use axum::routing::any;
use axum::Router;
use tokio::sync::broadcast::{channel, Sender};

/// Messages that a subscriber may be late.
const LATE: usize = 1024;

async fn echo(mut socket: WebSocket) {
    while let Some(Ok(message)) = socket.recv().await {
        let is_message = matches!(message, Message::Text(_) | Message::Binary(_));
        if is_message && socket.send(message).await.is_err() {
            return;
        }
    }
}

async fn room(mut socket: WebSocket, room: Sender<Message>) {
    let mut messages = room.subscribe();
    loop {
        tokio::select! {
            own = socket.recv() => match own {
                Some(Ok(message @ Message::Text(_))) => {
                    let _ = room.send(message);
                }
                Some(Ok(_)) => {}
                _ => return,
            },
            message = messages.recv() => match message {
                Ok(message) => if socket.send(message).await.is_err() {
                    return;
                },
                Err(_) => return,
            },
        }
    }
}

async fn enter(upgrade: WebSocketUpgrade, State(all): State<Sender<Message>>) -> Response {
    upgrade.on_upgrade(|socket| room(socket, all))
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let port = std::env::var("PORT").expect("PORT");
    let address = format!("127.0.0.1:{port}");
    let listener = tokio::net::TcpListener::bind(address).await.expect("bind");
    let app = Router::new()
        .route("/echo", any(|upgrade: WebSocketUpgrade| async { upgrade.on_upgrade(echo) }))
        .route("/room", any(enter))
        .with_state(channel(LATE).0);
    axum::serve(listener, app).await.expect("serve");
}
