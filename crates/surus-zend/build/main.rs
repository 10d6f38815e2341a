//! Compiles the C bridge against the installed PHP and exports the functions that stand before libc's.

mod classes;
mod contract;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

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

/// C and assembler in a folder and those below it.
fn find_sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("csrc can be read") {
        let path = entry.expect("csrc can be read").path();
        if path.is_dir() {
            find_sources(&path, found);
        } else if matches!(path.extension().and_then(|e| e.to_str()), Some("c" | "S")) {
            found.push(path);
        }
    }
}

fn main() {
    classes::embed();
    let contract = contract::write();
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
    let mut sources = vec![contract];
    find_sources(Path::new("csrc"), &mut sources);
    sources.sort();
    build
        .include("csrc")
        .files(&sources)
        .compile("surus_bridge");

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
