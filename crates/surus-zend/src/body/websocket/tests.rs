use super::queue::{HIGH_WATER, INBOUND, OUTBOUND, TOGETHER};
use super::*;

fn text(text: &str) -> SocketMessage {
    SocketMessage {
        binary: false,
        data: Bytes::copy_from_slice(text.as_bytes()),
        shared: None,
    }
}

fn close(code: u16) -> SocketClose {
    SocketClose {
        code,
        reason: String::new(),
    }
}

#[test]
fn what_came_before_the_end_is_received() {
    let cx = &mut Context::from_waker(Waker::noop());
    let socket = WebSocket::new(100, None, || {});
    assert!(socket.poll_receive(cx).is_pending());
    socket.receive(text("a"));
    socket.ended(close(1001));
    assert!(!socket.send(text("late")));
    socket.receive(text("late"));
    let first = Received::Message(text("a"));
    assert_eq!(socket.poll_receive(cx), Poll::Ready(first));
    assert_eq!(socket.poll_receive(cx), Poll::Ready(Received::End));
    socket.ended(close(1006));
    assert_eq!(socket.end(), Some(close(1001)));
}

#[test]
fn what_was_sent_before_the_end_is_sent() {
    let cx = &mut Context::from_waker(Waker::noop());
    let socket = WebSocket::new(100, None, || {});
    socket.receive(text("unread"));
    assert!(socket.send(text("b")));
    socket.close(close(3000));
    assert_eq!(socket.poll_receive(cx), Poll::Ready(Received::End));
    socket.close_by_server(1001);
    let next = |cx: &mut Context<'_>| match socket.poll_next(cx) {
        Poll::Ready(SocketOutput::Message(message)) => Ok(message),
        Poll::Ready(SocketOutput::Close(close)) => Err(Some(close.code)),
        Poll::Pending => Err(None),
    };
    assert_eq!(next(cx), Ok(text("b")));
    assert_eq!(next(cx), Err(Some(3000)));
    assert_eq!(next(cx), Err(None));
}

#[test]
fn what_came_before_the_client_has_closed_is_answered() {
    let cx = &mut Context::from_waker(Waker::noop());
    let socket = WebSocket::new(100, None, || {});
    socket.receive(text("a"));
    socket.finish(close(1000));
    assert!(matches!(socket.try_receive(), Some(Received::Message(_))));
    assert!(socket.send(text("b")));
    assert_eq!(socket.try_receive(), Some(Received::End));
    assert!(!socket.send(text("c")));
    assert!(matches!(
        socket.poll_next(cx),
        Poll::Ready(SocketOutput::Message(_))
    ));
    assert!(matches!(
        socket.poll_next(cx),
        Poll::Ready(SocketOutput::Close(_))
    ));
    assert_eq!(socket.end(), Some(close(1000)));
}

#[test]
fn both_ways_are_bounded() {
    let cx = &mut Context::from_waker(Waker::noop());
    let socket = WebSocket::new(HIGH_WATER, None, || {});
    let long = text(&"x".repeat(HIGH_WATER));
    assert!(socket.poll_ready(cx).is_ready() && socket.poll_room(cx).is_ready());
    socket.receive(long.clone());
    socket.send(long.clone());
    assert!(socket.poll_ready(cx).is_pending() && socket.poll_room(cx).is_pending());
    assert!(socket.poll_receive(cx).is_ready() && socket.poll_next(cx).is_ready());
    assert!(socket.poll_ready(cx).is_ready() && socket.poll_room(cx).is_ready());
}

#[test]
fn all_together_are_bounded() {
    let cx = &mut Context::from_waker(Waker::noop());
    let [one, other] = [(); 2].map(|()| WebSocket::new(TOGETHER, None, || {}));
    let long = text(&"x".repeat(TOGETHER));
    one.receive(long.clone());
    assert!(other.poll_ready(cx).is_pending(), "although it has none");
    assert!(one.try_receive().is_some());
    assert!(other.poll_ready(cx).is_ready());
    one.send(long.clone());
    assert!(!other.is_full(), "it may send one");
    other.send(text("a"));
    assert!(other.is_full());
    assert!(other.poll_next(cx).is_ready());
    assert!(!other.is_full());
    one.receive(long);
    drop(one);
    assert!(other.poll_ready(cx).is_ready());
    for total in [&INBOUND, &OUTBOUND] {
        assert_eq!(total.with(|total| total.bytes.get()), 0);
    }
}

#[test]
fn who_waits_for_room_is_woken_although_others_have_made_it() {
    struct Count(std::sync::atomic::AtomicUsize);
    impl std::task::Wake for Count {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let woken = std::sync::Arc::new(Count(0.into()));
    let waker = Waker::from(woken.clone());
    let cx = &mut Context::from_waker(&waker);
    let server = &mut Context::from_waker(Waker::noop());
    let [one, other] = [(); 2].map(|()| WebSocket::new(TOGETHER, None, || {}));
    one.send(text(&"x".repeat(TOGETHER)));
    other.send(text("a"));
    assert!(other.poll_room(cx).is_pending());
    assert!(one.poll_next(server).is_ready());
    assert_eq!(woken.0.load(Ordering::Relaxed), 0, "it has one that waits");
    assert!(other.poll_next(server).is_ready());
    assert_eq!(woken.0.load(Ordering::Relaxed), 1);
    assert!(other.poll_room(cx).is_ready());
}

#[test]
fn it_is_found_as_long_as_somebody_has_it() {
    let before = socket_counts().open;
    let socket = WebSocket::new(100, None, || {});
    let number = socket.number();
    assert!(WebSocket::find(number).is_some());
    assert_eq!(socket_counts().open, before + 1);
    drop(socket);
    assert!(WebSocket::find(number).is_none());
    assert_eq!(socket_counts().open, before);
}
