//! WebSockets: requests that stay, and give their place among those in flight to others. They end with their version.

use std::{rc::Rc, time::Duration};

use super::{App, Version};
use crate::exchange::Exchange;

/// So many are told at a time, with pauses: their clients come again at once.
const AT_A_TIME: usize = 50;
const PAUSE: Duration = Duration::from_millis(20);

/// The server restarts: the client may come back at once (IANA, "WebSocket Close Code Number").
const RESTART: u16 = 1012;

impl App {
    /// Its client has got an answer: if that has made the request a WebSocket, others may come.
    pub(super) fn begin_websocket(self: &Rc<Self>, version: &Version, exchange: &Rc<Exchange>) {
        let conversation = exchange.conversation.socket().cloned();
        let Some(socket) = conversation.or_else(|| exchange.websocket()) else {
            return;
        };
        if exchange.gave_up_place.replace(true) {
            return;
        }
        self.websockets.set(self.websockets.get() + 1);
        self.leave();
        let mut websockets = version.websockets.borrow_mut();
        websockets.insert(Rc::as_ptr(exchange), exchange.clone());
        drop(websockets);
        if version.retired.get() {
            socket.close_by_server(RESTART);
        }
    }
}

impl Version {
    /// The request is done.
    pub(super) fn forget_websocket(&self, exchange: &Rc<Exchange>) {
        if exchange.gave_up_place.get() {
            self.websockets.borrow_mut().remove(&Rc::as_ptr(exchange));
        }
    }

    /// No new requests come: clients are told to connect again.
    pub(super) fn end_websockets(&self) {
        let sockets: Vec<_> = {
            let requests = self.websockets.borrow();
            requests.values().filter_map(|it| it.websocket()).collect()
        };
        if sockets.is_empty() {
            return;
        }
        tokio::task::spawn_local(async move {
            for some in sockets.chunks(AT_A_TIME) {
                for socket in some {
                    socket.close_by_server(RESTART);
                }
                tokio::time::sleep(PAUSE).await;
            }
        });
    }
}
