//! `[process.NAME]`: programs that run beside the workers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::paths::named;
use super::tables::{Process, Restart};
use super::wrong::Wrong;
use super::{fill, positive};
use crate::cli::ServeArgs;

/// A program beside the workers.
#[derive(Clone, Debug)]
pub(crate) struct Sidecar {
    /// For people.
    pub(crate) name: String,
    pub(crate) command: Vec<String>,
    pub(crate) instances: usize,
    pub(crate) reloads: bool,
    /// Also after it has exited with 0.
    pub(crate) always: bool,
    pub(crate) folder: PathBuf,
}

/// More of one program are a mistake.
const MOST: usize = 1000;

/// Resolves and checks them; fills in what is left out.
pub(super) fn of(
    tables: &mut BTreeMap<String, Process>,
    arguments: &ServeArgs,
    base: &Path,
    wrong: &mut Wrong,
) -> Vec<Sidecar> {
    let path = &arguments.path;
    let served = if path.is_dir() { path.as_path() } else { base };
    let mut all = Vec::new();
    for (name, table) in tables {
        let key = |key: &str| format!("process.{name}.{key}");
        let command = table.command.clone().unwrap_or_default().0;
        if command.first().is_none_or(String::is_empty) {
            let why = format!("process.{name} needs a command: [\"program\", \"argument\"]");
            wrong.note(&key("command"), why);
        }
        let instances = fill(&mut table.instances, 1);
        if positive(instances as u64).is_none() || instances > MOST {
            let why = format!("instances must be from 1 to {MOST}");
            wrong.note(&key("instances"), why);
        }
        let folder = match &table.folder {
            Some(folder) => Ok(folder.clone()),
            None => named(served),
        };
        let Some(folder) = wrong.take_of(&key("folder"), folder) else {
            continue;
        };
        if !folder.is_dir() {
            let why = format!("folder: {} is not a folder", folder.display());
            wrong.note(&key("folder"), why);
        }
        table.folder = Some(folder.clone());
        all.push(Sidecar {
            name: name.clone(),
            command,
            instances,
            reloads: fill(&mut table.reload, true),
            always: fill(&mut table.restart, Restart::Always) == Restart::Always,
            folder,
        });
    }
    all
}
