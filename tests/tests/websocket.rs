//! WebSockets of an application in coroutine mode (RFC 6455).
#![forbid(unsafe_code)]

#[path = "websocket/classes.rs"]
mod classes;
#[path = "websocket/compression.rs"]
mod compression;
#[path = "websocket/ends.rs"]
mod ends;
#[path = "websocket/example.rs"]
mod example;
#[path = "websocket/frames.rs"]
mod frames;
#[path = "websocket/handshake.rs"]
mod handshake;
#[path = "websocket/http2.rs"]
mod http2;
#[path = "websocket/many.rs"]
mod many;
#[path = "websocket/topics.rs"]
mod topics;

use surus_tests::fixture;
use surus_tests::surus::Surus;

fn set(settings: &[&str]) -> Surus {
    let mut options = Surus::serve(&fixture("websocket").join("app.php"));
    for setting in settings {
        options = options.argument("--set").argument(*setting);
    }
    options.start()
}

fn serve() -> Surus {
    set(&[])
}
