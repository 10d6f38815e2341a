//! Several values of a key. A single one may be written without brackets.

use std::net::SocketAddr;

use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};
use surus_master::Address;

/// `["a", "b"]`, or `"a"`.
#[derive(Clone, Debug, Default, Serialize, PartialEq, Eq)]
#[serde(transparent)]
pub(crate) struct List<T>(pub(crate) Vec<T>);

impl<'de, T: From<String>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(
            untagged,
            expecting = "expected text in quotes, or a list of that: [\"a\", \"b\"]"
        )]
        enum Written {
            One(String),
            Many(Vec<String>),
        }
        let values = match Written::deserialize(deserializer)? {
            Written::One(value) if value.contains(',') => {
                let parts: Vec<&str> = value.split(',').map(str::trim).collect();
                let error = format!("{value:?} is one value; several are a list: {parts:?}");
                return Err(D::Error::custom(error));
            }
            Written::One(value) => vec![value],
            Written::Many(values) => values,
        };
        Ok(List(values.into_iter().map(T::from).collect()))
    }
}

/// Addresses to listen on, as written: `"127.0.0.1:8080"`, `8080`, or a list of them.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
#[serde(untagged)]
pub(crate) enum Listen {
    One(String),
    Many(Vec<String>),
}

impl Listen {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &String> {
        match self {
            Listen::One(address) => std::slice::from_ref(address).iter(),
            Listen::Many(addresses) => addresses.iter(),
        }
    }
}

impl<'de> Deserialize<'de> for Listen {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Address {
            Port(u16),
            Text(String),
        }
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            One(Address),
            Many(Vec<Address>),
        }
        let text = |address| match address {
            Address::Port(port) => port.to_string(),
            Address::Text(text) => text,
        };
        match Written::deserialize(deserializer) {
            Ok(Written::One(address)) => Ok(Listen::One(text(address))),
            Ok(Written::Many(addresses)) => {
                Ok(Listen::Many(addresses.into_iter().map(text).collect()))
            }
            Err(_) => Err(D::Error::custom(
                "expected an address such as \"127.0.0.1:8080\", a port, or a list of them",
            )),
        }
    }
}

/// Parses one address of a list. The error says what to write instead.
pub(super) fn address(text: &str) -> Result<Address, String> {
    use std::net::ToSocketAddrs;
    if let Some(path) = text.strip_prefix("unix:") {
        return match path.starts_with('/') {
            true => Ok(Address::Unix(path.into())),
            false => Err("the path of a Unix socket begins with /".to_owned()),
        };
    }
    if let Ok(port) = text.trim_start_matches(':').parse::<u16>() {
        return Ok(SocketAddr::from(([127, 0, 0, 1], port)).into());
    }
    let found = text.to_socket_addrs().ok().and_then(|mut all| all.next());
    found.map(Address::Tcp).ok_or_else(|| remedy(text))
}

fn remedy(text: &str) -> String {
    let wrong = "not ADDRESS:PORT, and no port up to 65535";
    if let Some((scheme @ ("http" | "https" | "tcp"), rest)) = text.split_once("://") {
        let rest = rest.trim_end_matches('/');
        return format!("{wrong}: without {scheme}://, {rest:?}");
    }
    if text.contains('/') {
        return format!("{wrong}: a Unix socket is {:?}", format!("unix:{text}"));
    }
    if let Some(port) = text.strip_prefix("*:") {
        return format!("{wrong}: every address is \"0.0.0.0:{port}\", or \"[::]:{port}\"");
    }
    if text.contains(',') || text.contains(' ') {
        return format!("{wrong}: several are a list: [\"127.0.0.1:8080\", \"[::1]:8080\"]");
    }
    match text.rsplit_once(':') {
        None if !text.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!(
                "{wrong}: {:?}, if a port is all that is missing",
                format!("{text}:8080")
            )
        }
        Some((host, port)) if port.parse::<u16>().is_ok() => {
            format!("there is no address of the name {host:?}")
        }
        _ => wrong.to_owned(),
    }
}
