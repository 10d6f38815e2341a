//! `surus check`: checks what a start would check, without starting.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::process::ExitCode;

use surus_master::{can_listen, Address};
use surus_zend::{Engine, EngineConfig};

use crate::cli::ServeArgs;
use crate::config::Config;
use crate::{control, misconfigured, open_files, preflight, print};

pub(crate) fn run(arguments: &ServeArgs) -> ExitCode {
    let config = match Config::resolve(arguments) {
        Ok(config) => config,
        Err(error) => return misconfigured(&error),
    };
    open_files::raise();
    let mut wrong = logs(&config);
    wrong.extend(doors(&config));
    match preflight::check(&config) {
        Ok(ini) if wrong.is_empty() => wrong.extend(php(&config, ini).err()),
        Ok(_) => {}
        Err(more) => wrong.extend(more),
    }
    if !wrong.is_empty() {
        return misconfigured(&wrong.join("\nsurus: "));
    }
    print(&config.to_toml());
    ExitCode::SUCCESS
}

/// Checks PHP's extensions, and the names of its settings.
fn php(config: &Config, ini: Vec<(String, String)>) -> Result<(), String> {
    let engine = Engine::start(&EngineConfig {
        ini,
        dev: config.dev,
        in_turn: false,
        server_name: None,
        store: 0,
        environment: None,
    });
    let engine = engine.map_err(|error| error.to_string())?;
    preflight::misspelt_settings(config, &engine);
    Ok(())
}

/// Whether the log files can be opened. Does not create them.
fn logs(config: &Config) -> Vec<String> {
    let logs = [
        ("error_log", &config.error_log),
        ("access_log_file", &config.access_log_file),
    ];
    let all = logs
        .into_iter()
        .filter_map(|(key, path)| Some((key, path.as_ref()?)));
    all.filter_map(|(key, path)| {
        let error = try_log(path).err()?;
        let why = cannot_open(key, path, &error);
        Some(config.say(&format!("server.{key}"), &why))
    })
    .collect()
}

pub(crate) fn cannot_open(key: &str, path: &Path, error: &io::Error) -> String {
    let why = match (error.kind(), path.parent()) {
        (io::ErrorKind::NotFound, Some(folder)) => {
            format!("{error}: make the folder {}", folder.display())
        }
        _ => error.to_string(),
    };
    format!("cannot open {key} {}: {why}", path.display())
}

/// Checks the name of a log file: it must not be a keyword that other servers accept in its place, such as `syslog`.
pub(crate) fn named(path: &Path) -> io::Result<()> {
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    if ["syslog", "stderr", "stdout", "off", "none", "true", "false"].contains(&name)
        && !path.starts_with("/dev")
    {
        return Err(io::Error::other(
            "it is the name of a file here. Left out, lines go to standard error or output, which systemd keeps in its journal",
        ));
    }
    Ok(())
}

fn try_log(path: &Path) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    named(path)?;
    match OpenOptions::new().append(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            tempfile::tempfile_in(folder).map(drop)
        }
        opened => opened.map(drop),
    }
}

/// Checks the addresses and the path of the control socket. Addresses of a running server of the same site are allowed:
/// its successor takes them over.
fn doors(config: &Config) -> Vec<String> {
    let mut wrong = Vec::new();
    if let Some(path) = &config.master.control {
        let found = fs::symlink_metadata(path);
        if found.is_ok_and(|found| !found.file_type().is_socket()) {
            let path = path.display();
            let why = format!(
                "control: there is a file at {path} that is not a socket; name another path"
            );
            wrong.push(config.say("server.control", &why));
        }
    }
    let admin = config.master.admin.as_ref().map(|desk| desk.address);
    let errors = can_listen(&config.listen, admin);
    let is_ours = |address: &Address| {
        let chosen = config.master.control.as_deref();
        control::listens(chosen, &config.app.source, address)
    };
    let errors = errors
        .into_iter()
        .filter(|error| !error.taken().is_some_and(is_ours));
    wrong.extend(errors.map(|error| {
        let mut why = error.to_string();
        if error.taken().is_some() {
            why.push_str(
                ". If it is this site's own server, `control` or RUNTIME_DIRECTORY has to lead to its socket",
            );
        }
        config.say(error.key(), &why)
    }));
    wrong
}
