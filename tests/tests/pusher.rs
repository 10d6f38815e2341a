//! The Pusher protocol in front of applications of every mode, and its HTTP API.
#![forbid(unsafe_code)]

#[path = "pusher/api.rs"]
mod api;
#[path = "pusher/browser.rs"]
mod browser;
#[path = "pusher/channels.rs"]
mod channels;
#[path = "pusher/connecting.rs"]
mod connecting;
#[path = "pusher/php.rs"]
mod php;
#[path = "pusher/webhooks.rs"]
mod webhooks;
#[path = "pusher/workers.rs"]
mod workers;

use std::sync::OnceLock;

use surus_tests::fixture;
use surus_tests::pusher::App;
use surus_tests::surus::{Mode, Options, Surus};

const CHAT: App = App {
    id: "1001",
    key: "chat-key",
    secret: "chat-secret",
};

const SHOP: App = App {
    id: "shop",
    key: "shop-key",
    secret: "shop-secret",
};

const SMALL: App = App {
    id: "small",
    key: "small-key",
    secret: "small-secret",
};

const CONFIG: &str = r#"
[pusher.chat]
id = "1001"
key = "chat-key"
secret = "chat-secret"
allowed_origins = ["https://*.example.com"]

[pusher.shop]
key = "shop-key"
secret = "$SHOP_SECRET"
prefix = "shop/"
client_events = false
max_event = "1K"

[pusher.small]
key = "small-key"
secret = "small-secret"
prefix = "small/"
max_connections = 3
"#;

/// All modes: the protocol is in front of the application.
const MODES: [Mode; 4] = [
    Mode::Classic,
    Mode::Coroutine,
    Mode::Process,
    Mode::Snapshot,
];

fn options(mode: Mode) -> Options {
    with_apps(Surus::serve(&mode.script(&fixture("pusher"))).mode(mode))
}

/// With these applications of the protocol.
fn with_apps(options: Options) -> Options {
    options.config(CONFIG).env("SHOP_SECRET", SHOP.secret)
}

/// The server of most tests.
fn shared() -> &'static Surus {
    static SERVER: OnceLock<Surus> = OnceLock::new();
    SERVER.get_or_init(|| options(Mode::Classic).start())
}
