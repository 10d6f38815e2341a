//! Why a connection or a message of a client is refused.

/// Codes of `pusher:error`, and of the frame that closes. After 4000 to 4099 clients do not connect again, after 4100 to 4199
/// after a while, after 4200 to 4299 at once; 4300 to 4399 refuse a message and close nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No application has this key.
    NoSuchApp,
    /// The application has as many connections as it may have.
    OverQuota,
    /// The text of the version is no number.
    NoVersionNumber,
    /// Another version of the protocol.
    OtherVersion,
    /// No version is given.
    NoVersion,
    /// Something is not signed, or a page of another site connects.
    Unauthorised,
    /// The client reads too slowly: what waits for it is dropped, and it may come again.
    TooSlow,
    /// The server ends, and another one has taken its place.
    Leaving,
    /// A client's event is refused.
    ClientEvent,
    /// A message that cannot be understood or followed. Has no code, and closes nothing.
    Message,
}

impl Fault {
    /// As Pusher documents it.
    pub(crate) fn code(self) -> Option<u16> {
        Some(match self {
            Fault::NoSuchApp => 4001,
            Fault::OverQuota => 4004,
            Fault::NoVersionNumber => 4006,
            Fault::OtherVersion => 4007,
            Fault::NoVersion => 4008,
            Fault::Unauthorised => 4009,
            Fault::TooSlow => 4100,
            Fault::Leaving => 4200,
            Fault::ClientEvent => 4301,
            Fault::Message => return None,
        })
    }

    /// For developers.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Fault::NoSuchApp => "Application does not exist",
            Fault::OverQuota => "Application is over connection quota",
            Fault::NoVersionNumber => "Invalid version string format",
            Fault::OtherVersion => {
                "Unsupported protocol version: this server speaks versions 5 to 7"
            }
            Fault::NoVersion => "No protocol version supplied",
            Fault::Unauthorised => "Connection is unauthorized",
            Fault::TooSlow => "The client reads too slowly",
            Fault::Leaving => "The server restarts",
            Fault::ClientEvent => "Client event rejected",
            Fault::Message => "Invalid message",
        }
    }
}
