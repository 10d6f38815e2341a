//! `[pusher.NAME]`: applications of the Pusher protocol, each with credentials and channels of its own.

use std::collections::BTreeMap;

use surus_pusher::{Happened, LONGEST_PREFIX};

use super::fill;
use super::list::List;
use super::tables;
use super::units::Size;
use super::variables::{variable, Variable};
use super::wrong::Wrong;
use super::ConfigError;

/// An application of the Pusher protocol.
#[derive(Clone, Debug)]
pub(crate) struct Pusher {
    pub(crate) app: surus_pusher::App,
    /// In lower case.
    pub(crate) allowed_origins: Vec<String>,
    pub(crate) webhook: Option<Hook>,
}

/// Where an application is told what happens.
#[derive(Clone, Debug)]
pub(crate) struct Hook {
    /// As it is configured.
    pub(crate) url: String,
    /// If `None`, this server.
    pub(crate) host: Option<(String, u16)>,
    /// For the header `Host`.
    pub(crate) authority: String,
    /// With the query.
    pub(crate) path: String,
    /// The names of what it is told.
    pub(crate) events: Vec<String>,
}

/// What is told if nothing else is configured: not each event of a client.
const EVENTS: [&str; 4] = [
    "channel_occupied",
    "channel_vacated",
    "member_added",
    "member_removed",
];

impl Hook {
    fn new(
        url: &str,
        events: Vec<String>,
        own: Result<&str, &'static str>,
    ) -> Result<Self, &'static str> {
        let uri: http::Uri = url.parse().map_err(|_| {
            "it is no address: name a path such as \"/webhooks/pusher\", or http://HOST:PORT/PATH"
        })?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let (host, authority) = match (uri.scheme_str(), uri.authority()) {
            (None, None) if url.starts_with('/') => (None, own?.to_owned()),
            (Some("http"), Some(authority)) if authority.as_str().contains('@') => {
                return Err("it has a name and a password, which are not sent: requests are signed")
            }
            (Some("http"), Some(authority)) => {
                let host = authority.host().trim_matches(['[', ']']).to_owned();
                let port = authority.port_u16().unwrap_or(80);
                (Some((host, port)), authority.to_string())
            }
            (Some("https"), _) => return Err("it has https: Surus speaks no TLS. Name a path of the application, or a proxy with http://"),
            _ => return Err("it is neither a path such as \"/webhooks/pusher\" nor an address with http://"),
        };
        Ok(Hook {
            url: url.to_owned(),
            host,
            authority,
            path: path.to_owned(),
            events,
        })
    }
}

/// Characters of the shortest secret.
const SHORTEST: usize = 8;

/// Resolves and checks them; fills in what is left out. `own`: the name of this server in requests that it
/// sends to itself, or why it cannot.
pub(super) fn of(
    tables: &mut BTreeMap<String, tables::Pusher>,
    own: Result<&str, &'static str>,
    wrong: &mut Wrong,
) -> Vec<Pusher> {
    let mut all = Vec::new();
    // With the names of those that have them.
    let (mut ids, mut keys, mut secrets, mut prefixes) = (
        BTreeMap::new(),
        BTreeMap::new(),
        BTreeMap::new(),
        BTreeMap::new(),
    );
    for (name, table) in tables {
        let at = |key: &str| format!("pusher.{name}.{key}");
        let id = fill(&mut table.id, name.clone());
        let id = resolved("id", &at("id"), Some(id), wrong);
        let key = resolved("key", &at("key"), table.key.clone(), wrong);
        let secret = resolved("secret", &at("secret"), table.secret.clone(), wrong);
        for (name, text) in [("id", &id), ("key", &key)] {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            if text
                .as_ref()
                .is_some_and(|text| !text.chars().all(is_plain))
            {
                let why =
                    format!("{name}: it is a part of paths: letters, digits, '-', '_' and '.'");
                wrong.note(&at(name), why);
            }
        }
        if secret
            .as_ref()
            .is_some_and(|secret| secret.len() < SHORTEST)
        {
            let why = format!("secret: it has fewer than {SHORTEST} characters");
            wrong.note(&at("secret"), why);
        }
        let prefix = fill(&mut table.prefix, String::new());
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let name_of = prefix.strip_suffix('/');
        let fits = name_of.is_some_and(|name| !name.is_empty() && name.chars().all(is_plain));
        if !prefix.is_empty() && !fits || prefix.len() > LONGEST_PREFIX {
            let why = format!(
                "prefix: it is letters, digits, '-' and '_' with a slash at the end, at most {LONGEST_PREFIX} bytes"
            );
            wrong.note(&at("prefix"), why);
        }
        if let Some(other) = prefixes.insert(prefix.clone(), name.clone()) {
            let why = format!("prefix: [pusher.{other}] has {prefix:?}, too, and they would share their channels: set that of [pusher.{name}] to \"{name}/\", say");
            wrong.note(&at("prefix"), why);
        }
        let allowed_origins = fill(&mut table.allowed_origins, List::default()).0;
        for origin in &allowed_origins {
            if let Err(why) = check(origin) {
                let why = format!("allowed_origins: {origin:?} {why}");
                wrong.note(&at("allowed_origins"), why);
            }
        }
        let client_events = fill(&mut table.client_events, true);
        let max_connections = fill(&mut table.max_connections, 0);
        let max_channels = fill(&mut table.max_channels, 100);
        let max_event = fill(&mut table.max_event, Size(10 << 10)).0;
        if max_event == 0 || max_event > MOST {
            let why = "max_event must be from 1 byte to 60K";
            wrong.note(&at("max_event"), why);
        }
        let events = EVENTS.map(str::to_owned).to_vec();
        let events = fill(&mut table.webhook_events, List(events)).0;
        for event in events
            .iter()
            .filter(|event| !Happened::NAMES.contains(&&***event))
        {
            let why = format!(
                "webhook_events: {event:?} is none of {}",
                Happened::NAMES.join(", ")
            );
            wrong.note(&at("webhook_events"), why);
        }
        let webhook = table.webhook.as_deref().map(|url| {
            let hook = Hook::new(url, events, own);
            hook.map_err(|why| ConfigError::new(format!("webhook: {url:?}: {why}")))
        });
        let webhook = wrong.take_of(&at("webhook"), webhook.transpose()).flatten();
        let (Some(id), Some(key), Some(secret)) = (id, key, secret) else {
            continue;
        };
        for (part, text, seen) in [("id", &id, &mut ids), ("key", &key, &mut keys)] {
            if let Some(other) = seen.insert(text.clone(), name.clone()) {
                let why = format!(
                    "{part}: [pusher.{other}] and [pusher.{name}] have the same one, {text:?}"
                );
                wrong.note(&at(part), why);
            }
        }
        if let Some(other) = secrets.insert(secret.clone(), name.clone()) {
            let why = format!("secret: [pusher.{other}] and [pusher.{name}] have the same one: what one of them has signed would be valid for the other one");
            wrong.note(&at("secret"), why);
        }
        all.push(Pusher {
            app: surus_pusher::App {
                id,
                key,
                secret,
                prefix,
                client_events,
                max_connections: match max_connections {
                    0 => usize::MAX,
                    most => most,
                },
                max_channels,
                max_event: max_event as usize,
            },
            allowed_origins: allowed_origins
                .iter()
                .map(|origin| origin.to_ascii_lowercase())
                .collect(),
            webhook,
        });
    }
    all
}

/// What workers can pass on to each other at once.
const MOST: u64 = 60 << 10;

/// The text, or the variable that it names.
fn resolved(key: &str, at: &str, text: Option<String>, wrong: &mut Wrong) -> Option<String> {
    let found = match text.map(variable) {
        Some(Variable::Text(text)) => Some(text),
        Some(Variable::Of(name)) => match std::env::var(&name) {
            Ok(text) => Some(text),
            Err(_) => {
                let why = format!(
                    "{key}: the server's environment has no variable {name}; an application's .env is not read for it"
                );
                wrong.note(at, why);
                return None;
            }
        },
        None => None,
    };
    let found = found.filter(|text| !text.is_empty());
    if found.is_none() {
        let table = at.rsplit_once('.').map_or(at, |(table, _)| table);
        let why = format!(
            "[{table}] needs a {key} that is not empty: {key} = \"…\", or \"$NAME\" for a variable of the server's environment"
        );
        wrong.note(at, why);
    }
    found
}

/// A host, or an origin.
fn check(origin: &str) -> Result<(), &'static str> {
    if origin == "*" {
        return Ok(());
    }
    let authority = match origin.split_once("://") {
        Some(("http" | "https", authority)) => authority,
        Some(_) => return Err("is neither http:// nor https://"),
        None => origin,
    };
    let host = authority.strip_prefix("*.").unwrap_or(authority);
    if host.is_empty() || host.contains(['/', '*', ' ', ',', '?', '#', '@']) {
        return Err("is no host such as \"www.example.com\", \"*.example.com\" or \"https://www.example.com\"");
    }
    Ok(())
}
