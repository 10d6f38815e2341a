//! Messages to clients.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;
use surus_channels::Member;

use crate::event::{Frame, SocketId};
use crate::fault::Fault;
use crate::names::OF_CLIENT;

/// Seconds of silence after which a client asks whether the server is still there.
const ACTIVITY_TIMEOUT: u64 = 120;

#[derive(Serialize)]
struct Message<'a, D: Serialize> {
    event: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: Option<&'a str>,
    data: D,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<&'a str>,
}

fn message(event: &str, channel: Option<&str>, data: impl Serialize) -> Vec<u8> {
    let message = Message {
        event,
        channel,
        data,
        user_id: None,
    };
    // Texts, numbers, and maps of them always serialise.
    serde_json::to_vec(&message).unwrap_or_default()
}

pub(crate) fn established(socket: SocketId) -> Frame {
    let data = json!({"socket_id": socket.to_string(), "activity_timeout": ACTIVITY_TIMEOUT});
    Frame::one(message(
        "pusher:connection_established",
        None,
        data.to_string(),
    ))
}

pub(crate) fn pong() -> Frame {
    Frame::one(message("pusher:pong", None, "{}"))
}

/// `why`: for developers, in place of the general text.
pub(crate) fn error(fault: Fault, why: Option<&str>) -> Frame {
    let text = why.unwrap_or_else(|| fault.text());
    let data = json!({"message": text, "code": fault.code()});
    Frame::one(message("pusher:error", None, data))
}

/// With the members, if it is a presence channel.
pub(crate) fn subscribed(channel: &str, members: Option<&[Member]>) -> Frame {
    let data = match members {
        None => "{}".to_owned(),
        Some(members) => text(&Members {
            presence: Presence {
                count: members.len(),
                ids: members.iter().map(|member| &*member.id).collect(),
                hash: members.iter().map(|each| (&*each.id, info(each))).collect(),
            },
        }),
    };
    let event = "pusher_internal:subscription_succeeded";
    Frame::one(message(event, Some(channel), data))
}

#[derive(Serialize)]
struct Members<'a> {
    presence: Presence<'a>,
}

#[derive(Serialize)]
struct Presence<'a> {
    count: usize,
    ids: Vec<&'a str>,
    hash: BTreeMap<&'a str, Option<&'a RawValue>>,
}

fn text(data: &impl Serialize) -> String {
    // As above.
    serde_json::to_string(data).unwrap_or_default()
}

/// What is no JSON is null: PHP may say anything about a member.
fn info(member: &Member) -> Option<&RawValue> {
    serde_json::from_slice(&member.info).ok()
}

/// The kinds of `pusher:subscription_error`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The signature is missing or wrong.
    Auth,
    /// The channel cannot be subscribed to.
    Channel,
    /// The connection has as many channels as it may have.
    Limit,
}

pub(crate) fn refused(channel: &str, refused: Refused, why: &str) -> Frame {
    let (kind, status) = match refused {
        Refused::Auth => ("AuthError", 401),
        Refused::Channel => ("ChannelError", 400),
        Refused::Limit => ("LimitReached", 413),
    };
    let data = json!({"type": kind, "error": why, "status": status});
    Frame::one(message("pusher:subscription_error", Some(channel), data))
}

pub(crate) fn cache_miss(channel: &str) -> Frame {
    Frame::one(message("pusher:cache_miss", Some(channel), "{}"))
}

pub(crate) fn signed_in(user_data: &str) -> Frame {
    let data = json!({"user_data": user_data});
    Frame::one(message("pusher:signin_success", None, data.to_string()))
}

pub(crate) fn member_added(channel: &str, member: &Member) -> Frame {
    #[derive(Serialize)]
    struct Added<'a> {
        user_id: &'a str,
        user_info: Option<&'a RawValue>,
    }
    let data = text(&Added {
        user_id: &member.id,
        user_info: info(member),
    });
    let event = "pusher_internal:member_added";
    Frame::many(message(event, Some(channel), data))
}

pub(crate) fn member_removed(channel: &str, id: &str) -> Frame {
    let data = json!({"user_id": id});
    let event = "pusher_internal:member_removed";
    Frame::many(message(event, Some(channel), data.to_string()))
}

/// The name of an event that has none.
const NAMELESS: &str = "message";

/// Clients get data as a text; that of clients' events as the JSON that it is.
pub(crate) fn event(channel: &str, name: &str, data: &str, user: Option<&str>) -> Frame {
    let of_client = match name.starts_with(OF_CLIENT) {
        true => serde_json::from_str::<&RawValue>(data).ok(),
        false => None,
    };
    let data = match of_client {
        Some(json) => Data::Json(json),
        None => Data::Text(data),
    };
    let message = Message {
        event: if name.is_empty() { NAMELESS } else { name },
        channel: Some(channel),
        data,
        user_id: user,
    };
    // As above.
    Frame::many(serde_json::to_vec(&message).unwrap_or_default())
}

#[derive(Serialize)]
#[serde(untagged)]
enum Data<'a> {
    Text(&'a str),
    Json(&'a RawValue),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(frame: &Frame) -> &str {
        std::str::from_utf8(&frame.text).unwrap()
    }

    /// The event, and its data: the order of members in JSON is not given.
    fn data_of(frame: &Frame) -> (String, serde_json::Value) {
        let message: serde_json::Value = serde_json::from_str(sent(frame)).unwrap();
        let data = message["data"].as_str().unwrap();
        let event = message["event"].as_str().unwrap();
        (event.to_owned(), serde_json::from_str(data).unwrap())
    }

    #[test]
    fn messages_are_those_of_the_protocol() {
        let socket = SocketId::parse("1.2").unwrap();
        let (event_name, data) = data_of(&established(socket));
        assert_eq!(event_name, "pusher:connection_established");
        assert_eq!(
            data,
            serde_json::json!({"socket_id": "1.2", "activity_timeout": 120})
        );
        let member = crate::incoming::member(r#"{"user_id":1,"user_info":{"a":"b"}}"#).unwrap();
        let (event_name, data) = data_of(&subscribed(
            "presence-a",
            Some(std::slice::from_ref(&member)),
        ));
        assert_eq!(event_name, "pusher_internal:subscription_succeeded");
        assert_eq!(
            data,
            serde_json::json!({"presence": {"count": 1, "ids": ["1"], "hash": {"1": {"a": "b"}}}})
        );
        let message: serde_json::Value =
            serde_json::from_str(sent(&error(Fault::NoSuchApp, None))).unwrap();
        assert_eq!(message["event"], "pusher:error");
        assert_eq!(
            message["data"],
            serde_json::json!({"code": 4001, "message": "Application does not exist"})
        );
        assert_eq!(
            sent(&event(
                "presence-a",
                "client-a",
                r#"{"b": 1.50}"#,
                Some("1")
            )),
            r#"{"event":"client-a","channel":"presence-a","data":{"b": 1.50},"user_id":"1"}"#
        );
        assert_eq!(
            sent(&event("a", "", r#"{"b":1}"#, None)),
            r#"{"event":"message","channel":"a","data":"{\"b\":1}"}"#
        );
    }
}
