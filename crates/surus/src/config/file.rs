//! Finds and reads the surus.toml.

use std::io;
use std::path::{Path, PathBuf};

use super::layers::{self, Environment, Layer};
use super::tables::{self, File};
use super::{paths, places, wrong, ConfigError};
use crate::cli::ServeArgs;

/// Returns the base folder for relative names, the application's name and the configuration in that folder (an empty
/// one if there is none).
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
        // A file that exists and cannot be read is an error, and not ignored.
        None if path.is_dir() && path.join("surus.toml").symlink_metadata().is_ok() => {
            path.join("surus.toml")
        }
        None if path.is_dir() => return none(path.clone()),
        None => return none(parent(path)),
    };
    let text = text_of(&file)?;
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
            "one application can be served, not several: {names}. Give each a file and a server of its own"
        )));
    }
    let base = parent(&file);
    let (name, app) = parsed
        .app
        .pop_first()
        .unwrap_or_else(|| ("app".to_owned(), tables::App::default()));
    let mut layer = layers::of_file(
        file.display().to_string(),
        places::lines(&text),
        parsed,
        app,
    );
    paths::start_from(&paths::named(&base)?, &mut layer);
    Ok((base, name, layer))
}

fn text_of(file: &Path) -> Result<String, ConfigError> {
    let name = file.display();
    let bytes = std::fs::read(file).map_err(|error| {
        let why = match error.kind() {
            io::ErrorKind::IsADirectory => "it is a folder, not a file".to_owned(),
            io::ErrorKind::NotFound if file.is_symlink() => {
                "it is a link to a file that is not there".to_owned()
            }
            io::ErrorKind::PermissionDenied => format!(
                "it is not permitted to user {}; see the permissions of the file and of its folders",
                nix::unistd::Uid::effective()
            ),
            _ => error.to_string(),
        };
        ConfigError::new(format!("cannot read {name}: {why}"))
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.iter().filter(|&&byte| byte == b'\n').count() + 1;
        ConfigError::new(format!(
            "{name}, line {line}: this is not UTF-8: save the file in that encoding"
        ))
    })
}

pub(super) fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => PathBuf::from("."),
        Some(parent) => parent.to_owned(),
        None => path.to_owned(),
    }
}
