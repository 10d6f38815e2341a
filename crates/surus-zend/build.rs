//! Compiles the C bridge against the installed PHP and exports the functions that stand before libc's.

use std::{env, fs, path::Path, process::Command};

/// Functions that the executable must export so that libphp, libpq, libcurl and the extensions call ours. The list is
/// the `hook!` and C definitions; the build fails when one of them is missing.
const EXPORTS: &str = "exports.txt";

fn php_config() -> String {
    println!("cargo:rerun-if-env-changed=PHP_CONFIG");
    if let Ok(name) = env::var("PHP_CONFIG") {
        return name;
    }
    for name in [
        "php-config8.2",
        "php-config8.3",
        "php-config8.4",
        "php-config8.5",
        "php-config",
    ] {
        if Command::new(name)
            .arg("--version")
            .output()
            .is_ok_and(|o| o.status.success())
        {
            return name.to_string();
        }
    }
    panic!("no php-config found: install php8.2-dev and libphp8.2-embed, or set PHP_CONFIG");
}

fn ask(program: &str, option: &str) -> String {
    let output = Command::new(program)
        .arg(option)
        .output()
        .expect("php-config runs");
    String::from_utf8(output.stdout)
        .expect("php-config speaks UTF-8")
        .trim()
        .to_string()
}

/// The PHP classes that are part of the binary, as a Rust table sorted by lower-case name: PSR-4 below php/src, and
/// below php/psr what stands in for packages that are not installed.
fn embed_php_classes() {
    let mut rows = Vec::new();
    for (root, namespace, prefix) in [
        ("../../php/src", "surus", ""),
        ("../../php/psr", "psr", "psr/"),
    ] {
        println!("cargo:rerun-if-changed={root}");
        let root = fs::canonicalize(root).expect("the folder of classes is there");
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

fn main() {
    embed_php_classes();
    let config = php_config();
    let version = ask(&config, "--version");
    let short: String = version.split('.').take(2).collect::<Vec<_>>().join(".");

    let mut build = cc::Build::new();
    for flag in ask(&config, "--includes").split_whitespace() {
        build.flag(flag);
    }
    build
        .define("_GNU_SOURCE", None)
        .flag("-std=gnu11")
        .flag("-Wno-unused-parameter")
        .flag("-Wno-sign-compare")
        .flag("-fno-omit-frame-pointer");
    let mut sources: Vec<_> = fs::read_dir("csrc")
        .expect("csrc is there")
        .map(|entry| entry.expect("csrc can be read").path())
        .filter(|path| matches!(path.extension().and_then(|e| e.to_str()), Some("c" | "S")))
        .collect();
    sources.sort();
    build.files(&sources).compile("surus_bridge");

    println!("cargo:rerun-if-changed=csrc");
    println!("cargo:rerun-if-changed={EXPORTS}");
    println!("cargo:rustc-link-lib=dylib=php{short}");

    // Link arguments of a library do not reach the executable: its build script gets the list as metadata.
    let exports = fs::read_to_string(Path::new(EXPORTS)).expect("the list of exports is there");
    let names: Vec<&str> = exports.split_whitespace().collect();
    for name in &names {
        println!("cargo:rustc-link-arg=-Wl,-u,{name},--export-dynamic-symbol={name}");
    }
    println!("cargo:exports={}", names.join(" "));
}
