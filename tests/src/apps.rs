//! Applications of frameworks (`tests/apps`), each in a folder of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process;
use crate::temp::TempDir;

#[derive(Debug)]
pub struct App {
    root: PathBuf,
    folder: TempDir,
}

impl App {
    /// Copies an application: what it writes stays out of the repository.
    pub fn new(name: &str) -> Self {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("apps")
            .join(name);
        assert!(source.exists(), "no application {}", source.display());
        let folder = TempDir::new(name);
        let root = folder.path().join("app");
        let mut copy = Command::new("cp");
        copy.arg("-r").arg(source).arg(&root);
        process::run(copy);
        Self { root, folder }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Writes a file of the application.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        self.folder.file(&format!("app/{name}"), text)
    }
}
