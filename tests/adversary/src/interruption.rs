//! The columns of the table: what happens to requests, to the servers that they talk to, and beside them.

use crate::proxy::Weather;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Interruption {
    Nothing,
    /// The client leaves.
    Client,
    /// The request has too little time.
    Deadline,
    /// The servers end the connections of single users (`pg_terminate_backend`, `KILL`, `CLIENT KILL`).
    BackendKill,
    /// The servers are gone for a moment, and come back without any connection.
    ServerKill,
    /// Connections are reset in the middle of a packet.
    Reset,
    /// Answers come byte by byte.
    SlowPeer,
    Exit,
    Exception,
    Fatal,
    Memory,
    /// 1,100 clients are connected and idle: descriptors are high.
    HighDescriptors,
    /// 20 requests that fail, wait and compute all the time.
    Neighbours,
    /// The log goes to a full disk.
    FullDisk,
    /// The code is reloaded, again and again.
    Reload,
    /// SIGTERM while requests are in flight.
    Stop,
}

impl Interruption {
    pub(crate) const ALL: [Interruption; 16] = [
        Self::Nothing,
        Self::Client,
        Self::Deadline,
        Self::BackendKill,
        Self::ServerKill,
        Self::Reset,
        Self::SlowPeer,
        Self::Exit,
        Self::Exception,
        Self::Fatal,
        Self::Memory,
        Self::HighDescriptors,
        Self::Neighbours,
        Self::FullDisk,
        Self::Reload,
        Self::Stop,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Client => "client",
            Self::Deadline => "deadline",
            Self::BackendKill => "backend-kill",
            Self::ServerKill => "server-kill",
            Self::Reset => "reset",
            Self::SlowPeer => "slow-peer",
            Self::Exit => "exit",
            Self::Exception => "exception",
            Self::Fatal => "fatal",
            Self::Memory => "memory",
            Self::HighDescriptors => "high-descriptors",
            Self::Neighbours => "neighbours",
            Self::FullDisk => "full-disk",
            Self::Reload => "reload",
            Self::Stop => "stop",
        }
    }

    pub(crate) fn weather(self) -> Weather {
        match self {
            Self::Reset => Weather::Breaking,
            Self::SlowPeer => Weather::Dripping,
            _ => Weather::Choppy,
        }
    }

    /// Servers or their connections go away: whoever uses one then may fail, and says so.
    pub(crate) fn breaks_connections(self) -> bool {
        matches!(self, Self::BackendKill | Self::ServerKill | Self::Reset)
    }

    /// How the script ends itself, where it does.
    pub(crate) fn ends(self) -> &'static [&'static str] {
        match self {
            Self::Exit => &["exit"],
            Self::Exception => &["exception"],
            Self::Fatal => &["fatal"],
            Self::Memory => &["memory"],
            // Each of them has lines to log.
            Self::FullDisk => &["exception", "fatal"],
            _ => &[],
        }
    }

    /// How many of hundred clients leave before their answer.
    pub(crate) fn leaving(self) -> u64 {
        match self {
            Self::Client => 70,
            Self::Nothing | Self::Deadline | Self::Stop => 0,
            _ => 15,
        }
    }

    /// It needs a server of its own.
    pub(crate) fn needs_its_own_server(self) -> bool {
        matches!(self, Self::Deadline | Self::FullDisk)
    }
}
