//! A WebSocket of PHP on a connection of the edge.

use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use surus_edge::websocket::{serve, Application, Bounds, Close, Message, Outgoing};
use surus_edge::{Reply, Upgrade};
use surus_zend::{ResponseBody, SocketClose, SocketMessage, SocketOutput, WebSocket};

use super::whole;

/// The server ends.
const GOING_AWAY: u16 = 1001;

/// PHP's side of a conversation.
struct Handler(Rc<WebSocket>);

impl Application for Handler {
    fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.poll_ready(cx)
    }

    fn receive(&self, message: Message) {
        self.0.receive(SocketMessage {
            binary: message.binary,
            data: message.data,
            shared: message.shared,
        });
    }

    fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Outgoing> {
        self.0.poll_next(cx).map(|output| match output {
            SocketOutput::Message(message) => Outgoing::Message(Message {
                binary: message.binary,
                data: message.data,
                shared: message.shared,
            }),
            SocketOutput::Close(SocketClose { code, reason }) => {
                Outgoing::Close(Close { code, reason })
            }
        })
    }

    fn leave(&self) {
        self.0.close_by_server(GOING_AWAY);
    }

    fn finish(&self, Close { code, reason }: Close) {
        self.0.finish(SocketClose { code, reason });
    }

    fn ended(&self, Close { code, reason }: Close) {
        self.0.ended(SocketClose { code, reason });
    }
}

/// The body of a response, or what takes its place. `ping`: how often clients are asked whether they are there.
#[inline(always)]
pub(super) fn reply(body: ResponseBody, ping: Option<Duration>) -> Reply<ResponseBody> {
    match whole(body) {
        Reply::Backend(stream) => match stream.into_websocket() {
            Ok(socket) => upgrade(socket, ping),
            Err(stream) => Reply::Backend(stream),
        },
        whole => whole,
    }
}

/// Connects PHP with the client. If the connection is never upgraded, PHP is told that the client is gone.
fn upgrade(socket: Rc<WebSocket>, ping: Option<Duration>) -> Reply<ResponseBody> {
    let handler = Handler(socket);
    let bounds = Bounds {
        max_message: handler.0.max_message(),
        ping: ping.unwrap_or_default(),
        deflate: handler.0.deflate(),
    };
    let unheard = Unheard(Some(handler));
    Reply::Upgrade(Upgrade::new(move |connection| async move {
        if let Some(handler) = unheard.take() {
            serve(connection, &handler, bounds).await;
        }
    }))
}

/// A handler whose client has not got its answer yet.
struct Unheard(Option<Handler>);

impl Unheard {
    fn take(mut self) -> Option<Handler> {
        self.0.take()
    }
}

impl Drop for Unheard {
    fn drop(&mut self) {
        if let Some(handler) = &self.0 {
            handler.0.ended(SocketClose::gone());
        }
    }
}
