//! The environment that PHP sees, as under php-fpm: a clean one unless `clear_env = false`, in it what `[env]` says, and the
//! user that workers run as.

use std::env;
use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStrExt;

use nix::unistd::{Uid, User};

use crate::config::{Config, Variable};

/// `NAME=value` each.
pub(crate) fn of(config: &Config) -> Vec<CString> {
    let mut variables: Vec<(OsString, OsString)> = match config.app.clear_env {
        true => Vec::new(),
        false => env::vars_os().collect(),
    };
    for (name, value) in who(config) {
        set(&mut variables, name.into(), value);
    }
    for (name, value) in &config.env {
        let value = match value {
            Variable::Text(text) => text.into(),
            // preflight.rs warns where there is none.
            Variable::Of(theirs) => match env::var_os(theirs) {
                Some(value) => value,
                None => continue,
            },
        };
        set(&mut variables, name.into(), value);
    }
    let entries = variables.into_iter().map(|(name, value)| {
        let entry = [name.as_bytes(), b"=", value.as_bytes()].concat();
        // The configuration has been checked, and no environment holds a NUL byte.
        CString::new(entry).unwrap_or_default()
    });
    entries.filter(|entry| !entry.is_empty()).collect()
}

/// The user that PHP runs as. One that has a number only has no name and no home.
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
