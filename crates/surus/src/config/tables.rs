//! The tables of surus.toml as they are written: every key optional. The same tables hold what the environment and the
//! flags say (`layers.rs`), so that one rule merges them: the upper one wins, key by key.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::list::{List, Listen};
use super::paths::Paths;
use super::units::{Memory, Mode, PerAddress, Share, Size, Span, Workers};

/// A table whose keys are known by name.
pub(crate) trait Keys: Clone + Default {
    const KEYS: &'static [&'static str];
    /// For each key its type and its description: docs/configuration.md is made of them.
    #[cfg(test)]
    const DESCRIPTIONS: &'static [(&'static str, &'static str)];

    /// `self`, and from `below` what it leaves open.
    fn over(self, below: Self) -> Self;
}

macro_rules! table {
    ($(#[$doc:meta])* $name:ident { $($(#[doc = $description:literal])+ $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, Deserialize, Serialize)]
        #[serde(deny_unknown_fields, default)]
        pub(crate) struct $name {
            $($(#[doc = $description])+ #[serde(skip_serializing_if = "Option::is_none")] pub(crate) $field: Option<$type>,)*
        }

        impl Keys for $name {
            const KEYS: &'static [&'static str] = &[$(stringify!($field)),*];
            #[cfg(test)]
            const DESCRIPTIONS: &'static [(&'static str, &'static str)] =
                &[$((stringify!($type), concat!($($description),+))),*];

            fn over(self, below: Self) -> Self {
                $name { $($field: self.$field.or(below.$field),)* }
            }
        }

        impl Paths for $name {
            fn each_path(&mut self, change: &mut dyn FnMut(&mut PathBuf)) {
                $(self.$field.each_path(change);)*
            }
        }
    };
}

// The comment of a key is its description in docs/configuration.md: for users, in one or two sentences.
table! {
    /// `[server]`
    Server {
        /// Where to accept connections: `ADDRESS:PORT`, a port on 127.0.0.1, a Unix socket as `unix:/run/surus.sock` (mode 0666: its folder says who may connect), or a list of these.
        listen: Listen,
        /// Number of worker processes. `"auto"` is one for each processor.
        workers: Workers,
        /// Log each request: `true` (text on a terminal, else JSON), `"text"`, `"json"`, `"common"` or `"combined"`.
        access_log: Log,
        /// File of the access log, instead of standard output. Setting it switches `access_log` on.
        access_log_file: PathBuf,
        /// File of the error log, instead of standard error.
        error_log: PathBuf,
        /// Addresses and networks of the proxies in front; `unix:` is whoever connects to a Unix socket. Only their `Forwarded` and `X-Forwarded-*` headers are believed.
        trusted_proxies: List<String>,
        /// Header in which trusted proxies name the client: `"x-forwarded"`, `"forwarded"` (RFC 7239) or `"none"`.
        forwarded: SaidIn,
        /// Expect a PROXY protocol header (version 1 or 2) on each connection, or on those of `trusted_proxies` if it is set.
        proxy_protocol: bool,
        /// Take over or create `X-Request-Id` and `traceparent`, pass them to PHP, and return `X-Request-Id`.
        request_ids: bool,
        /// Path of a health check that is answered without PHP while the worker runs.
        liveness: String,
        /// Path of a health check that is answered without PHP; it fails while the server shuts down.
        readiness: String,
        /// Compress text responses with zstd, br or gzip for clients that accept it.
        compression: bool,
        /// Send files of more than 16 KB with sendfile(2).
        zero_copy: bool,
        /// Client connections per worker.
        max_connections: usize,
        /// Connections from one address, per worker. `"auto"` is 2048 for all workers together; 0 is no limit.
        max_connections_per_address: PerAddress,
        /// Size of a request line with its headers. A longer one gets 431.
        max_header: Size,
        /// Number of headers of a request. More get 431.
        max_headers: usize,
        /// Time for a request line with its headers to arrive.
        header_timeout: Span,
        /// Time to wait for the body of a request.
        body_timeout: Span,
        /// Time to wait for a client that does not read its response.
        write_timeout: Span,
        /// Bytes that extend `body_timeout` and `write_timeout` by one second when a client has moved them; 0 is never.
        min_rate: Size,
        /// Time that a connection may be idle between two requests.
        keep_alive: Span,
        /// Time for requests in flight to finish when the server, a worker or an old version shuts down.
        drain_timeout: Span,
        /// Time for a worker or a new version of the application to boot.
        boot_timeout: Span,
        /// User that workers run as. Needs a server that root starts.
        user: String,
        /// Group that workers run as. Without it, the group of `user`.
        group: String,
        /// Where the admin listener serves `/status`, `/metrics` and a page for people: an address, or a port on 127.0.0.1.
        admin: String,
        /// Password or bearer token for the admin listener; required where others can reach it. At least 16 characters.
        admin_token: String,
        /// A worker whose event loop is blocked for longer is killed and replaced; 0 is never.
        watchdog: Span,
        /// Replace a worker after this number of requests; 0 is never.
        max_requests: u64,
        /// Replace a worker that has this much resident memory; 0 is never.
        max_memory: Size,
        /// Replace a worker after this time; 0 is never.
        max_age: Span,
        /// Path of the control socket for `surus status` and the other commands.
        control: PathBuf,
    }
}

table! {
    /// `[app.NAME]`
    App {
        /// How PHP runs: `"classic"`, `"coroutine"`, `"worker"`, `"snapshot"` or `"process"`.
        mode: Mode,
        /// The script of an application in coroutine, worker or snapshot mode, or the front controller of a classic site.
        script: PathBuf,
        /// The document root of a classic site; in worker and snapshot mode, the folder of the static files.
        root: PathBuf,
        /// In snapshot mode: a script that runs once, before a front controller that runs in each request.
        boot: PathBuf,
        /// In snapshot mode: paths that each isolate answers after its boot. What these requests load and make is kept.
        warm_up: List<String>,
        /// Run PHP in this number of processes, each with one request at a time. `mode = "process"` has 8.
        processes: usize,
        /// `SERVER_NAME` for PHP. Without it, the first plain name of `allowed_hosts`, else the address connected to.
        server_name: String,
        /// Host names that are served (`"*.example.com"` is allowed). Any other gets 421. Empty: all.
        allowed_hosts: List<String>,
        /// Requests that run PHP at the same time, per worker.
        max_requests_in_flight: usize,
        /// Length of the admission queue, per worker. More requests get 503.
        max_queue: usize,
        /// Time a request may spend in the admission queue. Then it gets 503.
        queue_timeout: Span,
        /// Time for the whole request, waiting included. Then it is cancelled and the client gets 504. 0 is no limit.
        request_timeout: Span,
        /// Time that the items of a handler's iterable may be silent while they are sent, in place of `request_timeout`; then
        /// the response is cut off. 0 is no limit. An event stream has `heartbeat` instead.
        stream_timeout: Span,
        /// Time that an event stream (`text/event-stream`) may be silent; then its client is sent a comment, which tells
        /// whether it is still there. Such a stream has no time limit. With 0 it has `stream_timeout`, and no comments.
        heartbeat: Span,
        /// How often the client of a WebSocket is asked whether it is still there. After two questions without an answer it is gone.
        /// 0 is never.
        websocket_ping: Span,
        /// Whether messages of WebSockets of 1 KB and more are compressed for clients that offer it (permessage-deflate).
        websocket_compression: bool,
        /// Time for what a request has given to `Surus\defer()`, from the end of its response. Then it is cancelled. 0 is no limit.
        defer_timeout: Span,
        /// Time for a run of a timer (`Surus\every()`, `cron()`, `after()`). Then it is cancelled, and its PHP backtrace is logged. 0 is no limit.
        timer_timeout: Span,
        /// Time for what `Surus\background()` runs, which may be meant to run for ever. 0 is no limit.
        background_timeout: Span,
        /// Processes for `Surus\offload()`, for all workers. They start with the first job. With 0 it is refused, and in process
        /// mode there are none.
        offload_processes: usize,
        /// Time for a job of `Surus\offload()`. Then it is cancelled, and its process killed if that does not end it. A job may wait
        /// for a free process as long. 0 is no limit.
        offload_timeout: Span,
        /// Folder in which the jobs of queues are kept; one folder for each server. Without it, `$STATE_DIRECTORY`, `/var/lib/surus` (root) or
        /// `~/.local/state/surus` has one, which is made with the first job.
        queue_folder: PathBuf,
        /// Bytes that the jobs of all queues may take in memory and, twice, on disk. Then no more can be pushed.
        queue_size: Size,
        /// Cancel a request whose client has disconnected, also while it waits. `false` is as under php-fpm: it continues until
        /// it sends output.
        cancel_on_disconnect: bool,
        /// Log a request that takes longer than this, with its PHP backtrace; 0 is never.
        slow_log: Span,
        /// Report calls that block the event loop for longer than this: `surus status` lists them by PHP function and line, and
        /// those above 20 ms are logged with a PHP backtrace. 0 is never. Not in process mode.
        blocking_threshold: Span,
        /// Hide the server's environment from PHP, which then has `[env]` and `HOME`, `USER` and `LOGNAME` of its user.
        clear_env: bool,
        /// CPU time after which PHP code that computes is interrupted for others.
        preempt_after: Span,
        /// Interrupt the fibers of a coroutine application for each other, too, not only for other work.
        preempt_fibers: bool,
        /// Persistent connections to one database server, per worker of a coroutine application: those of PDO (PostgreSQL,
        /// MySQL, MariaDB), pgsql, mysqli and phpredis. A request waits up to `queue_timeout` for one. 0 is no limit.
        persistent_connections: usize,
        /// Time after which a persistent connection that nobody uses is closed, when another one of its pool is used. 0 is never. In
        /// coroutine mode.
        persistent_max_idle: Span,
        /// Persistent connections of each pool that stay open in spite of `persistent_max_idle`.
        persistent_min_idle: usize,
        /// Time after which a persistent connection is not used any more. 0 is never. In coroutine mode.
        persistent_max_age: Span,
        /// Which sessions with PostgreSQL are reset after a request, those of persistent connections and of `Surus\Pool`: `"always"`
        /// is each; `"changed"` leaves out those that were asked only for what looks like reading, which is faster, and
        /// right if no view, function or policy of the database changes the session.
        persistent_reset: Reset,
        /// PHP's `memory_limit`, of each isolate. `"-1"` is no limit.
        memory_limit: Memory,
        /// Memory that all workers share: for `Surus\Store`, counters, tags, `Surus\Cache\SharedCache`, histories of channels; 0 is none.
        shared_memory: Size,
        /// Redis through which several servers share their channels: `redis://HOST:PORT`, also with `USER:PASSWORD@` and a number of a database. Without it, each server
        /// has channels of its own.
        channels_redis: String,
        /// Size of a request body; a longer one gets 413. Sets PHP's `post_max_size`. 0 is no limit.
        max_body: Size,
        /// Memory for request bodies that are being received, per worker. More go to the spool.
        body_memory: Size,
        /// Spool space for request bodies, per worker.
        body_disk: Size,
        /// Memory for responses that wait for slow clients, per worker. More go to the spool.
        response_memory: Size,
        /// Spool space for responses that wait for slow clients, per worker.
        response_disk: Size,
        /// Folder of the spool.
        spool_folder: PathBuf,
        /// Folders whose files PHP may have sent with an `X-Sendfile` header.
        sendfile: List<PathBuf>,
        /// Folder of the static files of a coroutine application.
        public: PathBuf,
        /// More names and paths of files that are never served; `!NAME` serves one that is hidden by default.
        hidden: List<String>,
        /// See the next table.
        isolates: Isolates,
    }
}

table! {
    /// `isolates = { min, max, idle, max_requests, max_memory, max_age }`
    Isolates {
        /// Isolates that stay when a site in classic or worker mode is idle, per worker.
        min: usize,
        /// Isolates of a site in classic or worker mode, per worker: the number of requests that run at the same time.
        max: usize,
        /// Memory for all workers of a site in classic or worker mode: a size, or a share of what the machine or the cgroup has. When it is used up, requests wait for an isolate.
        memory: Share,
        /// Time after which an unused isolate above `min` is freed.
        idle: Span,
        /// Replace an isolate after this number of requests; 0 is never.
        max_requests: u64,
        /// Replace an isolate that keeps this much memory of PHP's between requests; 0 is never.
        max_memory: Size,
        /// Replace an isolate after this time; 0 is never.
        max_age: Span,
    }
}

table! {
    /// `[process.NAME]`
    Process {
        /// The program and its arguments. `surus` is the program of the server, so `["surus", "php", "worker.php"]` runs PHP.
        command: Words,
        /// How many of it run.
        instances: usize,
        /// End it and start it anew when the server reloads: it has code of the application.
        reload: bool,
        /// When it starts again: `"always"`, or `"on-failure"`, so that one that exits with 0 has ended until the next start of the server.
        restart: Restart,
        /// Where it runs. Without it, the folder that is served, or that of the script.
        folder: PathBuf,
    }
}

table! {
    /// `[channel.PATTERN]`
    Channel {
        /// How many of the newest publications are kept, in `shared_memory`; 0 is none.
        history: u64,
        /// How long each of them is kept.
        ttl: Span,
    }
}

table! {
    /// `[pusher.NAME]`
    Pusher {
        /// In the paths of the HTTP API (`PUSHER_APP_ID` of Laravel). Without it, `NAME`.
        id: String,
        /// What clients connect with; pages show it. `"$NAME"` takes a variable of the server's environment, here and for `secret`.
        key: String,
        /// Signs what clients may subscribe to, and requests of the HTTP API. At least 8 characters.
        secret: String,
        /// What stands before the names of its channels in `Surus\Channels` of PHP: without one, they have the same names. A second application needs one, such as `"shop/"`.
        prefix: String,
        /// Sites whose pages may connect: `"www.example.com"`, `"*.example.com"`, `"https://www.example.com:8443"`, or `"*"` for all. Pages of the server's own host always may.
        allowed_origins: List<String>,
        /// Whether clients may send `client-` events (`whisper()` of Echo) on private and presence channels that they have subscribed to.
        client_events: bool,
        /// Connections of clients, per worker; 0 is no limit but that of `[server]`.
        max_connections: usize,
        /// Channels of one connection.
        max_channels: usize,
        /// Size of the data of one event. A longer one gets 413, or the error 4301.
        max_event: Size,
        /// Where the application is told what happens in channels: a path of its own (`"/webhooks/pusher"`), or an address with `http://`.
        webhook: String,
        /// What it is told.
        webhook_events: List<String>,
    }
}

/// When a program beside the workers starts again after it has ended.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Restart {
    #[default]
    Always,
    OnFailure,
}

/// The words of a command.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(transparent)]
pub(crate) struct Words(pub(crate) Vec<String>);

/// Which sessions are reset between their users.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Reset {
    #[default]
    Always,
    Changed,
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

/// The value of an ini setting under `[php]`, or of a variable under `[env]`.
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
    pub(crate) env: BTreeMap<String, IniValue>,
    pub(crate) process: BTreeMap<String, Process>,
    pub(crate) channel: BTreeMap<String, Channel>,
    pub(crate) pusher: BTreeMap<String, Pusher>,
}
