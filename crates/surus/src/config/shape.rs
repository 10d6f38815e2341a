//! Frameworks, recognised by the shape of an application's files.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A front controller is short: what it loads is at its beginning.
const BEGINNING: u64 = 64 * 1024;

/// Whether a front controller leaves it to Symfony's Runtime component what is done with its kernel.
pub(crate) fn has_symfony_runtime(script: &Path) -> bool {
    const LOADER: &str = "autoload_runtime.php";
    // A reader would wait for a FIFO's writer.
    if !script.is_file() {
        return false;
    }
    let mut text = Vec::new();
    let read = File::open(script).and_then(|file| file.take(BEGINNING).read_to_end(&mut text));
    read.is_ok() && String::from_utf8_lossy(&text).contains(LOADER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loader_of_the_runtime_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("index.php");
        assert!(!has_symfony_runtime(&script));
        std::fs::write(&script, "<?php require_once 'vendor/autoload.php';").unwrap();
        assert!(!has_symfony_runtime(&script));
        let text = "<?php\nrequire_once dirname(__DIR__).'/vendor/autoload_runtime.php';\n";
        std::fs::write(&script, text).unwrap();
        assert!(has_symfony_runtime(&script));
        assert!(!has_symfony_runtime(folder.path()));
    }
}
