//! A client of the Pusher protocol on a connection of the edge.

use std::rc::Rc;
use std::task::{Context, Poll};

use surus_edge::websocket::{serve, Application, Bounds, Close, Message, Outgoing};
use surus_edge::{Reply, Upgrade};
use surus_pusher::{Connection, Output};

use super::Served;

/// Bytes of a message of a client, beside the data of an event: names, and what is signed.
const REST: usize = 16 * 1024;

/// It is over when this is dropped, whether the connection was upgraded or not.
struct Client(Rc<Connection>);

impl Drop for Client {
    fn drop(&mut self) {
        self.0.ended();
    }
}

impl Application for Client {
    fn poll_ready(&self, _: &mut Context<'_>) -> Poll<()> {
        match self.0.takes_more() {
            true => Poll::Ready(()),
            // Answers wait: they are sent before this is asked again.
            false => Poll::Pending,
        }
    }

    fn receive(&self, message: Message) {
        self.0.receive(&message.data);
    }

    fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Outgoing> {
        self.0.poll_next(cx).map(|output| match output {
            Output::Text(frame) => Outgoing::Message(Message {
                binary: false,
                data: frame.text,
                shared: frame.shared,
            }),
            Output::Close(code, reason) => Outgoing::Close(Close { code, reason }),
        })
    }

    fn leave(&self) {
        self.0.leave();
    }

    fn finish(&self, close: Close) {
        self.0.finish(close.code);
    }

    fn ended(&self, _: Close) {
        self.0.ended();
    }
}

/// The body of the response that upgrades. `deflate`: the window of what is sent, in bits, if messages may be compressed.
pub(super) fn upgrade<B>(
    connection: Rc<Connection>,
    served: &Served,
    deflate: Option<u8>,
) -> Reply<B> {
    let largest = served.pushers.iter().map(|pusher| pusher.app.max_event);
    let bounds = Bounds {
        max_message: REST + 2 * largest.max().unwrap_or_default(),
        ping: served.ping.unwrap_or_default(),
        deflate,
    };
    let client = Client(connection);
    Reply::Upgrade(Upgrade::new(move |upgraded| async move {
        serve(upgraded, &client, bounds).await;
    }))
}
