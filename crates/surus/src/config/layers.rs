//! The sources of values: flags override the environment, which overrides surus.toml, which overrides discovered values
//! and defaults. Each source is a layer; for each key the uppermost one wins.
//!
//! A key has the same name everywhere: `workers` is `--set workers=4` and `SURUS_WORKERS`, `isolates.max` is `--set
//! isolates.max=8` and `SURUS_ISOLATES_MAX`. The value is written as in surus.toml; a string needs no quotes.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::hints::typed;
use super::list::Listen;
use super::nearest::nearest;
use super::places::Lines;
use super::tables::{App, Channel, File, Ini, IniValue, Isolates, Keys, Process, Pusher, Server};
use super::wrong::Wrong;
use super::ConfigError;
use crate::cli::ServeArgs;

/// Variables that are not keys: read elsewhere, or by other programs.
const OTHERS: [&str; 8] = [
    "BIN",
    "CONFIG",
    "DEV",
    "LOG",
    "LOG_FORMAT",
    "SNAPSHOT_PAGES",
    "SNAPSHOT_UNCHECKED",
    "UPGRADE_FROM",
];

/// The variables that begin with `SURUS_`, without that prefix.
pub(crate) type Environment = BTreeMap<String, String>;

/// The values of one source.
#[derive(Clone, Debug, Default)]
pub(super) struct Layer {
    /// Its name for people: `--workers`, `SURUS_WORKERS`, the name of the file.
    pub(super) name: String,
    /// The lines of the keys, if it is a file.
    pub(super) lines: Lines,
    pub(super) server: Server,
    pub(super) app: App,
    pub(super) php: BTreeMap<String, IniValue>,
    pub(super) env: BTreeMap<String, IniValue>,
    pub(super) process: BTreeMap<String, Process>,
    pub(super) channel: BTreeMap<String, Channel>,
    pub(super) pusher: BTreeMap<String, Pusher>,
}

impl Layer {
    fn named(name: &str) -> Self {
        Layer {
            name: name.to_owned(),
            ..Layer::default()
        }
    }
}

/// The variables of this process.
pub(super) fn environment() -> Result<Environment, ConfigError> {
    let mut found = Environment::new();
    for (name, value) in std::env::vars_os() {
        let Some(name) = name.to_str().and_then(|name| name.strip_prefix("SURUS_")) else {
            continue;
        };
        let wrong = || ConfigError::new(format!("SURUS_{name} is not UTF-8"));
        let value = value.to_str().ok_or_else(wrong)?;
        found.insert(name.to_owned(), value.to_owned());
    }
    Ok(found)
}

/// `SURUS_DEV`. It shows errors to clients, so only unambiguous values are accepted.
pub(super) fn dev(environment: &Environment) -> Result<bool, ConfigError> {
    match environment.get("DEV").map_or("", String::as_str) {
        "1" | "true" => Ok(true),
        "" | "0" | "false" => Ok(false),
        other => Err(ConfigError::new(format!(
            "SURUS_DEV: {other:?} is neither 1 (or true) nor 0 (or false)"
        ))),
    }
}

/// All layers above the file, the uppermost first.
pub(super) fn all(
    arguments: &ServeArgs,
    environment: &Environment,
    wrong: &mut Wrong,
) -> Vec<Layer> {
    let mut layers = flags(arguments);
    // The last `--set` wins, as with every flag.
    let settings = arguments.set.iter().rev();
    layers.extend(settings.filter_map(|setting| wrong.take(self::setting(setting))));
    for (name, value) in environment {
        layers.extend(wrong.take(variable(name, value)).flatten());
    }
    layers
}

/// A layer with one application and all other tables of a file.
pub(super) fn of_file(name: String, lines: Lines, file: File, app: App) -> Layer {
    Layer {
        name,
        lines,
        server: file.server,
        app,
        php: file.php.0,
        env: file.env,
        process: file.process,
        channel: file.channel,
        pusher: file.pusher,
    }
}

/// The values of all layers together.
pub(super) struct Merged {
    pub(super) server: Server,
    pub(super) app: App,
    pub(super) php: BTreeMap<String, IniValue>,
    pub(super) env: BTreeMap<String, IniValue>,
    pub(super) process: BTreeMap<String, Process>,
    pub(super) channel: BTreeMap<String, Channel>,
    pub(super) pusher: BTreeMap<String, Pusher>,
}

/// Adds what the tables above leave open, by their names.
fn add_below<T: Keys>(all: &mut BTreeMap<String, T>, below: &BTreeMap<String, T>) {
    for (name, table) in below.clone() {
        let upper = all.remove(&name).unwrap_or_default();
        all.insert(name, upper.over(table));
    }
}

pub(super) fn merged(layers: &[Layer]) -> Merged {
    let (mut server, mut app) = (Server::default(), App::default());
    let (mut php, mut env) = (BTreeMap::new(), BTreeMap::new());
    let mut isolates = Isolates::default();
    let (mut process, mut channel, mut pusher) =
        (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for layer in layers {
        server = server.over(layer.server.clone());
        app = app.over(layer.app.clone());
        isolates = isolates.over(layer.app.isolates.clone().unwrap_or_default());
        add_below(&mut process, &layer.process);
        add_below(&mut channel, &layer.channel);
        add_below(&mut pusher, &layer.pusher);
        for (all, some) in [(&mut php, &layer.php), (&mut env, &layer.env)] {
            for (name, value) in some {
                all.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
    }
    app.isolates = Some(isolates);
    Merged {
        server,
        app,
        php,
        env,
        process,
        channel,
        pusher,
    }
}

fn flags(arguments: &ServeArgs) -> Vec<Layer> {
    let mut layers = Vec::new();
    if !arguments.listen.is_empty() {
        let mut layer = Layer::named("--listen");
        layer.server.listen = Some(Listen::Many(arguments.listen.clone()));
        layers.push(layer);
    }
    if arguments.workers.is_some() {
        let mut layer = Layer::named("--workers");
        layer.server.workers = arguments.workers;
        layers.push(layer);
    }
    if arguments.mode.is_some() {
        let mut layer = Layer::named("--mode");
        layer.app.mode = arguments.mode;
        layers.push(layer);
    }
    layers
}

/// The layer of a `--set`.
fn setting(setting: &str) -> Result<Layer, ConfigError> {
    let Some((key, value)) = setting.split_once('=') else {
        let message = format!("--set {setting}: it takes KEY=VALUE");
        return Err(ConfigError::new(message));
    };
    let key = key.trim();
    let name = format!("--set {key}");
    if let Some(setting) = key.strip_prefix("php.") {
        let mut layer = Layer::named(&name);
        let value = IniValue::Text(value.to_owned());
        layer.php.insert(setting.to_owned(), value);
        return Ok(layer);
    }
    if let Some(variable) = key.strip_prefix("env.") {
        let mut layer = Layer::named(&name);
        let value = IniValue::Text(value.to_owned());
        layer.env.insert(variable.to_owned(), value);
        return Ok(layer);
    }
    let bare = key.strip_prefix("server.").or(key.strip_prefix("app."));
    let bare = bare.unwrap_or(key);
    let last = bare.rsplit('.').next().unwrap_or(bare);
    keyed(&name, bare, value)?
        .ok_or_else(|| unknown(&name, &format!("--set {}", near_key(bare, last))))
}

/// `None` for variables that do not belong to Surus.
fn variable(name: &str, value: &str) -> Result<Option<Layer>, ConfigError> {
    if OTHERS.contains(&name) || is_of_kubernetes(name) {
        return Ok(None);
    }
    let full = format!("SURUS_{name}");
    if name == "PHP" {
        // The error does not show the value: it may contain a password.
        let wrong = || {
            let example = "{ memory_limit = \"64M\", \"session.name\" = \"id\" }";
            ConfigError::new(format!("{full}: expected a table such as {example}"))
        };
        let mut layer = Layer::named(&full);
        layer.php = self::value(value).try_into::<Ini>().map_err(|_| wrong())?.0;
        return Ok(Some(layer));
    }
    if name == "ENV" {
        // As above.
        let wrong = || {
            ConfigError::new(format!(
                "{full}: expected a table such as {{ APP_ENV = \"prod\" }}"
            ))
        };
        let mut layer = Layer::named(&full);
        layer.env = self::value(value).try_into().map_err(|_| wrong())?;
        return Ok(Some(layer));
    }
    let lower = name.to_ascii_lowercase();
    let key = match lower.strip_prefix("isolates_") {
        Some(key) => format!("isolates.{key}"),
        None => lower,
    };
    let layer = if name == name.to_ascii_uppercase() {
        keyed(&full, &key, value)?
    } else {
        None
    };
    let unknown = || unknown(&full, &near_variable(name));
    layer.ok_or_else(unknown).map(Some)
}

/// Kubernetes sets these in each pod if there is a service called `surus`.
fn is_of_kubernetes(name: &str) -> bool {
    name == "PORT"
        || ["PORT_", "SERVICE_HOST", "SERVICE_PORT"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
}

fn unknown(name: &str, near: &str) -> ConfigError {
    let all = "`surus check` prints every key";
    ConfigError::new(match near {
        "" | "--set " => format!("{name}: there is no such key; {all}"),
        near => format!("{name}: there is no such key; is `{near}` meant?"),
    })
}

fn keys() -> impl Iterator<Item = String> {
    let isolates = Isolates::KEYS.iter().map(|key| format!("isolates.{key}"));
    let keys = Server::KEYS.iter().chain(App::KEYS);
    keys.map(|key| (*key).to_owned()).chain(isolates)
}

/// `last`: the part after the name of an application, which flags do not need.
fn near_key(wrong: &str, last: &str) -> String {
    let is_key = keys().any(|key| key == last);
    let near = is_key.then(|| last.to_owned());
    near.or_else(|| nearest(wrong, keys())).unwrap_or_default()
}

fn near_variable(wrong: &str) -> String {
    let names = keys().map(|key| key.replace('.', "_").to_uppercase());
    let others = OTHERS.iter().map(|name| (*name).to_owned());
    let names = names.chain(others).chain(["PHP", "ENV"].map(str::to_owned));
    let near = nearest(&wrong.to_uppercase(), names);
    near.map_or_else(String::new, |name| format!("SURUS_{name}"))
}

/// A layer with this one key; `None` if there is no such key.
fn keyed(name: &str, key: &str, text: &str) -> Result<Option<Layer>, ConfigError> {
    let wrong = |error: toml::de::Error| {
        ConfigError::new(format!("{name}: {}", typed(error.message().trim_end())))
    };
    let mut layer = Layer::named(name);
    if Server::KEYS.contains(&key) {
        layer.server = parsed(key, text).map_err(wrong)?;
    } else if App::KEYS.contains(&key) {
        layer.app = parsed(key, text).map_err(wrong)?;
    } else {
        match key.strip_prefix("isolates.") {
            Some(key) if Isolates::KEYS.contains(&key) => {
                layer.app.isolates = Some(parsed(key, text).map_err(wrong)?);
            }
            _ => return Ok(None),
        }
    }
    Ok(Some(layer))
}

/// A table with this one key.
fn parsed<T: DeserializeOwned>(key: &str, text: &str) -> Result<T, toml::de::Error> {
    let typed = Table::from_iter([(key.to_owned(), value(text))]);
    // A value that looks like a number may be meant as text: memory_limit = -1.
    let literal = Table::from_iter([(key.to_owned(), Value::String(text.to_owned()))]);
    let typed = typed.try_into();
    typed.or_else(|error| literal.try_into().map_err(|_: toml::de::Error| error))
}

fn value(text: &str) -> Value {
    let parsed = toml::from_str::<Table>(&format!("value = {text}")).ok();
    parsed
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| Value::String(text.to_owned()))
}
