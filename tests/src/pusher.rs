//! The Pusher protocol, from both sides: a client's connection, and what an application's server signs.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use hmac::{Hmac, KeyInit, Mac};
use md5::{Digest, Md5};
use serde_json::{json, Value};
use sha2::Sha256;

use crate::http::{Request, Response};
use crate::websocket::{self, Frame, CLOSE, FIN, TEXT};

/// Credentials of an application, as its server has them.
#[derive(Clone, Copy, Debug)]
pub struct App {
    pub id: &'static str,
    pub key: &'static str,
    pub secret: &'static str,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Seconds since 1970.
pub fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("a clock").as_secs()
}

impl App {
    pub fn sign(&self, text: &str) -> String {
        let mac = Hmac::<Sha256>::new_from_slice(self.secret.as_bytes());
        let mut mac = mac.expect("a key");
        mac.update(text.as_bytes());
        hex(&mac.finalize().into_bytes())
    }

    /// What lets a connection subscribe to a channel.
    pub fn auth(&self, socket: &str, channel: &str, data: Option<&str>) -> String {
        let data = data.map_or_else(String::new, |data| format!(":{data}"));
        let signature = self.sign(&format!("{socket}:{channel}{data}"));
        format!("{}:{signature}", self.key)
    }

    /// A request of the HTTP API, signed as the documentation of Pusher says. `path` is what follows the id.
    pub fn request(&self, method: &str, path: &str, more: &[(&str, &str)], body: &str) -> Request {
        let path = format!("/apps/{}{path}", self.id);
        let time = now().to_string();
        let digest = hex(&Md5::digest(body));
        let mut parameters = vec![
            ("auth_key", self.key),
            ("auth_timestamp", &time),
            ("auth_version", "1.0"),
        ];
        if !body.is_empty() {
            parameters.push(("body_md5", &digest));
        }
        parameters.extend(more);
        parameters.sort_unstable();
        let pairs: Vec<String> = parameters
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let query = pairs.join("&");
        let signature = self.sign(&format!("{method}\n{path}\n{query}"));
        let target = format!("{path}?{query}&auth_signature={signature}");
        let request = Request::new(method, &target);
        match body {
            "" => request,
            body => request.body("application/json", body),
        }
    }

    pub fn get(&self, at: SocketAddr, path: &str, more: &[(&str, &str)]) -> Value {
        let request = self.request("GET", path, more, "");
        request.send(at).expect(200).json()
    }

    pub fn post(&self, at: SocketAddr, path: &str, body: &Value) -> Response {
        self.request("POST", path, &[], &body.to_string()).send(at)
    }

    /// Publishes an event.
    pub fn trigger(&self, at: SocketAddr, channel: &str, name: &str, data: &str) {
        let body = json!({"name": name, "channel": channel, "data": data});
        self.post(at, "/events", &body).expect(200);
    }
}

/// A client that is connected.
#[derive(Debug)]
pub struct Client {
    app: App,
    pub socket: String,
    client: websocket::Client,
    /// The members of the presence channel that it has subscribed to last, as far as it has read.
    pub members: BTreeSet<String>,
    /// As which of them.
    pub user: String,
}

/// A message to a client.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub event: String,
    pub channel: String,
    /// Decoded, if it is JSON in a text.
    pub data: Value,
    /// All of it.
    pub whole: Value,
}

impl Client {
    /// The path that clients connect to.
    pub fn path(key: &str) -> String {
        format!("/app/{key}?protocol=7&client=js&version=8.6.0&flash=false")
    }

    /// # Panics
    /// If it is refused.
    pub fn connect(at: SocketAddr, app: App) -> Self {
        let client = websocket::Client::open(at, &Self::path(app.key));
        let mut client = Self {
            app,
            socket: String::new(),
            client,
            members: BTreeSet::new(),
            user: String::new(),
        };
        let first = client.message();
        assert_eq!(first.event, "pusher:connection_established", "{first:?}");
        let socket = first.data["socket_id"].as_str();
        client.socket = socket.expect("a text").to_owned();
        client
    }

    pub fn message(&mut self) -> Message {
        let text = self.client.next_text();
        self.read(&text)
    }

    fn read(&mut self, text: &str) -> Message {
        let whole: Value = serde_json::from_str(text).expect("JSON");
        let field = |name: &str| whole[name].as_str().unwrap_or_default().to_owned();
        let data = match &whole["data"] {
            Value::String(text) => serde_json::from_str(text).unwrap_or(Value::from(&**text)),
            data => data.clone(),
        };
        let message = Message {
            event: field("event"),
            channel: field("channel"),
            data,
            whole,
        };
        let user = message.data["user_id"].as_str();
        match (&*message.event, user) {
            ("pusher_internal:member_added", Some(user)) => {
                let is_new = self.members.insert(user.to_owned());
                assert!(is_new, "{user} has come twice");
            }
            ("pusher_internal:member_removed", Some(user)) => {
                let was_there = self.members.remove(user);
                assert!(was_there, "{user} has gone twice");
            }
            _ => {}
        }
        message
    }

    /// Whether the server still answers; reads what has come before.
    pub fn is_alive(&mut self) -> bool {
        if !self.client.try_text("{\"event\":\"pusher:ping\"}") {
            return false;
        }
        while let Some(frame) = self.client.frame() {
            let text = String::from_utf8(frame.payload).expect("UTF-8");
            if self.read(&text).event == "pusher:pong" {
                return true;
            }
        }
        false
    }

    /// Reads until these are the members.
    pub fn wait_for_members(&mut self, expected: &BTreeSet<String>) {
        while self.members != *expected {
            let next = self.message();
            assert!(next.event.contains(":member_"), "{next:?}");
        }
    }

    /// The next one, which has to be this event.
    pub fn expect(&mut self, event: &str) -> Message {
        let next = self.message();
        assert_eq!(next.event, event, "{next:?}");
        next
    }

    /// Nothing has come before the answer to this question.
    ///
    /// # Panics
    /// If there is something.
    pub fn expect_nothing(&mut self) {
        self.say("pusher:ping", &json!({}));
        self.expect("pusher:pong");
    }

    pub fn say(&mut self, event: &str, data: &Value) {
        let text = json!({"event": event, "data": data}).to_string();
        self.client.text(&text);
    }

    pub fn text(&mut self, text: &str) {
        self.client.text(text);
    }

    /// Asks for a channel, with a signature if there is one.
    pub fn ask(&mut self, channel: &str, auth: Option<&str>, data: Option<&str>) {
        let data = json!({"channel": channel, "auth": auth, "channel_data": data});
        self.say("pusher:subscribe", &data);
    }

    /// Subscribes to a channel, as a member if it is a presence channel; returns what is said about it.
    pub fn subscribe(&mut self, channel: &str, user: Option<&str>) -> Value {
        let info = |user| json!({"user_id": user, "user_info": {"name": user}}).to_string();
        let data = user.map(info);
        let auth = self.app.auth(&self.socket, channel, data.as_deref());
        self.ask(channel, Some(&auth), data.as_deref());
        let answer = self.expect("pusher_internal:subscription_succeeded");
        assert_eq!(answer.channel, channel);
        if let Some(user) = user {
            self.user = user.to_owned();
            let ids = answer.data["presence"]["ids"].as_array().expect("a list");
            let texts = ids.iter().map(|id| id.as_str().expect("a text").to_owned());
            self.members = texts.collect();
        }
        answer.data
    }

    pub fn whisper(&mut self, channel: &str, event: &str, data: &Value) {
        let text = json!({"event": event, "channel": channel, "data": data}).to_string();
        self.client.text(&text);
    }

    /// The messages up to the end, and its code.
    pub fn end(&mut self) -> (Vec<String>, u16) {
        ending(&mut self.client)
    }

    /// Goes without a word, if it is still there.
    pub fn shut(self) {}

    pub fn close(mut self) {
        self.client.close();
    }
}

/// The names of the messages up to the end of a connection, and its code.
pub fn ending(client: &mut websocket::Client) -> (Vec<String>, u16) {
    let mut frames = client.rest();
    let Some(Frame { first, payload }) = frames.pop() else {
        panic!("there is no last frame");
    };
    assert_eq!(first, FIN | CLOSE);
    let code = u16::from_be_bytes([payload[0], payload[1]]);
    let names = frames.iter().map(|frame| {
        assert_eq!(frame.first, FIN | TEXT, "{frame:?}");
        let message: Value = serde_json::from_slice(&frame.payload).expect("JSON");
        message["event"].as_str().expect("a name").to_owned()
    });
    (names.collect(), code)
}
