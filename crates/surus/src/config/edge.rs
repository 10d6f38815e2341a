//! The edge's part of the configuration.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use surus_edge::{
    AccessLog, Health, Hidden, HostName, Limits, LogFormat, Proxies, ProxyHeader, Settings,
    SpoolLimits,
};
use surus_zend::Room;

use super::entry::absolute;
use super::list::List;
use super::paths::named;
use super::tables::{App, IniValue, Log, LogAs, SaidIn, Server};
use super::units::{PerAddress, Size, Span};
use super::wrong::Wrong;
use super::{at_least_one, fill, ConfigError};

/// The limits of each worker's edge. Zero for `max_body` means no limit, as for PHP.
pub(super) fn limits(
    server: &mut Server,
    max_body: Size,
    workers: usize,
    wrong: &mut Wrong,
) -> Limits {
    let default = Limits::default();
    let per_address = fill(&mut server.max_connections_per_address, PerAddress::Auto);
    let header = fill(&mut server.max_header, Size(default.header_bytes as u64));
    Limits {
        connections: at_least_one(
            &mut server.max_connections,
            default.connections,
            "server.max_connections",
            wrong,
        ),
        connections_per_address: per_address.count(workers),
        counts_loopback: per_address != PerAddress::Auto,
        header_bytes: usize::try_from(header.0).unwrap_or(usize::MAX),
        header_count: at_least_one(
            &mut server.max_headers,
            default.header_count,
            "server.max_headers",
            wrong,
        ),
        body_bytes: match max_body.0 {
            0 => u64::MAX,
            bytes => bytes,
        },
        header_timeout: fill(&mut server.header_timeout, Span(default.header_timeout)).0,
        body_timeout: fill(&mut server.body_timeout, Span(default.body_timeout)).0,
        write_timeout: fill(&mut server.write_timeout, Span(default.write_timeout)).0,
        min_rate: fill(&mut server.min_rate, Size(default.min_rate)).0,
        keep_alive: fill(&mut server.keep_alive, Span(default.keep_alive)).0,
        drain: fill(&mut server.drain_timeout, Span(default.drain)).0,
    }
}

/// PHP's name for `max_body`.
pub(super) const BODY_LIMIT: &str = "post_max_size";

/// PHP has its own limit. Whichever of the two is given sets the other, so that there is one limit with one response
/// (413). Zero means no limit, as for PHP.
pub(super) fn body_limit(
    app: &mut App,
    php: &mut BTreeMap<String, IniValue>,
) -> Result<Size, ConfigError> {
    let given = php.get(BODY_LIMIT).cloned().map(IniValue::into_text);
    let limit = match (app.max_body, given) {
        (Some(limit), _) => limit,
        (None, Some(text)) => text
            .parse()
            .map_err(|error| ConfigError::new(format!("[php] {BODY_LIMIT}: {error}")))?,
        (None, None) => Size(Limits::default().body_bytes),
    };
    app.max_body = Some(limit);
    php.entry(BODY_LIMIT.to_owned())
        .or_insert_with(|| IniValue::Text(limit.to_string()));
    Ok(limit)
}

/// Where request bodies are stored.
pub(super) fn spool(app: &mut App) -> Result<SpoolLimits, ConfigError> {
    let default = SpoolLimits::default();
    let folder = named(&default.folder)?;
    Ok(SpoolLimits {
        memory_each: default.memory_each,
        memory: fill(&mut app.body_memory, Size(default.memory)).0,
        disk: fill(&mut app.body_disk, Size(default.disk)).0,
        folder: fill(&mut app.spool_folder, folder),
    })
}

/// Space for responses to slow clients, and for streamed request bodies. Files are in the folder of request bodies.
pub(super) fn room(app: &mut App, spool: &SpoolLimits) -> Room {
    let default = Room::default();
    Room {
        memory: fill(&mut app.response_memory, Size(default.memory)).0,
        disk: fill(&mut app.response_disk, Size(default.disk)).0,
        bodies: spool.disk,
        folder: spool.folder.clone(),
    }
}

/// Resolves the symbolic links of folders, which must all exist.
pub(super) fn folders(paths: &mut Option<List<PathBuf>>) -> Result<Vec<PathBuf>, ConfigError> {
    for path in paths.iter_mut().flat_map(|list| &mut list.0) {
        *path = absolute(path)?;
    }
    Ok(paths.clone().unwrap_or_default().0)
}

/// The same for one optional folder.
pub(super) fn folder(path: &mut Option<PathBuf>) -> Result<Option<PathBuf>, ConfigError> {
    if let Some(path) = path {
        *path = absolute(path)?;
        if !path.is_dir() {
            let path = path.display();
            return Err(ConfigError::new(format!("{path}: it is not a folder")));
        }
    }
    Ok(path.clone())
}

/// The files that are not served; the configuration never is, whatever its name.
pub(super) fn hidden(
    patterns: &mut Option<List<String>>,
    file: &Path,
) -> Result<Hidden, ConfigError> {
    let patterns = fill(patterns, List::default()).0;
    let hidden = Hidden::with(patterns.iter().map(String::as_str))
        .map_err(|error| ConfigError::new(format!("hidden: {error}")))?;
    Ok(match file.file_name().and_then(|name| name.to_str()) {
        Some(name) => hidden.and(name),
        None => hidden,
    })
}

/// `SERVER_NAME`: as configured, else the first allowed host that is a single name.
pub(super) fn server_name(app: &App, hosts: &[HostName], wrong: &mut Wrong) -> Option<String> {
    let given = app.server_name.as_ref().map(|text| text.parse());
    match given {
        None => hosts.iter().find_map(HostName::single).map(str::to_owned),
        Some(Ok(name)) => {
            let name: HostName = name;
            if name.single().is_none() {
                wrong.note(
                    "app.server_name",
                    "server_name: it is one name, without a star",
                );
            }
            app.server_name.clone()
        }
        Some(Err(error)) => {
            wrong.note("app.server_name", format!("server_name: {error}"));
            None
        }
    }
}

/// The `Host` of requests that the server sends to itself.
///
/// # Errors
/// Why it can send none.
pub(super) fn own_host<'a>(
    settings: &'a Settings,
    server_name: Option<&'a str>,
) -> Result<&'a str, &'static str> {
    if settings.proxy_protocol {
        return Err("with proxy_protocol, the server cannot send requests to itself: name an address with http://");
    }
    let name = server_name.unwrap_or("localhost");
    let hosts = &settings.allowed_hosts;
    if hosts.is_empty() || hosts.iter().any(|host| host.is(name)) {
        return Ok(name);
    }
    let single = hosts.iter().find_map(HostName::single);
    single.ok_or("allowed_hosts has no name without a star by which the server could send requests to itself: add \"localhost\" to it")
}

/// Settings of the edge.
pub(super) fn settings(server: &mut Server, app: &mut App, wrong: &mut Wrong) -> Settings {
    // A configured file switches the log on.
    let is_file = server.access_log_file.is_some();
    let format = match fill(&mut server.access_log, Log::Switch(is_file)) {
        Log::Switch(false) => None,
        Log::Switch(true) if !is_file && std::io::stdout().is_terminal() => Some(LogFormat::Text),
        Log::Switch(true) | Log::As(LogAs::Json) => Some(LogFormat::Json),
        Log::As(LogAs::Text) => Some(LogFormat::Text),
        Log::As(LogAs::Common) => Some(LogFormat::Common),
        Log::As(LogAs::Combined) => Some(LogFormat::Combined),
    };
    let networks = fill(&mut server.trusted_proxies, List::default()).0;
    let mut proxies = Vec::new();
    for text in &networks {
        match text.parse() {
            Ok(proxy) => proxies.push(proxy),
            Err(error) => wrong.note(
                "server.trusted_proxies",
                format!("trusted_proxies: {error}"),
            ),
        }
    }
    let mut hosts = Vec::new();
    for text in &fill(&mut app.allowed_hosts, List::default()).0 {
        match text.parse() {
            Ok(host) => hosts.push(host),
            Err(error) => wrong.note("app.allowed_hosts", format!("allowed_hosts: {error}")),
        }
    }
    for (key, path) in [
        ("liveness", &server.liveness),
        ("readiness", &server.readiness),
    ] {
        if let Some(path) = path.as_ref().filter(|path| !path.starts_with('/')) {
            wrong.note(
                &format!("server.{key}"),
                format!("{key}: {path:?} is no path: it must begin with a slash"),
            );
        }
    }
    Settings {
        access_log: format.map(AccessLog::new),
        compression: fill(&mut server.compression, true),
        zero_copy: fill(&mut server.zero_copy, true),
        proxies: Proxies {
            networks: proxies,
            header: match fill(&mut server.forwarded, SaidIn::XForwarded) {
                SaidIn::XForwarded => ProxyHeader::XForwarded,
                SaidIn::Forwarded => ProxyHeader::Forwarded,
                SaidIn::None => ProxyHeader::None,
            },
        },
        allowed_hosts: hosts,
        proxy_protocol: fill(&mut server.proxy_protocol, false),
        request_ids: fill(&mut server.request_ids, false),
        health: Health {
            live: server.liveness.clone(),
            ready: server.readiness.clone(),
        },
    }
}
