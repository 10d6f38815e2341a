//! Finds values that are well-formed, but contradict each other or have no effect.

use std::collections::BTreeMap;

use surus_master::Address;

use super::master::Master;
use super::places::Places;
use super::tables::IniValue;
use super::units::{Memory, Size};

/// Keys of the pools of persistent connections.
const POOLED: [&str; 4] = [
    "app.persistent_connections",
    "app.persistent_max_idle",
    "app.persistent_min_idle",
    "app.persistent_max_age",
];

/// Keys that change nothing in this mode, and why.
pub(super) fn idle(places: &Places, is_coroutine: bool, in_processes: bool) -> Vec<String> {
    let isolates = ["min", "max", "idle"].map(|key| format!("app.isolates.{key}"));
    let mut keys = Vec::new();
    if is_coroutine || in_processes {
        let why = match is_coroutine {
            true => "an application in coroutine mode is one isolate in each worker",
            false => "in mode process it is processes that says how many requests run at a time",
        };
        keys.extend(isolates.iter().map(|key| (key.as_str(), why)));
    }
    if in_processes {
        let why =
            "in mode process each request has a process already, and Surus\\offload() is refused";
        keys.push(("app.offload_processes", why));
        keys.push(("app.offload_timeout", why));
    }
    if !is_coroutine {
        let why = "there are no fibers to preempt in this mode: requests are preempted anyway";
        keys.push(("app.preempt_fibers", why));
        let why = "requests do not share connections in this mode: it is the number of isolates or processes that limits them";
        keys.extend(POOLED.map(|key| (key, why)));
    }
    let said = keys.into_iter().filter(|(key, _)| places.has(key));
    said.map(|(key, why)| {
        let short = key.strip_prefix("app.").unwrap_or(key);
        places.say(key, &format!("{short} has no effect: {why}"))
    })
    .collect()
}

/// Sizes that PHP would misread.
pub(super) fn sizes(php: &BTreeMap<String, IniValue>) -> Vec<(&'static str, String)> {
    let text = |name| php.get(name).cloned().map(IniValue::into_text);
    let memory = text("memory_limit").and_then(|text| text.parse::<Memory>().err());
    let upload = text("upload_max_filesize").and_then(|text| text.parse::<Size>().err());
    let told =
        |name, error: Option<String>| error.map(|why| (name, format!("[php] {name}: {why}")));
    let all = [
        told("memory_limit", memory),
        told("upload_max_filesize", upload),
    ];
    all.into_iter().flatten().collect()
}

/// Addresses that are given more than once.
pub(super) fn twice(listening: Option<&[Address]>, master: &Master) -> Vec<(&'static str, String)> {
    let all = listening.unwrap_or_default();
    let is_chosen = |address: &&Address| !address.is_any_port();
    let mut wrong = Vec::new();
    for (at, address) in all.iter().enumerate().filter(|(_, it)| is_chosen(it)) {
        if all[..at].contains(address) {
            wrong.push(("server.listen", format!("listen: {address} is there twice")));
        }
    }
    let admin = master.admin.as_ref().map(|desk| Address::Tcp(desk.address));
    if let Some(address) = admin
        .as_ref()
        .filter(is_chosen)
        .filter(|it| all.contains(it))
    {
        let why = format!("admin: {address} is also in listen: use another port");
        wrong.push(("server.admin", why));
    }
    wrong
}
