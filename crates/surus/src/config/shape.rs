//! Frameworks, recognised by the shape of an application's files.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A front controller is short: what it loads is at its beginning.
const BEGINNING: u64 = 64 * 1024;

/// Whether a front controller leaves it to Symfony's Runtime component what is done with its kernel.
pub(crate) fn has_symfony_runtime(script: &Path) -> bool {
    mentions(script, "autoload_runtime.php")
}

/// Whether it is the front controller of a Laravel application, which lies in a folder beside `bootstrap/app.php`.
pub(crate) fn is_laravel(script: &Path) -> bool {
    let is_front = script.file_name().is_some_and(|name| name == "index.php");
    let folder = script.parent().and_then(Path::parent);
    is_front
        && folder.is_some_and(|folder| {
            let has = |file: &str| folder.join(file).is_file();
            has("artisan") && has("bootstrap/app.php") && has("vendor/autoload.php")
        })
        && mentions(script, "bootstrap/app.php")
}

fn mentions(script: &Path, what: &str) -> bool {
    // A reader would wait for a FIFO's writer.
    if !script.is_file() {
        return false;
    }
    let mut text = Vec::new();
    let read = File::open(script).and_then(|file| file.take(BEGINNING).read_to_end(&mut text));
    read.is_ok() && String::from_utf8_lossy(&text).contains(what)
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
    #[test]
    fn laravel_has_its_files_beside_the_folder_of_the_front_controller() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("public/index.php");
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let text = "<?php\n$app = require_once __DIR__.'/../bootstrap/app.php';\n";
        file("public/index.php", text);
        for name in ["artisan", "bootstrap/app.php", "vendor/autoload.php"] {
            assert!(!is_laravel(&script));
            file(name, "");
        }
        assert!(is_laravel(&script));
        // A script of another name serves by itself.
        file("public/worker.php", text);
        assert!(!is_laravel(&folder.path().join("public/worker.php")));
        file("public/index.php", "<?php echo 'something else';");
        assert!(!is_laravel(&script));
    }
}
