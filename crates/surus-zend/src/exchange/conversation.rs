//! A WebSocket whose handler has no fiber between two events.

use std::{
    cell::{Cell, OnceCell},
    rc::Rc,
};

use crate::body::websocket::{events::Event, WebSocket};

#[derive(Debug, Default)]
pub(crate) struct Conversation {
    socket: OnceCell<Rc<WebSocket>>,
    event: Cell<Event>,
    /// PHP has been entered because of it.
    begun: Cell<bool>,
}

impl Conversation {
    /// From now on the handler is called for each event. False: it is already.
    pub(crate) fn begin(&self, socket: Rc<WebSocket>) -> bool {
        self.socket.set(socket).is_ok()
    }

    /// `None`: the request is none.
    pub(crate) fn socket(&self) -> Option<&Rc<WebSocket>> {
        self.socket.get()
    }

    /// The next fiber is for this.
    pub(crate) fn expect(&self, event: Event) {
        self.event.set(event);
        self.begun.set(false);
    }

    /// What this fiber is for.
    pub(crate) fn enter(&self) -> Event {
        self.begun.set(true);
        self.event.get()
    }

    /// Whether the last fiber that was to be for something has got there.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun.get()
    }
}
