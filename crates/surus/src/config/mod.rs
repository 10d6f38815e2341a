//! Resolves one configuration from flags, environment and surus.toml.
//!
//! `tables.rs` has the keys, `units.rs` and `list.rs` the syntax of values, `layers.rs` their sources, `file.rs` the
//! file, `entry.rs` what is served, `discover.rs` the case without a configuration, `shape.rs` frameworks, `edge.rs` the edge's part,
//! `master.rs` the master's, `processes.rs` programs beside the workers, `channels.rs` which channels have a history, `pusher.rs` applications of Pusher, `variables.rs` the table `[env]`. `wrong.rs` collects errors, `places.rs` knows where each
//! key was set, `nearest.rs` and `hints.rs` suggest the right key for a wrong one, `sense.rs` finds values that
//! contradict each other, `paths.rs` makes paths absolute, `printed.rs` prints.
//! This file combines them and checks what no single table can check.

mod channels;
mod discover;
mod edge;
mod entry;
mod file;
#[cfg(test)]
mod fuzz;
mod hints;
mod layers;
mod list;
mod master;
mod memory;
mod nearest;
mod paths;
mod places;
mod printed;
mod processes;
mod pusher;
mod sense;
mod shape;
mod share;
mod tables;
mod units;
mod variables;
mod wrong;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cli::ServeArgs;
pub(crate) use entry::Entry;
use layers::{Environment, Layer, Merged};
use list::Listen;
use master::Master;
use places::Places;
use printed::{Printed, Sources};
pub(crate) use processes::Sidecar;
pub(crate) use pusher::{Hook, Pusher};
pub(crate) use shape::{has_symfony_runtime, is_laravel};
use surus_master::Address;
use surus_zend::{Connections, IsolateLimits, Room};
use tables::Isolates;
pub(crate) use tables::Reset;
pub(crate) use units::{Mode, Workers};
use units::{Share, Size, Span};
pub(crate) use variables::Variable;
pub(crate) use wrong::ConfigError;
use wrong::Wrong;

/// The complete configuration of a server. Keys with a default always have a value.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) listen: Vec<Address>,
    pub(crate) workers: usize,
    pub(crate) master: Master,
    pub(crate) settings: surus_edge::Settings,
    /// If `None`, standard error.
    pub(crate) error_log: Option<PathBuf>,
    /// If `None`, standard output.
    pub(crate) access_log_file: Option<PathBuf>,
    pub(crate) edge: surus_edge::Limits,
    pub(crate) app: App,
    /// Settings for php.ini, in order.
    pub(crate) ini: Vec<(String, String)>,
    /// Variables of PHP's environment.
    pub(crate) env: Vec<(String, Variable)>,
    /// Programs that run beside the workers.
    pub(crate) processes: Vec<Sidecar>,
    /// Applications that speak the Pusher protocol.
    pub(crate) pushers: Vec<Pusher>,
    pub(crate) dev: bool,
    /// The absolute path of the surus.toml, if there is one.
    pub(crate) file: Option<PathBuf>,
    /// This configuration, as a surus.toml.
    printed: Printed,
    /// Where each key was set.
    places: Places,
    /// Messages about keys that were set and have no effect.
    pub(crate) idle: Vec<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct App {
    pub(crate) entry: Entry,
    /// The absolute path of the script or root, without resolving symbolic links: their targets change with each
    /// release.
    pub(crate) source: PathBuf,
    /// The name of the script for people: relative to the folder that is served.
    pub(crate) label: String,
    /// Number of processes for PHP, each with one request at a time; if `None`, PHP runs in the workers.
    pub(crate) processes: Option<usize>,
    /// If `None`, the address that a request came to.
    pub(crate) server_name: Option<String>,
    pub(crate) max_requests_in_flight: usize,
    pub(crate) max_queue: usize,
    pub(crate) queue_timeout: Duration,
    pub(crate) request_timeout: Option<Duration>,
    pub(crate) stream_timeout: Option<Duration>,
    pub(crate) heartbeat: Option<Duration>,
    pub(crate) websocket_ping: Option<Duration>,
    pub(crate) websocket_compression: bool,
    pub(crate) defer_timeout: Option<Duration>,
    pub(crate) timer_timeout: Option<Duration>,
    pub(crate) background_timeout: Option<Duration>,
    /// The number of processes for `Surus\offload()`; 0: it is refused.
    pub(crate) offload_processes: usize,
    pub(crate) offload_timeout: Option<Duration>,
    /// The folder of the jobs of queues, if it is configured.
    pub(crate) queue_folder: Option<PathBuf>,
    /// Bytes.
    pub(crate) queue_size: u64,
    pub(crate) cancel_on_disconnect: bool,
    /// From `[server]`: how long a new version may take to boot.
    pub(crate) boot_timeout: Duration,
    pub(crate) slow_log: Option<Duration>,
    pub(crate) blocking_threshold: Option<Duration>,
    pub(crate) preempt_after: Duration,
    pub(crate) preempt_fibers: bool,
    /// For each database and worker.
    pub(crate) persistent: Connections,
    pub(crate) persistent_reset: Reset,
    pub(crate) memory_limit: Option<String>,
    /// PHP does not see the server's environment.
    pub(crate) clear_env: bool,
    /// Bytes.
    pub(crate) shared_memory: u64,
    /// The address of a Redis through which other servers share channels.
    pub(crate) channels_redis: Option<String>,
    /// Which channels have a history.
    pub(crate) channels: surus_channels::Rules,
    pub(crate) spool: surus_edge::SpoolLimits,
    pub(crate) room: Room,
    /// Without symbolic links.
    pub(crate) sendfile: Vec<PathBuf>,
    pub(crate) public: Option<PathBuf>,
    /// In worker and snapshot mode: where static files are, without resolving symbolic links.
    pub(crate) files: Option<PathBuf>,
    /// In snapshot mode: a script that runs once, before the front controller. Without resolving symbolic links.
    pub(crate) boot: Option<PathBuf>,
    /// In snapshot mode: paths that each isolate answers after its boot.
    pub(crate) warm_up: Vec<http::Uri>,
    pub(crate) hidden: surus_edge::Hidden,
    pub(crate) min_isolates: usize,
    pub(crate) max_isolates: usize,
    /// Bytes, for one worker.
    pub(crate) isolate_memory: u64,
    pub(crate) isolate_idle: Duration,
    /// When an isolate is replaced: in classic or worker mode one of several, in coroutine mode that of the application.
    pub(crate) isolate_limits: IsolateLimits,
}

/// The number of processes, if it is not configured.
pub(crate) const PROCESSES: usize = 8;

impl App {
    /// The same application with one request at a time.
    pub(crate) fn alone(&self) -> App {
        App {
            max_requests_in_flight: 1,
            min_isolates: 1,
            max_isolates: 1,
            ..self.clone()
        }
    }

    /// The same for a process that runs jobs of `Surus\offload()`.
    pub(crate) fn for_jobs(&self) -> App {
        App {
            request_timeout: self.offload_timeout,
            cancel_on_disconnect: true,
            min_isolates: 0,
            ..self.alone()
        }
    }
}

impl Config {
    pub(crate) fn resolve(arguments: &ServeArgs) -> Result<Self, ConfigError> {
        Self::resolve_with(arguments, &layers::environment()?)
    }

    fn resolve_with(arguments: &ServeArgs, environment: &Environment) -> Result<Self, ConfigError> {
        let mut wrong = Wrong::default();
        let file = wrong.take(file::read(arguments, environment));
        let mut layers = layers::all(arguments, environment, &mut wrong);
        let dev = wrong.take(layers::dev(environment)).unwrap_or_default();
        wrong.end()?;
        let here = paths::named(Path::new(""))?;
        for layer in &mut layers {
            paths::start_from(&here, layer);
        }
        let (base, name, file) = file.unwrap_or_default();
        let layers = [layers, vec![file]].concat();
        finish(arguments, &base, name, &layers, arguments.dev || dev)
    }

    /// A message about a key such as `server.listen`, with the place where it was set.
    pub(crate) fn say(&self, key: &str, message: &str) -> String {
        self.places.say(key, message)
    }

    /// Whether this key was set anywhere.
    pub(crate) fn says(&self, key: &str) -> bool {
        self.places.has(key)
    }

    /// A complete surus.toml, in which each line names the source of its value.
    pub(crate) fn to_toml(&self) -> String {
        self.printed.to_toml()
    }
}

fn finish(
    arguments: &ServeArgs,
    base: &Path,
    name: String,
    layers: &[Layer],
    dev: bool,
) -> Result<Config, ConfigError> {
    let Merged {
        mut server,
        mut app,
        mut php,
        env,
        mut process,
        mut channel,
        mut pusher,
    } = layers::merged(layers);
    let mut sources = Sources::of(layers);
    let listen = fill(&mut server.listen, Listen::One("127.0.0.1:8080".to_owned()));
    let workers = fill(&mut server.workers, Workers::Auto);
    let mut wrong = Wrong::with(Places::of(layers));
    let listening = wrong.take_of("server.listen", addresses(&listen));
    let master = master::settings(&mut server, &mut wrong);
    for (key, why) in sense::twice(listening.as_deref(), &master) {
        wrong.note(key, why);
    }
    let settings = edge::settings(&mut server, &mut app, &mut wrong);
    let server_name = edge::server_name(&app, &settings.allowed_hosts, &mut wrong);

    // Apart from the processes, it is configured like a classic site.
    let in_processes = app.mode == Some(Mode::Process);
    if in_processes {
        app.mode = Some(Mode::Classic);
    }
    let named = match (&app.script, &app.root) {
        // Otherwise the error is about the path, which does not exist.
        _ if !arguments.path.exists() => "",
        (Some(_), _) => "app.script",
        (None, _) => "app.root",
    };
    let found = wrong.take_of(named, entry::entry(arguments, base, &mut app));
    if in_processes {
        app.mode = Some(Mode::Process);
        app.processes.get_or_insert(PROCESSES);
    }
    note_found(arguments, &mut sources);
    if server.access_log_file.is_some() {
        sources.default_server("access_log", "access_log_file");
    }
    if app.processes == Some(0) {
        wrong.note("app.processes", "processes must be at least 1");
    }
    let max_body = wrong.take_of("php.post_max_size", edge::body_limit(&mut app, &mut php));
    let body = max_body.unwrap_or(Size(0));
    let variables = variables::of(&env, &mut wrong);
    let clear_env = fill(&mut app.clear_env, true);
    for (name, why) in sense::sizes(&php) {
        wrong.note(&format!("php.{name}"), why);
    }
    let edge = edge::limits(&mut server, body, workers.count(), &mut wrong);
    let spool = edge::spool(&mut app)?;
    let sendfile = wrong.take_of("app.sendfile", edge::folders(&mut app.sendfile));
    let public = wrong.take_of("app.public", edge::folder(&mut app.public));
    let config = Path::new(layers.last().map_or("", |file| &file.name));
    let hidden = wrong.take_of("app.hidden", edge::hidden(&mut app.hidden, config));
    let file = Some(config).filter(|config| !config.as_os_str().is_empty());
    let file = file.map(paths::named).transpose()?;
    let room = edge::room(&mut app, &spool);
    let isolates = app.isolates.get_or_insert_with(Isolates::default);
    let max_isolates = at_least_one(&mut isolates.max, 1024, "app.isolates.max", &mut wrong);
    let min_isolates = fill(&mut isolates.min, 1.min(max_isolates));
    let share = fill(&mut isolates.memory, Share::Percent(50));
    let isolate_memory = share.bytes() / workers.count() as u64;
    let isolate_idle = fill(&mut isolates.idle, Span(Duration::from_secs(10))).0;
    let isolate_limits = IsolateLimits {
        requests: positive(fill(&mut isolates.max_requests, 0)),
        memory: positive(fill(&mut isolates.max_memory, Size(0)).0),
        age: fill(&mut isolates.max_age, Span(Duration::ZERO)).limit(),
    };
    let is_limited = isolate_limits != IsolateLimits::default();
    let is_coroutine = matches!(&found, Some((Entry::Coroutine { .. }, ..)));
    if app.processes.is_some() && matches!(&found, Some((Entry::Worker { .. }, ..))) {
        wrong.note(
            "app.processes",
            "worker and snapshot mode run in the workers, not in processes: leave processes out",
        );
    }
    if is_limited && app.processes.is_some() && is_coroutine {
        wrong.note(
            "app.isolates",
            "isolates.max_requests, max_memory and max_age are not for an application in processes: \
             each is one isolate, and [server] has the same keys for processes",
        );
    }
    if min_isolates > max_isolates {
        wrong.note(
            "app.isolates.min",
            format!("isolates.min ({min_isolates}) is more than isolates.max ({max_isolates})"),
        );
    }
    let max_requests_in_flight = at_least_one(
        &mut app.max_requests_in_flight,
        1024,
        "app.max_requests_in_flight",
        &mut wrong,
    );
    let max_queue = fill(&mut app.max_queue, 1024);
    let queue_timeout = fill(&mut app.queue_timeout, Span(Duration::from_secs(10))).0;
    let request_timeout = fill(&mut app.request_timeout, Span(Duration::from_secs(30))).limit();
    let stream_timeout = fill(&mut app.stream_timeout, Span(Duration::from_secs(60))).limit();
    let heartbeat = fill(&mut app.heartbeat, Span(Duration::from_secs(15))).limit();
    let websocket_ping = fill(&mut app.websocket_ping, Span(Duration::from_secs(25))).limit();
    let websocket_compression = fill(&mut app.websocket_compression, true);
    let timer_timeout = fill(&mut app.timer_timeout, Span(Duration::from_secs(3600))).limit();
    let background_timeout = fill(&mut app.background_timeout, Span(Duration::ZERO)).limit();
    let defer_timeout = fill(&mut app.defer_timeout, Span(Duration::from_secs(30))).limit();
    let offload_processes = fill(&mut app.offload_processes, 4);
    let offload_timeout = fill(&mut app.offload_timeout, Span(Duration::from_secs(60))).limit();
    let queue_size = fill(&mut app.queue_size, Size(256 << 20)).0;
    let cancel_on_disconnect = fill(&mut app.cancel_on_disconnect, is_coroutine);
    let slow_log = fill(&mut app.slow_log, Span(Duration::ZERO)).limit();
    let five = Span(Duration::from_millis(5));
    let blocking_threshold = fill(&mut app.blocking_threshold, five).limit();
    let preempt_after = fill(&mut app.preempt_after, Span(Duration::from_millis(10))).0;
    let preempt_fibers = fill(&mut app.preempt_fibers, false);
    let minute = Span(Duration::from_secs(60));
    let persistent = Connections {
        most: fill(&mut app.persistent_connections, 16),
        patience: queue_timeout,
        max_idle: fill(&mut app.persistent_max_idle, minute).limit(),
        min_idle: fill(&mut app.persistent_min_idle, 0),
        max_age: fill(&mut app.persistent_max_age, Span(Duration::ZERO)).limit(),
    };
    let persistent_reset = fill(&mut app.persistent_reset, Reset::Always);
    let shared_memory = fill(&mut app.shared_memory, Size(64 << 20)).0;
    if let Some(why) = app.channels_redis.as_deref().and_then(no_redis) {
        wrong.note("app.channels_redis", format!("channels_redis: {why}"));
    }
    let channels = channels::of(&mut channel, shared_memory, &mut wrong);

    wrong.positive(&[
        ("server.header_timeout", edge.header_timeout),
        ("server.body_timeout", edge.body_timeout),
        ("server.write_timeout", edge.write_timeout),
        ("server.boot_timeout", master.boot_timeout),
    ]);
    let processes = processes::of(&mut process, arguments, base, &mut wrong);
    let own = edge::own_host(&settings, server_name.as_deref());
    let pushers = pusher::of(&mut pusher, own, &mut wrong);
    let boot = wrong.take_of("app.boot", boot_script(&app));
    let warm_up = wrong.take_of("app.warm_up", warm_up_paths(&app));
    wrong.end()?;
    let files = match &app.root {
        Some(root) if app.mode.is_some_and(Mode::boots_isolates) => Some(paths::named(root)?),
        _ => None,
    };
    let (Some(listen), Some((entry, source, label))) = (listening, found) else {
        return Err(ConfigError::new("the configuration is not complete"));
    };
    let boot_timeout = master.boot_timeout;

    Ok(Config {
        listen,
        workers: workers.count(),
        master,
        settings,
        error_log: server.error_log.clone(),
        access_log_file: server.access_log_file.clone(),
        edge,
        app: App {
            entry,
            source,
            label,
            processes: app.processes,
            server_name,
            max_requests_in_flight,
            max_queue,
            queue_timeout,
            request_timeout,
            stream_timeout,
            heartbeat,
            websocket_ping,
            websocket_compression,
            defer_timeout,
            timer_timeout,
            background_timeout,
            offload_processes,
            offload_timeout,
            queue_folder: app.queue_folder.clone(),
            queue_size,
            cancel_on_disconnect,
            boot_timeout,
            slow_log,
            blocking_threshold,
            preempt_after,
            preempt_fibers,
            persistent,
            persistent_reset,
            shared_memory,
            channels,
            channels_redis: app.channels_redis.clone(),
            clear_env,
            memory_limit: app.memory_limit.map(|limit| limit.to_string()),
            spool,
            room,
            sendfile: sendfile.unwrap_or_default(),
            public: public.flatten(),
            files,
            boot: boot.flatten(),
            warm_up: warm_up.unwrap_or_default(),
            hidden: hidden.unwrap_or_default(),
            min_isolates,
            max_isolates,
            isolate_memory,
            isolate_idle,
            isolate_limits,
        },
        ini: php
            .clone()
            .into_iter()
            .map(|(name, value)| (name, value.into_text()))
            .collect(),
        env: variables,
        processes,
        pushers,
        dev,
        file,
        printed: Printed {
            server,
            name,
            app,
            php,
            env,
            processes: process,
            channels: channel,
            pushers: pusher,
            sources,
        },
        idle: sense::idle(&Places::of(layers), is_coroutine, in_processes),
        places: Places::of(layers),
    })
}

/// Notes the sources of keys that were found by the path, or set by PHP's own name for a limit.
fn note_found(arguments: &ServeArgs, sources: &mut Sources) {
    if arguments.path.is_file() && arguments.path.extension().is_some_and(|it| it == "php") {
        sources.set_app("script", "the command line");
        sources.set_app("root", "the command line");
    }
    for key in ["mode", "script", "root"] {
        sources.default_app(key, "found");
    }
    if sources.has_php(edge::BODY_LIMIT) {
        sources.default_app("max_body", edge::BODY_LIMIT);
    }
    sources.default_php(edge::BODY_LIMIT, "max_body");
}

/// The script that runs once, before the front controller.
fn boot_script(app: &tables::App) -> Result<Option<PathBuf>, ConfigError> {
    let Some(boot) = &app.boot else {
        return Ok(None);
    };
    if app.mode != Some(Mode::Snapshot) {
        return Err(ConfigError::new(
            "boot is for mode = \"snapshot\": in other modes nothing would put back what requests change",
        ));
    }
    if !boot.is_file() {
        return Err(ConfigError::new(format!(
            "boot: {} is not a file",
            boot.display()
        )));
    }
    discover::readable(boot)?;
    paths::named(boot).map(Some)
}

/// Why this is no address of a Redis. It is not shown: it may have a password.
fn no_redis(url: &str) -> Option<&'static str> {
    if redis::Client::open(url).is_ok() {
        return None;
    }
    Some(match url.split_once("://") {
        Some(("rediss" | "valkeys", _)) => {
            "it has TLS, which Surus does not speak: name a proxy such as stunnel with redis://"
        }
        _ if url.starts_with('$') => {
            "it takes no variables: SURUS_CHANNELS_REDIS in the server's environment sets it"
        }
        _ => {
            "it is no address such as \"redis://10.0.0.5:6379\" or \"redis://USER:PASSWORD@HOST:PORT/NUMBER\"; \
             in a password, @ is %40 and / is %2F"
        }
    })
}

fn warm_up_paths(app: &tables::App) -> Result<Vec<http::Uri>, ConfigError> {
    let paths = app.warm_up.as_ref().map_or(&[][..], |list| &list.0);
    if !paths.is_empty() && app.mode != Some(Mode::Snapshot) {
        return Err(ConfigError::new(
            "warm_up is for mode = \"snapshot\": in other modes what a request leaves is not kept for the next ones",
        ));
    }
    let parse = |path: &String| match path.parse::<http::Uri>() {
        Ok(uri) if path.starts_with('/') => Ok(uri),
        _ => Err(ConfigError::new(format!(
            "warm_up: {path:?} is not a path such as \"/\" or \"/products?page=2\""
        ))),
    };
    paths.iter().map(parse).collect()
}

/// The value of a key, set to its default if it is missing.
fn fill<T: Clone>(key: &mut Option<T>, default: T) -> T {
    key.get_or_insert(default).clone()
}

/// A limit for which zero means no limit.
fn positive(value: u64) -> Option<u64> {
    Some(value).filter(|&value| value > 0)
}

fn at_least_one(key: &mut Option<usize>, default: usize, name: &str, wrong: &mut Wrong) -> usize {
    let count = fill(key, default);
    if count == 0 {
        let short = name.split_once('.').map_or(name, |(_, short)| short);
        wrong.note(name, format!("{short} must be at least 1"));
    }
    count
}

fn addresses(listen: &Listen) -> Result<Vec<Address>, ConfigError> {
    let mut addresses = Vec::new();
    for text in listen.iter() {
        let wrong = |why| ConfigError::new(format!("cannot listen on {text:?}: {why}"));
        addresses.push(list::address(text).map_err(wrong)?);
    }
    if addresses.is_empty() {
        return Err(ConfigError::new("there is no address to listen on"));
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests;
