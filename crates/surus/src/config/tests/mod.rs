//! Configurations of folders made for each test, with its own flags and environment.

mod found;
mod keys;
mod mistakes;
mod printed;
mod reference;

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Parser;

use super::*;
use crate::cli::{Cli, Command};

/// A temporary folder, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn with(files: &[(&str, &str)]) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("surus-config-{}-{number}", std::process::id()));
        for (name, text) in files {
            let file = path.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        Folder(path.canonicalize().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// `surus serve` with `{}` standing for the folder.
    fn serve(&self, arguments: &str, environment: &[(&str, &str)]) -> Result<Config, String> {
        let folder = self.0.to_str().unwrap();
        let arguments = arguments
            .split_whitespace()
            .map(|argument| argument.replace("{}", folder));
        let cli = Cli::try_parse_from(
            ["surus".to_owned(), "serve".to_owned()]
                .into_iter()
                .chain(arguments),
        )
        .map_err(|error| error.to_string())?;
        let Command::Serve(arguments) = cli.command else {
            panic!("not serve")
        };
        let environment = environment
            .iter()
            .map(|(name, value)| (name["SURUS_".len()..].to_owned(), (*value).to_owned()))
            .collect();
        Config::resolve_with(&arguments, &environment).map_err(|error| error.to_string())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn coroutine(script: PathBuf) -> Entry {
    Entry::Coroutine { script }
}

fn classic(root: PathBuf) -> Entry {
    Entry::Classic {
        root,
        front: "index.php".to_owned(),
    }
}

/// The line of this key in the output of `surus check`, with single spaces.
fn line(config: &Config, key: &str) -> String {
    let printed = config.to_toml();
    let (key, from) = match key.strip_prefix("isolates.") {
        Some(key) => (key, ".isolates]"),
        None => (key, ""),
    };
    let begin = printed.find(from).unwrap();
    let line = printed[begin..]
        .lines()
        .find(|line| line.starts_with(&format!("{key} =")));
    let words: Vec<&str> = line.unwrap_or_default().split_whitespace().collect();
    words.join(" ")
}
