//! The environment that PHP sees, as under php-fpm: empty unless `clear_env = false`, plus the variables of `[env]` and
//! the user that workers run as. In worker mode, Symfony's Runtime component is told which Runtime serves here.

use std::env;
use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use nix::unistd::{Uid, User};

use crate::config::{has_symfony_runtime, Config, Entry, Variable};

/// The path that a variable of this process has; none if it is empty.
pub(crate) fn path_in(name: &str) -> Option<PathBuf> {
    let value = env::var_os(name).filter(|value| !value.is_empty())?;
    Some(value.into())
}

/// The variables, each as `NAME=value`.
pub(crate) fn of(config: &Config) -> Vec<CString> {
    let mut variables: Vec<(OsString, OsString)> = match config.app.clear_env {
        true => Vec::new(),
        false => env::vars_os().collect(),
    };
    if let Some((name, value)) = runtime(config) {
        if variables.iter().all(|(other, _)| other != name) {
            variables.push((name.into(), value.into()));
        }
    }
    for (name, value) in who(config) {
        set(&mut variables, name.into(), value);
    }
    for (name, value) in &config.env {
        let value = match value {
            Variable::Text(text) => text.into(),
            // preflight.rs warns if there is none.
            Variable::Of(theirs) => match env::var_os(theirs) {
                Some(value) => value,
                None => continue,
            },
        };
        set(&mut variables, name.into(), value);
    }
    let entries = variables.into_iter().map(|(name, value)| {
        let entry = [name.as_bytes(), b"=", value.as_bytes()].concat();
        // The configuration has been checked, and no environment contains a NUL byte.
        CString::new(entry).unwrap_or_default()
    });
    entries.filter(|entry| !entry.is_empty()).collect()
}

/// The class that serves a Symfony application in worker mode.
fn runtime(config: &Config) -> Option<(&'static str, &'static str)> {
    let Entry::Worker { script, .. } = &config.app.entry else {
        return None;
    };
    has_symfony_runtime(script).then_some(("APP_RUNTIME", "Surus\\Runtime\\SymfonyRuntime"))
}

/// Variables about the user that PHP runs as. None for a user id without an account.
fn who(config: &Config) -> Vec<(&'static str, OsString)> {
    let user = match &config.master.identity {
        Some(identity) => User::from_name(identity.name()),
        None => User::from_uid(Uid::effective()),
    };
    let Ok(Some(user)) = user else {
        return Vec::new();
    };
    vec![
        ("USER", user.name.clone().into()),
        ("LOGNAME", user.name.into()),
        ("HOME", user.dir.into_os_string()),
    ]
}

fn set(variables: &mut Vec<(OsString, OsString)>, name: OsString, value: OsString) {
    variables.retain(|(other, _)| *other != name);
    variables.push((name, value));
}
