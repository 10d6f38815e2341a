//! The surus.toml itself: which one is meant, and what stands in it.

use std::path::{Path, PathBuf};

use super::layers::{self, Environment, Layer};
use super::tables::{self, File};
use super::{places, wrong, ConfigError};
use crate::cli::ServeArgs;

/// The folder that relative names start from, the application's name and the configuration in that folder (an empty one
/// if there is none).
pub(super) fn read(
    arguments: &ServeArgs,
    environment: &Environment,
) -> Result<(PathBuf, String, Layer), ConfigError> {
    let path = &arguments.path;
    let named = arguments
        .config
        .clone()
        .or_else(|| environment.get("CONFIG").map(PathBuf::from));
    let is_config = path
        .extension()
        .is_some_and(|extension| extension == "toml");
    let none = |folder| Ok((folder, "app".to_owned(), Layer::default()));
    let file = match named {
        Some(file) => file,
        None if is_config => path.clone(),
        None if path.is_dir() && path.join("surus.toml").is_file() => path.join("surus.toml"),
        None if path.is_dir() => return none(path.clone()),
        None => return none(parent(path)),
    };
    let text = std::fs::read_to_string(&file)
        .map_err(|error| ConfigError::new(format!("cannot read {}: {error}", file.display())))?;
    let mut parsed: File = wrong::parse(&file.display().to_string(), &text)?;
    if !parsed.route.is_empty() {
        return Err(ConfigError::new(
            "[[route]] is not supported yet: one application is served",
        ));
    }
    if parsed.app.len() > 1 {
        let names: Vec<&str> = parsed.app.keys().map(String::as_str).collect();
        let names = names.join(", ");
        return Err(ConfigError::new(format!(
            "one application can be served, not several: {names}"
        )));
    }
    let base = parent(&file);
    for app in parsed.app.values_mut() {
        for path in [
            &mut app.script,
            &mut app.root,
            &mut app.spool_folder,
            &mut app.public,
        ]
        .into_iter()
        .flatten()
        {
            *path = base.join(&path);
        }
        for path in app.sendfile.iter_mut().flatten() {
            *path = base.join(&path);
        }
    }
    let (name, app) = parsed
        .app
        .pop_first()
        .unwrap_or_else(|| ("app".to_owned(), tables::App::default()));
    let layer = layers::of_file(
        file.display().to_string(),
        places::lines(&text),
        parsed,
        app,
    );
    Ok((base, name, layer))
}

pub(super) fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => PathBuf::from("."),
        Some(parent) => parent.to_owned(),
        None => path.to_owned(),
    }
}
