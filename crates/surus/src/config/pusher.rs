//! `[pusher.NAME]`: applications of the Pusher protocol, each with credentials and channels of its own.

use std::collections::{BTreeMap, BTreeSet};

use surus_pusher::LONGEST_PREFIX;

use super::fill;
use super::list::List;
use super::tables;
use super::units::Size;
use super::variables::{variable, Variable};
use super::wrong::Wrong;

/// An application of the Pusher protocol.
#[derive(Clone, Debug)]
pub(crate) struct Pusher {
    pub(crate) app: surus_pusher::App,
    /// In lower case.
    pub(crate) allowed_origins: Vec<String>,
}

/// Characters of the shortest secret.
const SHORTEST: usize = 8;

/// Resolves and checks them; fills in what is left out.
pub(super) fn of(tables: &mut BTreeMap<String, tables::Pusher>, wrong: &mut Wrong) -> Vec<Pusher> {
    let mut all = Vec::new();
    let (mut ids, mut keys, mut prefixes) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
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
        if !prefixes.insert(prefix.clone()) {
            let why = format!("prefix: another application has {prefix:?}, too, and they would share their channels: set it to \"{name}/\", say");
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
        let (Some(id), Some(key), Some(secret)) = (id, key, secret) else {
            continue;
        };
        for (name, text, seen) in [("id", &id, &mut ids), ("key", &key, &mut keys)] {
            if !seen.insert(text.clone()) {
                let why = format!("{name}: another application has {text:?}, too");
                wrong.note(&at(name), why);
            }
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
                let why = format!("{key}: the server's environment has no variable {name}");
                wrong.note(at, why);
                return None;
            }
        },
        None => None,
    };
    let found = found.filter(|text| !text.is_empty());
    if found.is_none() {
        let table = at.rsplit_once('.').map_or(at, |(table, _)| table);
        wrong.note(at, format!("[{table}] needs a {key}"));
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
