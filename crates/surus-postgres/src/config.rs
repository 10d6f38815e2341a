//! Where the server is, and as whom: libpq's `key=value` or a URL.

use std::{collections::HashMap, path::PathBuf, time::Duration};

use crate::tls::{Mode, Tls};

/// What a connection string says.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Config {
    pub(crate) place: Place,
    pub(crate) user: String,
    pub(crate) password: Option<String>,
    pub(crate) database: String,
    pub(crate) application: String,
    pub(crate) options: Option<String>,
    pub(crate) connect_timeout: Duration,
    pub(crate) tls: Option<Tls>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    Tcp(String, u16),
    Unix(PathBuf),
}

const KEYS: &str =
    "host, port, user, password, dbname, application_name, options, connect_timeout, sslmode, sslrootcert";

impl Config {
    /// Where it leads to and as whom, without the password.
    pub(crate) fn address(&self) -> String {
        let place = match &self.place {
            Place::Tcp(host, port) => format!("{host}:{port}"),
            Place::Unix(path) => path.display().to_string(),
        };
        format!("{place} {} {}", self.database, self.user)
    }

    /// # Errors
    /// What is wrong with it: a sentence without a full stop, without its password.
    pub fn parse(text: &str) -> Result<Self, String> {
        let is_url = text.starts_with("postgres://") || text.starts_with("postgresql://");
        let mut pairs = if is_url {
            from_url(text)?
        } else {
            from_pairs(text)?
        };
        let is_known = |key: &str| KEYS.split(", ").any(|known| known == key);
        if let Some(key) = pairs.keys().find(|key| !is_known(key)) {
            return Err(format!("{key} is not known: there are {KEYS}"));
        }
        let mut take = |key: &str| pairs.remove(key).filter(|value| !value.is_empty());
        let host = take("host").unwrap_or_else(|| "localhost".to_owned());
        if host.contains(',') {
            return Err(format!(
                "host={host} names several servers: one is possible"
            ));
        }
        let port = take("port").unwrap_or_else(|| "5432".to_owned());
        let port = port
            .parse()
            .ok()
            .filter(|&port| port > 0)
            .ok_or(format!("port={port} is no port"))?;
        let place = if host.starts_with('/') {
            Place::Unix(PathBuf::from(host).join(format!(".s.PGSQL.{port}")))
        } else {
            Place::Tcp(host, port)
        };
        let user = take("user").ok_or("There is no user: add user=…")?;
        let database = take("dbname").unwrap_or_else(|| user.clone());
        let seconds = take("connect_timeout").unwrap_or_else(|| "5".to_owned());
        let connect_timeout = seconds
            .parse()
            .ok()
            .filter(|&seconds: &u64| (1..=600).contains(&seconds))
            .map(Duration::from_secs)
            .ok_or(format!(
                "connect_timeout={seconds} is no number of seconds from 1 to 600"
            ))?;
        let tls = Tls::parse(take("sslmode").as_deref(), take("sslrootcert"))?;
        if tls.as_ref().is_some_and(|tls| tls.mode != Mode::Prefer)
            && matches!(place, Place::Unix(_))
        {
            return Err("sslmode is for TCP: a Unix socket has no TLS".to_owned());
        }
        Ok(Config {
            place,
            user,
            password: take("password"),
            database,
            application: take("application_name").unwrap_or_else(|| "surus".to_owned()),
            options: take("options"),
            connect_timeout,
            tls,
        })
    }

    /// For messages.
    pub(crate) fn server(&self) -> String {
        match &self.place {
            Place::Tcp(host, port) => format!("{host}:{port}"),
            Place::Unix(path) => path.display().to_string(),
        }
    }
}

fn from_pairs(text: &str) -> Result<HashMap<String, String>, String> {
    let mut pairs = HashMap::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (key, after) = rest.split_once('=').ok_or_else(|| {
            format!(
                "The connection string is key=value or a URL; after {} there is no \"=\"",
                if pairs.is_empty() {
                    "its beginning"
                } else {
                    "a value"
                }
            )
        })?;
        let (value, after) = value(after.trim_start())?;
        pairs.insert(key.trim().to_owned(), value);
        rest = after.trim_start();
    }
    Ok(pairs)
}

/// The value, with or without quotes, and what follows it.
fn value(text: &str) -> Result<(String, &str), String> {
    let quoted = text.strip_prefix('\'');
    let mut value = String::new();
    let mut characters = quoted.unwrap_or(text).char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => value.extend(characters.next().map(|(_, next)| next)),
            '\'' if quoted.is_some() => return Ok((value, &text[1 + at + 1..])),
            c if c.is_whitespace() && quoted.is_none() => return Ok((value, &text[at..])),
            c => value.push(c),
        }
    }
    if quoted.is_some() {
        return Err("A quote in the connection string has no end".to_owned());
    }
    Ok((value, ""))
}

fn from_url(text: &str) -> Result<HashMap<String, String>, String> {
    let mut pairs = HashMap::new();
    let mut put = |key: &str, value: &str| {
        if !value.is_empty() {
            pairs.insert(key.to_owned(), decode(value)?);
        }
        Ok::<(), String>(())
    };
    let rest = text.split_once("://").map_or("", |(_, rest)| rest);
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
    put("dbname", database)?;
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (user, password) = user.split_once(':').unwrap_or((user, ""));
    put("user", user)?;
    put("password", password)?;
    // An IPv6 address has brackets, and colons in them.
    let end = host.rfind(']').map_or(0, |end| end + 1);
    let (host, port) = match host[end..].rfind(':') {
        Some(colon) => (&host[..end + colon], &host[end + colon + 1..]),
        None => (host, ""),
    };
    put("host", host.trim_start_matches('[').trim_end_matches(']'))?;
    put("port", port)?;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        put(key, value)?;
    }
    Ok(pairs)
}

/// Percent-encoding.
fn decode(text: &str) -> Result<String, String> {
    let wrong = || {
        "The connection string has a % without two hexadecimal digits of UTF-8 after it".to_owned()
    };
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = rest
            .get(..2)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.ok_or_else(wrong)?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_notations_say_the_same() {
        let pairs = Config::parse("host=db port=5433 user=me password='it''s' dbname = shop");
        assert!(pairs.is_err(), "{pairs:?}");
        let pairs = Config::parse(r"host=db port=5433 user=me password='it\'s' dbname = shop")
            .expect("good");
        let url = Config::parse("postgresql://me:it%27s@db:5433/shop").expect("good");
        assert_eq!(pairs, url);
        assert_eq!(url.place, Place::Tcp("db".to_owned(), 5433));
        assert_eq!(url.password.as_deref(), Some("it's"));
    }

    #[test]
    fn sockets_and_addresses() {
        let unix = Config::parse("host=/run/pg user=me").expect("good");
        assert_eq!(unix.place, Place::Unix("/run/pg/.s.PGSQL.5432".into()));
        assert_eq!(unix.database, "me");
        let unix = Config::parse("postgres://me@%2Frun%2Fpg/x").expect("good");
        assert_eq!(unix.place, Place::Unix("/run/pg/.s.PGSQL.5432".into()));
        let six = Config::parse("postgres://me@[::1]:99/x?connect_timeout=3").expect("good");
        assert_eq!(six.place, Place::Tcp("::1".to_owned(), 99));
        assert_eq!(six.connect_timeout, Duration::from_secs(3));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, said) in [
            ("host=x", "no user"),
            ("user=x sslmode=always", "sslmode=always"),
            ("user=x host=/run sslmode=require", "for TCP"),
            ("user=x sslrootcert=ca.crt", "without sslmode"),
            ("user=x sslmode=require sslrootcert=system", "verify-full"),
            ("user=x port=0", "port=0"),
            ("user=x hots=y", "hots is not known"),
            ("user=x host=a,b", "several servers"),
            ("user=x connect_timeout=never", "connect_timeout=never"),
            ("user", "no \"=\""),
            ("user='x", "no end"),
            ("postgres://a%zz@b", "hexadecimal"),
            ("postgres://a%e4@b", "UTF-8"),
        ] {
            let error = Config::parse(text).expect_err(text);
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
