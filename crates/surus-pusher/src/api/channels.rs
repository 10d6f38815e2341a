//! Who is there.

use serde_json::{json, Map, Value};

use super::request::Parameters;
use super::{Answer, Refusal};
use crate::front::Front;
use crate::names::{self, Kind};

/// What is asked about channels.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Info {
    users: bool,
    subscriptions: bool,
}

impl Info {
    /// A list with commas.
    pub(super) fn parse(list: &str) -> Result<Self, Refusal> {
        let mut info = Info::default();
        for name in list
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
        {
            match name {
                "user_count" => info.users = true,
                "subscription_count" => info.subscriptions = true,
                // Nothing is said about it.
                "cache" => {}
                other => {
                    let why =
                        format!("info: {other:?} is neither user_count nor subscription_count");
                    return Err(Refusal::new(400, why));
                }
            }
        }
        Ok(info)
    }

    pub(super) fn is_empty(self) -> bool {
        !self.users && !self.subscriptions
    }

    /// Whether it can be asked about a channel of this name.
    pub(super) fn is_for(self, channel: &str) -> bool {
        !self.users || names::kind(channel) == Some(Kind::Presence)
    }
}

fn info(parameters: &Parameters) -> Result<Info, Refusal> {
    Info::parse(parameters.get("info").map_or("", String::as_str))
}

/// What is asked about this channel.
pub(super) fn about(front: &Front, app: usize, channel: &str, info: Info) -> Value {
    let place = front.app(app).place(channel);
    let mut about = Map::new();
    if info.users {
        let users = front.hub().members(&place).len();
        about.insert("user_count".to_owned(), users.into());
    }
    if info.subscriptions {
        let count = front.hub().subscribers(&place);
        about.insert("subscription_count".to_owned(), count.into());
    }
    about.into()
}

/// `GET /apps/ID/channels`
pub(super) fn all(front: &Front, app: usize, parameters: &Parameters) -> Answer {
    let info = info(parameters)?;
    let prefix = parameters
        .get("filter_by_prefix")
        .map_or("", String::as_str);
    if info.users && !prefix.starts_with("presence-") {
        let why = "user_count needs filter_by_prefix=presence-";
        return Err(Refusal::new(400, why));
    }
    let own = &front.app(app).prefix;
    let occupied = front.hub().occupied(&[own, prefix].concat());
    // Others are not of this protocol.
    let channels = occupied.iter().filter_map(|(place, _)| {
        let channel = place.strip_prefix(&**own)?;
        names::kind(channel)?;
        Some((channel.to_owned(), about(front, app, channel, info)))
    });
    Ok(json!({"channels": channels.collect::<Map<String, Value>>()}))
}

/// `GET /apps/ID/channels/NAME`
pub(super) fn one(front: &Front, app: usize, name: &str, parameters: &Parameters) -> Answer {
    let info = info(parameters)?;
    if names::kind(name).is_none() {
        return Err(Refusal::new(
            400,
            format!("{name:?} is no name of a channel"),
        ));
    }
    if !info.is_for(name) {
        let why = "user_count is for presence channels only";
        return Err(Refusal::new(400, why));
    }
    let place = front.app(app).place(name);
    let mut about = about(front, app, name, info);
    about["occupied"] = (front.hub().subscribers(&place) > 0).into();
    Ok(about)
}

/// `GET /apps/ID/channels/NAME/users`
pub(super) fn users(front: &Front, app: usize, name: &str) -> Answer {
    if names::kind(name) != Some(Kind::Presence) {
        let why = "Only presence channels have users";
        return Err(Refusal::new(400, why));
    }
    let members = front.hub().members(&front.app(app).place(name));
    let users = members.iter().map(|member| json!({"id": member.id}));
    Ok(json!({"users": users.collect::<Vec<Value>>()}))
}
