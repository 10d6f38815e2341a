//! Channels for PHP: `csrc/app/channels.c`.

use std::{
    cell::{Cell, RefCell},
    ffi::{c_int, c_void},
    future::poll_fn,
    rc::Rc,
};

use bytes::Bytes;
use surus_channels::{is_name, HistoryError, Member, Position, Publication, Recovery, Refused};
use tokio::task::yield_now;

use super::exchange;
use crate::{
    blocking::{can_park, park_on},
    body::{
        event_stream::{Since, Wanted, MOST_CHANNELS},
        websocket::{are_possible, NoSubscription, WebSocket},
    },
    ffi::{self, Str},
    shared::channels::channels,
};

/// Bytes that are published before the event loop has a turn.
const TURN: usize = 256 * 1024;

thread_local! {
    /// Bytes, since the event loop had a turn to send them.
    static PUBLISHED: Cell<usize> = const { Cell::new(0) };
    /// What C copies before it calls again.
    static TEXT: RefCell<String> = const { RefCell::new(String::new()) };
    static MEMBERS: RefCell<Vec<Member>> = const { RefCell::new(Vec::new()) };
    static KEPT: RefCell<Vec<Rc<Publication>>> = const { RefCell::new(Vec::new()) };
}

fn outcome(why: Refused) -> c_int {
    match why {
        Refused::Name => ffi::CHANNEL_NAME,
        Refused::TooLarge => ffi::CHANNEL_TOO_LARGE,
        Refused::History(HistoryError::None) => ffi::CHANNEL_NO_MEMORY,
        Refused::History(HistoryError::Unavailable) => ffi::CHANNEL_UNAVAILABLE,
    }
}

fn not_subscribed(why: NoSubscription) -> c_int {
    match why {
        NoSubscription::Over => ffi::CHANNEL_OVER,
        NoSubscription::TooMany => ffi::CHANNEL_TOO_MANY,
        NoSubscription::Refused(why) => outcome(why),
    }
}

/// # Safety
/// The text lives as long as the result.
unsafe fn text<'a>(text: Str) -> Option<&'a str> {
    // SAFETY: the caller's promise.
    std::str::from_utf8(unsafe { text.bytes() }).ok()
}

/// # Safety
/// `to` is writable.
unsafe fn give(position: Option<Position>, to: *mut Str) {
    TEXT.with_borrow_mut(|text| {
        *text = position.map_or_else(String::new, |position| position.to_string());
        // SAFETY: the caller's promise. The text stays until the next call.
        unsafe { to.write(Str::new(text.as_bytes())) };
    });
}

/// Where the channel is for all servers that share it, if they can be asked.
fn fetch(channel: &str) {
    if let Some(hub) = channels().filter(|hub| hub.is_shared(channel) && can_park()) {
        let _ = park_on(hub.fetch(channel));
    }
}

/// What a client says of itself: it may say anything.
fn since(text: Option<&str>) -> Since {
    match text {
        Some("" | "-") => Since::Now,
        Some(text) => text.parse().map_or(Since::Unknown, Since::At),
        None => Since::Unknown,
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_channel_publish(
    channel: Str,
    message: *const ffi::Message,
    position: *mut Str,
) -> c_int {
    // SAFETY: C passes a message; its texts live for this call.
    let message = unsafe { &*message };
    // SAFETY: as above.
    let [channel, event, except] =
        [channel, message.event, message.except].map(|name| unsafe { text(name) });
    // SAFETY: as above.
    let data = unsafe { message.data.bytes() };
    let (Some(channel), Some(event), Some(except)) = (channel, event, except) else {
        return ffi::CHANNEL_NAME;
    };
    let binary = message.is_binary;
    if !binary && std::str::from_utf8(data).is_err() {
        return ffi::CHANNEL_NOT_TEXT;
    }
    let Some(hub) = channels() else {
        return ffi::CHANNEL_NO_SERVER;
    };
    let message = surus_channels::Message {
        event: event.into(),
        data: Bytes::copy_from_slice(data),
        binary,
        except: except.into(),
    };
    let published = if hub.is_shared(channel) {
        if !can_park() {
            return ffi::CHANNEL_UNAVAILABLE;
        }
        // Cut off: it may have been published.
        let published = park_on(hub.publish_and_wait(channel, message));
        published.unwrap_or(Err(Refused::History(HistoryError::Unavailable)))
    } else {
        hub.publish(channel, message)
    };
    let at = match published {
        Ok(at) => at,
        Err(why) => return outcome(why),
    };
    let published = PUBLISHED.get() + data.len();
    PUBLISHED.set(published);
    if published > TURN && can_park() {
        PUBLISHED.set(0);
        // The event loop sends while PHP is parked: let it have a turn.
        let _ = park_on(yield_now());
    }
    // Last: while it is parked, others give theirs. SAFETY: it is writable.
    unsafe { give(at, position) };
    ffi::CHANNEL_DONE
}

#[no_mangle]
unsafe extern "C" fn surus_rs_channel_members(channel: Str, count: *mut usize) -> c_int {
    if !are_possible() {
        return ffi::CHANNEL_ELSEWHERE;
    }
    let Some(hub) = channels() else {
        return ffi::CHANNEL_NO_SERVER;
    };
    // SAFETY: the text lives for this call.
    let Some(channel) = (unsafe { text(channel) }) else {
        return ffi::CHANNEL_NAME;
    };
    let members = hub.members(channel);
    // SAFETY: it is writable.
    unsafe { count.write(members.len()) };
    MEMBERS.set(members);
    ffi::CHANNEL_DONE
}

#[no_mangle]
unsafe extern "C" fn surus_rs_channel_member(i: usize, id: *mut Str, info: *mut Str) {
    MEMBERS.with_borrow(|members| {
        let (name, said) = members.get(i).map_or((&b""[..], &b""[..]), |member| {
            (member.id.as_bytes(), &member.info[..])
        });
        // SAFETY: both are writable. The texts stay until the list is another one.
        unsafe {
            id.write(Str::new(name));
            info.write(Str::new(said));
        }
    });
}

#[no_mangle]
unsafe extern "C" fn surus_rs_channel_history(
    channel: Str,
    after: Str,
    most: u64,
    count: *mut usize,
    newest: *mut Str,
) -> c_int {
    // SAFETY: the texts live for this call.
    let (channel, after) = unsafe { (text(channel), text(after)) };
    let Some(channel) = channel else {
        return ffi::CHANNEL_NAME;
    };
    let Some(hub) = channels() else {
        return ffi::CHANNEL_NO_SERVER;
    };
    let after = match since(after) {
        Since::Now => None,
        Since::At(position) => Some(position),
        Since::Unknown => return ffi::CHANNEL_MISSED,
    };
    fetch(channel);
    match hub.history(channel, after, most) {
        Ok(Some((at, kept))) => {
            // SAFETY: both are writable.
            unsafe {
                count.write(kept.len());
                give(Some(at), newest);
            }
            KEPT.set(kept);
            ffi::CHANNEL_DONE
        }
        Ok(None) => ffi::CHANNEL_MISSED,
        Err(why) => outcome(why),
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_channel_kept(
    i: usize,
    message: *mut ffi::Message,
    position: *mut Str,
) {
    KEPT.with_borrow(|kept| {
        let Some(publication) = kept.get(i) else {
            return;
        };
        // SAFETY: both are writable. The texts stay until the list is another one, or the next call.
        unsafe {
            message.write(ffi::Message {
                event: Str::new(publication.message.event.as_bytes()),
                data: Str::new(&publication.message.data),
                except: Str::new(publication.message.except.as_bytes()),
                is_binary: publication.message.binary,
            });
            give(publication.position, position);
        }
    });
}

#[no_mangle]
unsafe extern "C" fn surus_rs_channel_subscribers(channel: Str) -> usize {
    // SAFETY: the text lives for this call.
    let channel = unsafe { text(channel) };
    let hub = channels().filter(|_| are_possible());
    hub.zip(channel)
        .map_or(0, |(hub, channel)| hub.subscribers(channel))
}

#[no_mangle]
unsafe extern "C" fn surus_rs_channel_subscribe(
    number: u64,
    channel: Str,
    wanted: bool,
    after: Str,
) -> c_int {
    // SAFETY: the texts live for this call.
    let (channel, after) = unsafe { (text(channel), text(after)) };
    let Some(channel) = channel else {
        return ffi::CHANNEL_NAME;
    };
    let Some(socket) = WebSocket::find(number) else {
        return ffi::CHANNEL_OVER;
    };
    if !wanted {
        socket.unsubscribe(channel);
        return ffi::CHANNEL_DONE;
    }
    fetch(channel);
    let after = since(after);
    let mut subscribed = socket.subscribe(channel, after.position());
    while let Ok(Recovery {
        behind: true,
        position,
        ..
    }) = subscribed
    {
        if !can_park() || park_on(poll_fn(|cx| socket.poll_room(cx))).is_err() {
            return ffi::CHANNEL_OVER;
        }
        subscribed = socket.subscribe(channel, position);
    }
    match subscribed {
        Ok(recovery) if after != Since::Now && !recovery.recovered => ffi::CHANNEL_MISSED,
        Ok(_) => ffi::CHANNEL_DONE,
        Err(why) => not_subscribed(why),
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_channel_join(
    number: u64,
    channel: Str,
    member: Str,
    info: Str,
) -> c_int {
    // SAFETY: the texts live for this call.
    let (channel, member, info) = unsafe { (text(channel), text(member), info.bytes()) };
    let (Some(channel), Some(member)) = (channel, member) else {
        return ffi::CHANNEL_NAME;
    };
    let Some(socket) = WebSocket::find(number) else {
        return ffi::CHANNEL_OVER;
    };
    if member.is_empty() {
        socket.leave(channel);
        return ffi::CHANNEL_DONE;
    }
    let info = Bytes::copy_from_slice(info);
    let joined = socket.join(channel, member, &info);
    joined.map_or_else(not_subscribed, |()| ffi::CHANNEL_DONE)
}

#[no_mangle]
unsafe extern "C" fn surus_rs_channel_stream(
    raw: *mut c_void,
    channel: Str,
    after: Str,
    retry: i64,
) -> c_int {
    // SAFETY: C passes the running task's exchange; the texts live for this call.
    let (exchange, channel, after) = unsafe { (exchange(raw), text(channel), text(after)) };
    let Some(channel) = channel.filter(|name| is_name(name)) else {
        return ffi::CHANNEL_NAME;
    };
    if channels().is_none() {
        return ffi::CHANNEL_NO_SERVER;
    }
    let headers = exchange.headers.get();
    // A client that comes again: what it says counts more than what the application says of one that is new.
    let last = headers.get("last-event-id").map(|last| last.to_str());
    let place = exchange.place_of(channel);
    let after = match last {
        Some(Ok(last)) => last.split(',').nth(place).map(str::trim).or(Some("-")),
        Some(Err(_)) => None,
        None => after,
    };
    let wanted = Wanted {
        channel: channel.into(),
        since: since(after),
    };
    drop(headers);
    fetch(channel);
    match exchange.go_on_with(wanted, u32::try_from(retry).ok()) {
        None => ffi::CHANNEL_OVER,
        Some(count) if count > MOST_CHANNELS => ffi::CHANNEL_TOO_MANY,
        Some(_) => ffi::CHANNEL_DONE,
    }
}
