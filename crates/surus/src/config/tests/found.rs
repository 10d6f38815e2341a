//! What is served, depending on the contents of a folder, the mode, and the configuration file.

use super::super::tables::{self, Keys};
use super::*;

#[test]
fn a_folder_is_served_by_what_is_in_it() {
    let all = [("app.php", ""), ("public/index.php", ""), ("index.php", "")];
    let folder = Folder::with(&all);
    let config = folder.serve("{}", &[]).unwrap();
    assert_eq!(config.app.entry, coroutine(folder.path("app.php")));
    assert_eq!(config.app.label, "app.php");

    let folder = Folder::with(&all[1..]);
    let config = folder.serve("{}", &[]).unwrap();
    assert_eq!(config.app.entry, classic(folder.path("public")));
    assert_eq!(config.app.label, "public/index.php");

    let folder = Folder::with(&all[2..]);
    let config = folder.serve("{}", &[]).unwrap();
    assert_eq!(config.app.entry, classic(folder.path("")));
    assert_eq!(config.app.label, "index.php");

    let folder = Folder::with(&[("readme.txt", "")]);
    let error = folder.serve("{}", &[]).unwrap_err();
    assert!(
        error.ends_with(
            "has no app.php, no public/index.php, no index.php; make one, or name a script"
        ),
        "{error}"
    );
}

#[test]
fn a_symfony_application_boots_once() {
    let loader = "<?php require_once dirname(__DIR__) . '/vendor/autoload_runtime.php';";
    let folder = Folder::with(&[("public/index.php", loader)]);
    let config = folder.serve("{}", &[]).unwrap();
    let script = folder.path("public/index.php");
    assert_eq!(
        config.app.entry,
        Entry::Worker {
            script,
            is_snapshot: false
        }
    );
    assert_eq!(config.app.files, Some(folder.path("public")));
    let config = folder.serve("{} --mode classic", &[]).unwrap();
    assert_eq!(config.app.entry, classic(folder.path("public")));
    let config = folder.serve("{}/public/index.php", &[]).unwrap();
    assert_eq!(config.app.entry, classic(folder.path("public")));
    let folder = Folder::with(&[("app.php", ""), ("public/index.php", loader)]);
    let config = folder.serve("{}", &[]).unwrap();
    assert_eq!(config.app.entry, coroutine(folder.path("app.php")));
}

#[test]
fn a_laravel_application_boots_once() {
    let front = "<?php $app = require_once __DIR__.'/../bootstrap/app.php';";
    let files = [
        ("artisan", ""),
        ("bootstrap/app.php", ""),
        ("public/index.php", front),
        ("vendor/autoload.php", ""),
    ];
    let folder = Folder::with(&files);
    let config = folder.serve("{}", &[]).unwrap();
    let script = folder.path("public/index.php");
    assert_eq!(
        config.app.entry,
        Entry::Worker {
            script,
            is_snapshot: false
        }
    );
    let config = folder.serve("{} --mode classic", &[]).unwrap();
    assert_eq!(config.app.entry, classic(folder.path("public")));
    // Without its dependencies it does not boot.
    let folder = Folder::with(&files[..3]);
    let config = folder.serve("{}", &[]).unwrap();
    assert_eq!(config.app.entry, classic(folder.path("public")));
}

#[test]
fn a_mode_picks_among_what_is_there() {
    let folder = Folder::with(&[("app.php", ""), ("index.php", "")]);
    assert_eq!(
        folder.serve("{} --mode classic", &[]).unwrap().app.entry,
        classic(folder.path(""))
    );
    let folder = Folder::with(&[("index.php", "")]);
    assert!(folder
        .serve("{} --mode coroutine", &[])
        .unwrap_err()
        .ends_with("has no app.php; make one, or name a script"));
    let folder = Folder::with(&[("page.php", "")]);
    let config = folder.serve("{} --mode classic", &[]).unwrap();
    assert_eq!(config.app.entry, classic(folder.path("")));
}

#[test]
fn a_script_is_served_itself() {
    let folder = Folder::with(&[("my.php", ""), ("index.php", ""), ("notes.txt", "")]);
    let config = folder.serve("{}/my.php", &[]).unwrap();
    assert_eq!(config.app.entry, coroutine(folder.path("my.php")));
    assert_eq!(config.app.label, "my.php");
    assert_eq!(
        folder.serve("{}/index.php", &[]).unwrap().app.entry,
        classic(folder.path(""))
    );
    let config = folder.serve("{}/my.php --mode classic", &[]).unwrap();
    assert_eq!(
        config.app.entry,
        Entry::Classic {
            root: folder.path(""),
            front: "my.php".to_owned()
        }
    );
    let error = folder.serve("{}/nope.php", &[]).unwrap_err();
    assert!(
        error.ends_with("nope.php: no such file or folder"),
        "{error}"
    );
    let error = folder.serve("{}/notes.txt", &[]).unwrap_err();
    assert!(
        error.ends_with("notes.txt is neither a PHP script nor a folder"),
        "{error}"
    );
}

#[test]
fn names_in_a_file_start_from_its_folder() {
    let text = "[app.blog]\nmode = \"classic\"\nroot = \"site\"\n[php]\nmemory_limit = \"64M\"\ndisplay_errors = false\nprecision = 7";
    let folder = Folder::with(&[("site/page.php", ""), ("surus.toml", text)]);
    for arguments in ["{}", "--config {}/surus.toml", "{}/surus.toml"] {
        let config = folder.serve(arguments, &[]).unwrap();
        assert_eq!(
            config.app.entry,
            classic(folder.path("site")),
            "{arguments}"
        );
        let ini = |name: &str| {
            config
                .ini
                .iter()
                .find(|(key, _)| key == name)
                .map(|(_, value)| value.as_str())
        };
        assert_eq!(ini("memory_limit"), Some("64M"));
        assert_eq!(ini("display_errors"), Some("0"));
        assert_eq!(ini("precision"), Some("7"));
    }
}

/// PHP changes the working directory: a relative path would mean another file in the next request.
#[test]
fn paths_are_absolute_wherever_they_are_said() {
    // These files exist in the working directory of this test, too.
    let folder = Folder::with(&[("app.php", ""), ("src/main.rs", ""), ("surus.toml", "")]);
    let here = std::env::current_dir().expect("a working directory");
    let mut keys = 0;
    let all = tables::Server::DESCRIPTIONS
        .iter()
        .zip(tables::Server::KEYS);
    let app = tables::App::DESCRIPTIONS.iter().zip(tables::App::KEYS);
    let tables = all
        .map(|it| ("server", it))
        .chain(app.map(|it| ("app.app", it)));
    for (table, ((of, _), key)) in tables.filter(|(_, ((of, _), _))| of.contains("PathBuf")) {
        keys += 1;
        let name = match *key {
            "script" | "boot" => "src/main.rs",
            _ => "src",
        };
        let (mode, flags) = match *key {
            "boot" => ("mode = 'snapshot'\n", "--mode snapshot "),
            _ => ("", ""),
        };
        let found = |base: &Path, config: &Config| {
            let line = line(config, key);
            let path = base.join(name);
            assert!(
                line.contains(&format!("\"{}\"", path.display())),
                "{of}: {line}"
            );
        };
        fs::write(
            folder.path("surus.toml"),
            format!("[{table}]\n{mode}{key} = '{name}'\n"),
        )
        .unwrap();
        found(&folder.path(""), &folder.serve("{}", &[]).unwrap());
        fs::write(folder.path("surus.toml"), "").unwrap();
        let flag = format!("{{}} {flags}--set {key}={name}");
        found(&here, &folder.serve(&flag, &[]).unwrap());
        let variable = format!("SURUS_{}", key.to_uppercase());
        let plain = format!("{{}} {flags}");
        let served = folder.serve(plain.trim_end(), &[(&variable, name)]);
        found(&here, &served.unwrap());
    }
    assert!(keys >= 8, "{keys}");
}

#[test]
fn a_file_without_an_application_leaves_finding_it() {
    let folder = Folder::with(&[("app.php", ""), ("surus.toml", "[server]\nworkers = 5")]);
    let config = folder.serve("{}", &[]).unwrap();
    assert_eq!(
        (config.app.entry, config.workers),
        (coroutine(folder.path("app.php")), 5)
    );
}

#[test]
fn processes_are_classic_with_a_process_for_each_request() {
    let folder = Folder::with(&[("index.php", "")]);
    let config = folder.serve("{} --mode process", &[]).unwrap();
    assert_eq!(config.app.entry.mode(), Mode::Classic);
    assert_eq!(config.app.processes, Some(PROCESSES));
    assert_eq!(line(&config, "mode"), "mode = \"process\" # --mode");
    assert_eq!(line(&config, "processes"), "processes = 8 # default");
    let config = folder
        .serve("{} --mode classic", &[("SURUS_PROCESSES", "3")])
        .unwrap();
    assert_eq!(config.app.processes, Some(3));
    let error = folder.serve("{}", &[("SURUS_PROCESSES", "0")]).unwrap_err();
    assert_eq!(error, "SURUS_PROCESSES: processes must be at least 1");
}
