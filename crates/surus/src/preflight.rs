//! Checks before PHP starts, for what would fail later with a less helpful message.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::resource::{getrlimit, Resource};
use surus_master::in_child_as;
use surus_zend::Engine;

use crate::config::{Config, Entry, Variable};
use crate::open_files;
use crate::permitted;

/// The lowest usable limit of open files: a server opens some before its first connection.
const FEWEST_FILES: usize = 64;

/// The smallest usable stack, in bytes.
const SMALLEST_STACK: u64 = 256 * 1024;

/// Returns the settings for PHP.
///
/// # Errors
/// Everything that prevents a start.
pub(crate) fn check(config: &Config) -> Result<Vec<(String, String)>, Vec<String>> {
    let mut ini = config.ini.clone();
    let locks = match ini.iter().any(|(name, _)| name == LOCK_FOLDER) {
        true => Ok(None),
        false => lock_folder(),
    };
    let locks = locks.map(|folder| ini.extend(folder));
    let checks = [
        files(config),
        stack(),
        memory_manager(),
        spool(config),
        locks,
    ];
    let mut wrong: Vec<String> = checks.into_iter().filter_map(Result::err).collect();
    wrong.extend(permitted::check(config));
    superuser(config);
    time_limit(config);
    unset_variables(config);
    folders_of_php(config);
    settings_of_folders(config);
    for why in &config.idle {
        tracing::warn!("{why}");
    }
    match wrong.is_empty() {
        true => Ok(ini),
        false => Err(wrong),
    }
}

/// Warns if `request_timeout` ends requests before PHP's own limit does: the shorter one applies.
fn time_limit(config: &Config) {
    const NAME: &str = "max_execution_time";
    let given = config.ini.iter().rfind(|(name, _)| name == NAME);
    let seconds = given.and_then(|(_, value)| value.trim().parse::<u64>().ok());
    let (Some(seconds), Some(timeout)) = (seconds, config.app.request_timeout) else {
        return;
    };
    let timeout_in_s = timeout.as_secs_f64();
    let why = match seconds {
        0 => format!(
            "[php] {NAME} = 0: request_timeout ({timeout_in_s} s) still ends requests; request_timeout = 0 is no limit"
        ),
        _ if Duration::from_secs(seconds) > timeout => format!(
            "[php] {NAME} = {seconds}: request_timeout ({timeout_in_s} s) ends requests before; set request_timeout = \
             \"{seconds}s\" or more as well"
        ),
        _ => return,
    };
    tracing::warn!("{}", config.say("php.max_execution_time", &why));
}

/// Checks the limit of open files. No warning if it allows fewer connections than the default, but still many.
fn files(config: &Config) -> Result<(), String> {
    const MANY: usize = 1024;
    const MEND: &str = "raise it (ulimit -Hn, LimitNOFILE= of systemd)";
    let wanted = config.edge.connections;
    let allowed = open_files::connections(wanted);
    if open_files::connections(FEWEST_FILES) < FEWEST_FILES / 2 {
        return Err(format!(
            "the limit of open files is below {FEWEST_FILES}, too low to serve: {MEND}"
        ));
    }
    let is_asked_for = wanted != surus_edge::Limits::default().connections;
    if allowed < wanted && (is_asked_for || allowed < MANY) {
        tracing::warn!(
            "max_connections is {wanted}, but the limit of open files allows {allowed} for each worker: {MEND} \
             or lower max_connections"
        );
    }
    Ok(())
}

/// The engine starts on the process's own stack, whose limit the shell sets.
fn stack() -> Result<(), String> {
    match getrlimit(Resource::RLIMIT_STACK) {
        Ok((soft, _)) if soft < SMALLEST_STACK => Err(format!(
            "the limit of the stack is {soft} bytes, too low to run PHP: raise it (ulimit -s 8192, LimitSTACK= of systemd)"
        )),
        _ => Ok(()),
    }
}

/// Isolates need PHP's memory manager, which provides their heaps.
fn memory_manager() -> Result<(), String> {
    match std::env::var("USE_ZEND_ALLOC") {
        Ok(value) if !value.trim_start_matches('0').starts_with(|c: char| c.is_ascii_digit()) => {
            Err(format!(
                "the environment variable USE_ZEND_ALLOC={value} switches PHP's memory manager off, which keeps the memory \
                 of requests apart and bounds it: unset it"
            ))
        }
        _ => Ok(()),
    }
}

/// Checks the spool folder, as the user that workers run as.
fn spool(config: &Config) -> Result<(), String> {
    let folder = &config.app.spool.folder;
    let identity = config.master.identity.as_ref();
    let tried = in_child_as(identity, &|| match tempfile::tempfile_in(folder) {
        Ok(_) => String::new(),
        Err(error) => told(&error),
    });
    let wrong = match tried {
        Ok(Ok(wrong)) if wrong.is_empty() => return Ok(()),
        Ok(Ok(wrong) | Err(wrong)) => wrong,
        Err(error) => {
            return Err(format!(
                "cannot start a process: {error}; raise the limit of processes (ulimit -u, TasksMax= of systemd)"
            ));
        }
    };
    let message = format!(
        "spool_folder: no files can be written in {}: {wrong}",
        folder.display()
    );
    if config.says("app.spool_folder") {
        let message = config.say("app.spool_folder", &message);
        return Err(format!(
            "{message}; make the folder, for the user that workers run as, or name another one"
        ));
    }
    tracing::warn!(
        "{message}; long request bodies and responses will fail: set spool_folder to a folder that can be written to, \
         or mount a tmpfs there"
    );
    Ok(())
}

fn unset_variables(config: &Config) {
    for (name, value) in &config.env {
        if let Variable::Of(theirs) = value {
            if std::env::var_os(theirs).is_none() {
                let why =
                    format!("env: {name} is not set: the server's environment has no {theirs}");
                tracing::warn!("{}", config.say(&format!("env.{name}"), &why));
            }
        }
    }
}

/// Checks settings of PHP that name a folder to which requests write: PHP itself reports errors only when a request
/// fails.
fn folders_of_php(config: &Config) {
    let last = |name: &str| {
        let given = config.ini.iter().rfind(|(given, _)| given == name);
        given.map(|(_, value)| value.trim().trim_matches('"'))
    };
    let sessions = match last("session.save_handler").unwrap_or("files") {
        // "N;MODE;FOLDER"
        "files" => last("session.save_path").and_then(|path| path.rsplit(';').next()),
        _ => None,
    };
    let folders = [
        ("session.save_path", sessions, "sessions"),
        ("upload_tmp_dir", last("upload_tmp_dir"), "uploads"),
    ];
    for (name, folder, what) in folders {
        // An address is for another handler, and may contain a password.
        let Some(folder) = folder.filter(|folder| !folder.is_empty() && !folder.contains("://"))
        else {
            continue;
        };
        let tried = in_child_as(
            config.master.identity.as_ref(),
            &|| match tempfile::tempfile_in(folder) {
                Ok(_) => String::new(),
                Err(error) => told(&error),
            },
        );
        if let Ok(Ok(wrong) | Err(wrong)) = tried {
            if !wrong.is_empty() {
                let why = format!(
                    "[php] {name}: no files can be written in {folder}: {wrong}; {what} will fail: make the folder, for the \
                     user that workers run as, or name another one"
                );
                tracing::warn!("{}", config.say(&format!("php.{name}"), &why));
            }
        }
    }
}

/// Warns of the file in which php-fpm's users put the settings of a folder.
fn settings_of_folders(config: &Config) {
    const NAME: &str = ".user.ini";
    if let Entry::Classic { root, .. } = &config.app.entry {
        let file = root.join(NAME);
        if file.exists() {
            tracing::warn!(
                "{} is not read: move its settings to [php] in surus.toml",
                file.display()
            );
        }
    }
}

fn told(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such folder".to_owned(),
        _ => error.to_string(),
    }
}

/// PHP code gets the permissions of root.
fn superuser(config: &Config) {
    if nix::unistd::Uid::effective().is_root() && config.master.identity.is_none() && !config.dev {
        tracing::warn!(
            "PHP runs as root: a bug in the application can damage the whole system. Set user (user = \"www-data\"), \
             or start the server as another user"
        );
    }
}

/// PHP accepts any name, for `get_cfg_var()`; one that is very similar to that of a setting is probably a mistake.
pub(crate) fn misspelt_settings(config: &Config, engine: &Engine) {
    let known = engine.settings();
    for (name, _) in &config.ini {
        if known.contains(name) {
            continue;
        }
        let near = |other: &String| strsim::jaro_winkler(name, other);
        let nearest = known.iter().max_by(|a, b| near(a).total_cmp(&near(b)));
        if let Some(meant) = nearest.filter(|other| near(other) > NEARLY) {
            tracing::warn!("[php] {name}: PHP has no such setting; is {meant} meant?");
        }
    }
}

/// Similarity in strsim's measure, at most 1: one or two letters differ.
const NEARLY: f64 = 0.94;

const LOCK_FOLDER: &str = "opcache.lockfile_path";

/// OPcache creates a lock file in /tmp, and ends the process if it cannot. Returns another folder if that one is
/// read-only.
fn lock_folder() -> Result<Option<(String, String)>, String> {
    let is_writable = |folder: &Path| tempfile::tempfile_in(folder).is_ok();
    if is_writable(Path::new("/tmp")) {
        return Ok(None);
    }
    let found = scratch_folders()
        .into_iter()
        .find(|folder| is_writable(folder));
    match found.as_deref().and_then(Path::to_str) {
        Some(folder) => Ok(Some((LOCK_FOLDER.to_owned(), folder.to_owned()))),
        None => Err(String::from(
            "no file can be written in /tmp, $TMPDIR, /dev/shm or /run, and OPcache needs one for its locks: have a tmpfs \
             on /tmp (docker run --tmpfs /tmp), or name a folder: --set php.opcache.lockfile_path=FOLDER",
        )),
    }
}

/// Folders for small short-lived files, the usual one first: in a container it may be read-only.
pub(crate) fn scratch_folders() -> Vec<PathBuf> {
    let others = ["/tmp", "/dev/shm", "/run"].map(PathBuf::from);
    let mut folders = vec![std::env::temp_dir()];
    folders.extend(
        others
            .into_iter()
            .filter(|other| *other != std::env::temp_dir()),
    );
    folders
}
