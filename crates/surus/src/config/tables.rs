//! The tables of surus.toml as they are written: every key optional. The same tables hold what the environment and the
//! flags say (`layers.rs`), so that one rule merges them: the upper one wins, key by key.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::list::{List, Listen};
use super::units::{Memory, Mode, PerAddress, Size, Span, Workers};

/// A table whose keys are known by name.
pub(crate) trait Keys {
    const KEYS: &'static [&'static str];
}

macro_rules! table {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, Deserialize, Serialize)]
        #[serde(deny_unknown_fields, default)]
        pub(crate) struct $name {
            $($(#[$field_doc])* #[serde(skip_serializing_if = "Option::is_none")] pub(crate) $field: Option<$type>,)*
        }

        impl Keys for $name {
            const KEYS: &'static [&'static str] = &[$(stringify!($field)),*];
        }

        impl $name {
            /// `self`, and from `below` what it leaves open.
            pub(crate) fn over(self, below: Self) -> Self {
                $name { $($field: self.$field.or(below.$field),)* }
            }
        }
    };
}

table! {
    /// `[server]`
    Server {
        listen: Listen,
        workers: Workers,
        access_log: Log,
        /// Where its lines go; else to standard output.
        access_log_file: PathBuf,
        /// Where the log goes; else to standard error.
        error_log: PathBuf,
        /// Addresses and networks of proxies whose Forwarded and X-Forwarded-* count.
        trusted_proxies: List<String>,
        /// The header in which they say who the client is.
        forwarded: SaidIn,
        /// Connections begin with a header of the PROXY protocol.
        proxy_protocol: bool,
        /// X-Request-Id and traceparent.
        request_ids: bool,
        /// Paths that are answered without PHP.
        liveness: String,
        readiness: String,
        /// Compressing responses for clients that take it.
        compression: bool,
        /// Long static files are sent by the kernel: sendfile(2).
        zero_copy: bool,
        /// Client connections per worker.
        max_connections: usize,
        /// The same from one address; zero: no limit.
        max_connections_per_address: PerAddress,
        /// Request line and headers.
        max_header: Size,
        /// Number of headers.
        max_headers: usize,
        /// From the first byte of a request to the end of its headers.
        header_timeout: Span,
        /// Waiting for a request's body.
        body_timeout: Span,
        /// Waiting for a client that does not read.
        write_timeout: Span,
        /// Bytes that give a client a second more than these two.
        min_rate: Size,
        /// Between the requests of a connection.
        keep_alive: Span,
        /// For requests in flight when the server is stopped.
        drain_timeout: Span,
        /// For a new version to boot in a reload.
        boot_timeout: Span,
        /// Who workers run as, where the master is root; the group is the user's own unless it is given.
        user: String,
        group: String,
        /// Where metrics, the status as JSON and the dashboard are served: an address, or a port on 127.0.0.1.
        admin: String,
        /// What clients of `admin` have to show: as a bearer's, or as a password.
        admin_token: String,
        /// A worker whose event loop stands still for longer is killed; 0 never.
        watchdog: Span,
        /// Workers are replaced after so many requests,
        max_requests: u64,
        /// with so much resident memory,
        max_memory: Size,
        /// or after so long; 0 never.
        max_age: Span,
        /// The socket for `surus status` and its like.
        control: PathBuf,
    }
}

table! {
    /// `[app.NAME]`
    App {
        mode: Mode,
        script: PathBuf,
        root: PathBuf,
        /// Processes for PHP, each with one request at a time.
        processes: usize,
        /// What `SERVER_NAME` is for PHP.
        server_name: String,
        /// Names that requests may be for.
        allowed_hosts: List<String>,
        max_requests_in_flight: usize,
        /// Requests that wait for their turn.
        max_queue: usize,
        /// How long they wait.
        queue_timeout: Span,
        request_timeout: Span,
        slow_log: Span,
        preempt_after: Span,
        preempt_fibers: bool,
        memory_limit: Memory,
        /// Memory of the cache that all workers share (`Surus\Cache\SharedCache`); 0 for none.
        shared_cache: Size,
        max_body: Size,
        /// Memory for request bodies that are being read, per worker; more go to files.
        body_memory: Size,
        /// Files of request bodies, per worker.
        body_disk: Size,
        /// Memory for responses that wait for slow clients, per worker; more go to files.
        response_memory: Size,
        /// Files of responses that wait for slow clients, per worker.
        response_disk: Size,
        /// Where both are.
        spool_folder: PathBuf,
        /// Folders of which PHP may have files sent with an X-Sendfile header.
        sendfile: List<PathBuf>,
        /// Files that a coroutine application has served without PHP.
        public: PathBuf,
        /// Names and paths of files that are not served, beside those that never are unless they stand here with a `!`.
        hidden: List<String>,
        isolates: Isolates,
    }
}

table! {
    /// `isolates = { min, max, idle, max_requests, max_memory, max_age }`
    Isolates {
        min: usize,
        max: usize,
        idle: Span,
        /// An isolate is replaced after so many requests,
        max_requests: u64,
        /// with so much memory of PHP's,
        max_memory: Size,
        /// or after so long; 0 never.
        max_age: Span,
    }
}

/// Where proxies say who the client is.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SaidIn {
    XForwarded,
    Forwarded,
    None,
}

/// Whether and how requests are logged. `true`: for eyes on a terminal, else as JSON.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(
    untagged,
    expecting = "expected true, false, \"text\", \"json\", \"common\" or \"combined\" (a path is access_log_file's)"
)]
pub(crate) enum Log {
    Switch(bool),
    As(LogAs),
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogAs {
    Text,
    Json,
    Common,
    Combined,
}

/// `[[route]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Route {
    #[serde(rename = "path")]
    pub(crate) _path: String,
    #[serde(rename = "to")]
    pub(crate) _to: String,
}

/// The value of an ini setting under `[php]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged, expecting = "expected a string, a number or a boolean")]
pub(crate) enum IniValue {
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
}

impl IniValue {
    pub(crate) fn into_text(self) -> String {
        match self {
            IniValue::Bool(true) => "1".to_owned(),
            IniValue::Bool(false) => "0".to_owned(),
            IniValue::Integer(number) => number.to_string(),
            IniValue::Float(number) => number.to_string(),
            IniValue::Text(text) => text,
        }
    }
}

/// The table `[php]`. TOML reads `opcache.enable = 1` as a table in a table, where php.ini has a name with a dot: that is
/// what is meant, quoted or not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ini(pub(crate) BTreeMap<String, IniValue>);

impl<'de> Deserialize<'de> for Ini {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected a string, a number or a boolean")]
        enum Entry {
            Value(IniValue),
            Table(BTreeMap<String, Entry>),
        }
        fn flatten(
            prefix: &str,
            table: BTreeMap<String, Entry>,
            all: &mut BTreeMap<String, IniValue>,
        ) {
            for (name, entry) in table {
                let name = format!("{prefix}{name}");
                match entry {
                    Entry::Value(value) => _ = all.insert(name, value),
                    Entry::Table(inner) => flatten(&format!("{name}."), inner, all),
                }
            }
        }
        let mut all = BTreeMap::new();
        flatten("", BTreeMap::deserialize(deserializer)?, &mut all);
        Ok(Ini(all))
    }
}

/// A whole surus.toml.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct File {
    pub(crate) server: Server,
    pub(crate) app: BTreeMap<String, App>,
    pub(crate) route: Vec<Route>,
    pub(crate) php: Ini,
}
