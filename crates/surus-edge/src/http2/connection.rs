//! The streams of one connection.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{ready, Context, Poll};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{Method, Request};
use tokio::task::spawn_local;

use super::received::Received;
use super::respond::Respond;
use super::socket::Stream;
use super::stream::Answering;
use super::tunnel::{self, Counted, Tunnel, Tunnels};
use super::{CONNECTION_WINDOW, STREAM_WINDOW};
use crate::request::service::Service;
use crate::{Backend, Connection, RequestBody};

/// Answers requests until the connection ends.
pub(crate) struct Serving<B: Backend> {
    connection: h2::server::Connection<Stream, Bytes>,
    service: Service<B>,
    tunnels: Rc<Tunnels>,
    /// For so many of them the connection's window has room.
    roomy: u32,
    /// Other tasks have their turn until this completes.
    pass: Option<Pin<Box<dyn Future<Output = ()>>>>,
}

impl<B: Backend> Serving<B> {
    pub(crate) fn new(
        connection: h2::server::Connection<Stream, Bytes>,
        service: Service<B>,
    ) -> Self {
        Serving {
            connection,
            service,
            tunnels: Rc::default(),
            roomy: 0,
            pass: None,
        }
    }

    /// Accepts no more streams, and completes when the open ones have ended.
    pub(crate) fn finish(&mut self) {
        self.connection.graceful_shutdown();
        self.tunnels.finish();
    }

    fn begin(
        &self,
        request: Request<RecvStream>,
        mut respond: SendResponse<Bytes>,
        cx: &mut Context<'_>,
    ) {
        let state = self.service.state();
        let (mut head, received) = request.into_parts();
        let mut counted = None;
        if tunnel::is_asked_for(&mut head) {
            counted = Counted::begin(self.service.limits().connections, || self.service.admit());
            if counted.is_none() {
                // The client may try again.
                return respond.send_reset(Reason::REFUSED_STREAM);
            }
        }
        let respond = Respond::new(respond);
        let client = Connection {
            interim: Some(respond.interim()),
            ..state.client().clone()
        };
        let (mut body, mut verdict) = (None, None);
        let mut tunnel = None;
        if let Some(counted) = counted {
            tunnel = Some(Tunnel {
                counted,
                receive: received,
                connection: Rc::clone(state),
                allowance: self.service.limits().to_take(),
                all: Rc::clone(&self.tunnels),
            });
        } else if !received.is_end_stream() {
            let received = Received::new(received, &head.headers, &respond, state);
            let (watched, fate) = RequestBody::watched(received, self.service.limits());
            (body, verdict) = (Some(watched), Some(fate));
        }
        let is_head = head.method == Method::HEAD;
        let (mut noted, begun) = self.service.begin(&client, &mut head, body, verdict);
        noted.may_upgrade = tunnel.is_some();
        let responding = self.service.respond(noted, begun);
        let mut stream =
            Answering::new(respond, responding, tunnel, is_head, self.service.limits());
        if Pin::new(&mut stream).poll(cx).is_pending() {
            spawn_local(stream);
        }
    }
}

impl<B: Backend> Future for Serving<B> {
    type Output = Result<(), h2::Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let state = Rc::clone(this.service.state());
        loop {
            if let Some(pass) = &mut this.pass {
                ready!(pass.as_mut().poll(cx));
                this.pass = None;
            }
            // What waits for the handlers of some of them must not take the window of the others.
            let open = this.tunnels.open();
            if this.roomy != open {
                this.roomy = open;
                let window = CONNECTION_WINDOW + open * STREAM_WINDOW;
                this.connection.set_target_window_size(window);
            }
            let accepted = this.connection.poll_accept(cx);
            let Poll::Ready(Some(Ok((request, respond)))) = accepted else {
                state.turn.begin();
                this.service.count();
                return accepted.map(|end| end.map_or(Ok(()), |error| error.map(|_| ())));
            };
            this.begin(request, respond, cx);
            if state.turn.is_over() {
                this.service.count();
                // Lets `h2` write the responses so far. If the connection has ended, the next poll finds that again.
                let _ = this.connection.poll_closed(cx);
                let state = Rc::clone(&state);
                this.pass = Some(Box::pin(async move { state.turn.pass().await }));
            }
        }
    }
}
