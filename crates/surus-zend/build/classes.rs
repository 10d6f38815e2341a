//! The PHP classes that are part of the binary.

use std::{env, fs, path::Path};

/// Folders of classes, the namespace of each, and how their files are called in messages. The packages' composer.json say
/// the same (php/tests/PackagesTest.php); `psr` stands in for packages that are not installed.
const PACKAGES: [(&str, &str, &str); 11] = [
    ("core/src", "surus", ""),
    ("auth/src", "surus\\auth", "Auth/"),
    ("broadcasting/src", "surus\\broadcasting", "Broadcasting/"),
    ("cache/src", "surus\\cache", "Cache/"),
    ("config/src", "surus\\config", "Config/"),
    ("queue/src", "surus\\queue", "Queue/"),
    ("runtime/src", "surus\\runtime", "Runtime/"),
    ("session/middleware", "surus\\middleware", "Middleware/"),
    ("session/src", "surus\\session", "Session/"),
    ("view/src", "surus\\view", "View/"),
    ("psr", "psr", "psr/"),
];

/// The PHP classes that are part of the binary, as a Rust table sorted by lower-case name: PSR-4 below the folders of `php`.
pub(crate) fn embed() {
    let mut rows = Vec::new();
    for (folder, namespace, prefix) in PACKAGES {
        let root = format!("../../php/{folder}");
        println!("cargo:rerun-if-changed={root}");
        let root = fs::canonicalize(&root).expect("the folder of classes is there");
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            println!("cargo:rerun-if-changed={}", folder.display());
            for entry in fs::read_dir(&folder).expect("the folder can be read") {
                let path = entry.expect("the folder can be read").path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "php") {
                    let file = path.strip_prefix(&root).expect("below its root");
                    let file = file.to_str().expect("a name in UTF-8");
                    let class = file.trim_end_matches(".php").replace('/', "\\");
                    let class = format!("{namespace}\\{}", class.to_ascii_lowercase());
                    rows.push((class, format!("surus:{prefix}{file}"), path));
                }
            }
        }
    }
    rows.sort();
    let rows: String = rows
        .iter()
        .map(|(class, file, path)| format!("({class:?}, {file:?}, include_str!({path:?})),\n"))
        .collect();
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(
        Path::new(&out).join("php_classes.rs"),
        format!("&[\n{rows}]\n"),
    )
    .expect("OUT_DIR can be written");
}
