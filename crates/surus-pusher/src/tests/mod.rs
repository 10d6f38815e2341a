//! Clients of workers that are in one process.

mod clients;
mod server;
mod workers;

use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use serde_json::{json, Value};
use surus_channels::Message;

pub(crate) use server::Server;

use crate::signature::tests::sign;
use crate::{App, Connection, Front, Output};

fn app(name: &str) -> App {
    App {
        id: name.to_owned(),
        key: format!("key-{name}"),
        secret: format!("secret-{name}"),
        prefix: if name == "a" {
            String::new()
        } else {
            format!("{name}/")
        },
        client_events: true,
        max_connections: 5,
        max_channels: 20,
        max_event: 1000,
    }
}

fn front() -> Rc<Front> {
    Rc::<Server>::default().worker(vec![app("a"), app("b")])
}

struct Client {
    connection: Rc<Connection>,
    app: &'static str,
    socket: String,
}

impl Client {
    fn new(front: &Rc<Front>, app: &'static str) -> Self {
        let connection = front.connect(&format!("key-{app}"), Some("7"), true);
        let mut client = Client {
            connection: connection.expect("random numbers"),
            app,
            socket: String::new(),
        };
        let (name, _, data) = client.next();
        assert_eq!(name, "pusher:connection_established");
        client.socket = inner(&data)["socket_id"]
            .as_str()
            .expect("a text")
            .to_owned();
        client
    }

    fn output(&self) -> Option<Output> {
        match self
            .connection
            .poll_next(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    /// Event, channel, data.
    fn next(&self) -> (String, String, Value) {
        let Some(Output::Text(frame)) = self.output() else {
            panic!("no message");
        };
        let value: Value = serde_json::from_slice(&frame.text).expect("JSON");
        let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        (text("event"), text("channel"), value["data"].clone())
    }

    /// The names of the events that have come.
    fn names(&self) -> Vec<String> {
        std::iter::from_fn(|| match self.output()? {
            Output::Text(frame) => {
                let value: Value = serde_json::from_slice(&frame.text).expect("JSON");
                value["event"].as_str().map(str::to_owned)
            }
            Output::Close(code, _) => Some(code.to_string()),
        })
        .collect()
    }

    fn say(&self, event: &str, data: Value) {
        let text = json!({"event": event, "data": data}).to_string();
        self.connection.receive(text.as_bytes());
    }

    fn subscribe(&self, channel: &str) {
        self.say("pusher:subscribe", json!({"channel": channel}));
    }

    fn auth(&self, channel: &str, data: Option<&str>) -> String {
        let data = data.map_or_else(String::new, |data| format!(":{data}"));
        self.signed(&format!("{}:{channel}{data}", self.socket))
    }

    /// Who it is.
    fn sign_in(&self, user: &str) -> Value {
        let data = json!({"id": user}).to_string();
        let auth = self.signed(&format!("{}::user::{data}", self.socket));
        json!({"auth": auth, "user_data": data})
    }

    fn signed(&self, text: &str) -> String {
        let signature = sign(&format!("secret-{}", self.app), text);
        format!("key-{}:{signature}", self.app)
    }

    fn enter(&self, channel: &str, user: Option<&str>) {
        let data =
            user.map(|user| json!({"user_id": user, "user_info": {"name": user}}).to_string());
        let auth = self.auth(channel, data.as_deref());
        self.say(
            "pusher:subscribe",
            json!({"channel": channel, "auth": auth, "channel_data": data}),
        );
    }

    fn whisper(&self, channel: &str, name: &str) {
        let text = json!({"event": name, "channel": channel, "data": {"x": 1}}).to_string();
        self.connection.receive(text.as_bytes());
    }
}

fn inner(data: &Value) -> Value {
    serde_json::from_str(data.as_str().expect("a text")).expect("JSON")
}

fn event(name: &str) -> Message {
    Message {
        event: name.into(),
        data: "x".into(),
        ..Message::default()
    }
}

fn publish(front: &Front, channel: &str, message: &Message) {
    let published = now(front.publish(0, channel, message.clone()));
    published.expect("it is published");
}

/// What does not wait.
pub(crate) fn now<T>(future: impl std::future::Future<Output = T>) -> T {
    let polled = std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop()));
    match polled {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it waits"),
    }
}
