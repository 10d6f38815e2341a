//! What the server of an application is told: webhooks.

use serde::Serialize;

/// Something that has happened in a channel, as webhooks say it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Happened {
    /// The first one has subscribed.
    ChannelOccupied {
        /// As clients know it.
        channel: String,
    },
    /// The last one has unsubscribed.
    ChannelVacated {
        /// As clients know it.
        channel: String,
    },
    /// A member has come, with its first connection.
    MemberAdded {
        /// As clients know it.
        channel: String,
        /// The member.
        user_id: String,
    },
    /// A member has gone, with its last connection.
    MemberRemoved {
        /// As clients know it.
        channel: String,
        /// The member.
        user_id: String,
    },
    /// A client has sent an event to the others.
    ClientEvent {
        /// As clients know it.
        channel: String,
        /// Its name.
        event: String,
        /// JSON.
        data: String,
        /// Of the client.
        socket_id: String,
        /// Of a presence channel.
        #[serde(skip_serializing_if = "Option::is_none")]
        user_id: Option<String>,
    },
}

impl Happened {
    /// The names of all.
    pub const NAMES: [&'static str; 5] = [
        "channel_occupied",
        "channel_vacated",
        "member_added",
        "member_removed",
        "client_event",
    ];

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        let [occupied, vacated, added, removed, event] = Self::NAMES;
        match self {
            Happened::ChannelOccupied { .. } => occupied,
            Happened::ChannelVacated { .. } => vacated,
            Happened::MemberAdded { .. } => added,
            Happened::MemberRemoved { .. } => removed,
            Happened::ClientEvent { .. } => event,
        }
    }

    /// Whether this worker alone knows of it. Of the rest, all workers do.
    #[must_use]
    pub fn is_here_only(&self) -> bool {
        matches!(self, Happened::ClientEvent { .. })
    }
}

/// Who passes it on.
pub trait Reporter {
    /// Something has happened in a channel of this application. Waits for nobody.
    fn report(&self, app: usize, happened: Happened);
}

impl std::fmt::Debug for dyn Reporter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reporter")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_json() {
        let (channel, user_id) = (String::new, String::new);
        let all = [
            Happened::ChannelOccupied { channel: channel() },
            Happened::ChannelVacated { channel: channel() },
            Happened::MemberAdded {
                channel: channel(),
                user_id: user_id(),
            },
            Happened::MemberRemoved {
                channel: channel(),
                user_id: user_id(),
            },
            Happened::ClientEvent {
                channel: channel(),
                event: String::new(),
                data: String::new(),
                socket_id: String::new(),
                user_id: None,
            },
        ];
        for (happened, name) in all.iter().zip(Happened::NAMES) {
            assert_eq!(happened.name(), name);
            let json = serde_json::to_value(happened).unwrap();
            assert_eq!(json["name"], name);
        }
    }
}
