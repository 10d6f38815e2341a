use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Parser;

use super::*;
use crate::cli::{Cli, Command};

/// A folder of its own, removed when dropped.
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
fn defaults() {
    let folder = Folder::with(&[("app.php", "")]);
    let config = folder.serve("{}", &[]).unwrap();
    assert_eq!(config.listen, ["127.0.0.1:8080".parse().unwrap()]);
    assert_eq!(
        config.workers,
        std::thread::available_parallelism().unwrap().get()
    );
    assert!(!config.dev && config.settings.access_log.is_none());
    assert_eq!(config.app.max_requests_in_flight, 1024);
    assert_eq!(config.app.request_timeout, Some(Duration::from_secs(30)));
    assert_eq!(config.app.slow_log, None);
    assert_eq!(config.app.preempt_after, Duration::from_millis(10));
    assert_eq!(config.edge.body_bytes, 8 << 20);
}

#[test]
fn the_edges_limits_are_keys_like_all_others() {
    let text = "[server]\nmax_connections_per_address = 9\nmax_headers = 50\nbody_timeout = \"2s\"\nmin_rate = \"4K\"\n[app.x]\nmax_queue = 7";
    let folder = Folder::with(&[("app.php", ""), ("surus.toml", text)]);
    let environment = [
        ("SURUS_WRITE_TIMEOUT", "3s"),
        ("SURUS_MIN_RATE", "0"),
        ("SURUS_QUEUE_TIMEOUT", "1s"),
    ];
    let config = folder.serve("{}", &environment).unwrap();
    let edge = &config.edge;
    assert_eq!((edge.connections_per_address, edge.header_count), (9, 50));
    assert_eq!(edge.body_timeout, Duration::from_secs(2));
    assert_eq!(edge.write_timeout, Duration::from_secs(3));
    assert_eq!(edge.min_rate, 0);
    assert_eq!(config.app.max_queue, 7);
    assert_eq!(config.app.queue_timeout, Duration::from_secs(1));
}

#[test]
fn what_the_edge_does_beside() {
    let text = "[server]\naccess_log = \"json\"\ntrusted_proxies = [\"10.0.0.0/8\", \"::1\"]\nliveness = \"/livez\"";
    let folder = Folder::with(&[("app.php", ""), ("surus.toml", text)]);
    let settings = folder
        .serve("{}", &[("SURUS_REQUEST_IDS", "true")])
        .unwrap()
        .settings;
    assert!(settings.access_log.is_some() && settings.request_ids && settings.compression);
    assert_eq!(settings.proxies.0.len(), 2);
    assert_eq!(settings.health.live.as_deref(), Some("/livez"));
    let off = folder
        .serve("{}", &[("SURUS_ACCESS_LOG", "false")])
        .unwrap();
    assert!(off.settings.access_log.is_none());
    for wrong in [
        ("SURUS_TRUSTED_PROXIES", "[\"10.0.0.0/99\"]"),
        ("SURUS_READINESS", "readyz"),
        ("SURUS_ACCESS_LOG", "xml"),
    ] {
        folder.serve("{}", &[wrong]).unwrap_err();
    }
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let text = "[server]\nlisten = [\"127.0.0.1:1\", \"[::1]:1\"]\nworkers = 2\n[app.x]\nrequest_timeout = \"1s\"\nslow_log = \"5ms\"\nisolates = { min = 2, max = 9 }";
    let folder = Folder::with(&[("app.php", ""), ("surus.toml", text)]);
    let config = folder.serve("{}", &[]).unwrap();
    assert_eq!(
        config.listen,
        ["127.0.0.1:1".parse().unwrap(), "[::1]:1".parse().unwrap()]
    );
    assert_eq!(
        (config.workers, config.app.request_timeout),
        (2, Some(Duration::from_secs(1)))
    );

    let environment = [
        ("SURUS_LISTEN", "127.0.0.1:3"),
        ("SURUS_WORKERS", "3"),
        ("SURUS_REQUEST_TIMEOUT", "0"),
        ("SURUS_MEMORY_LIMIT", "-1"),
        ("SURUS_ISOLATES", "{ max = 3 }"),
        ("SURUS_DEV", "1"),
    ];
    let config = folder.serve("{}", &environment).unwrap();
    assert_eq!(config.listen, ["127.0.0.1:3".parse().unwrap()]);
    assert_eq!((config.workers, config.app.request_timeout), (3, None));
    assert_eq!(config.app.memory_limit.as_deref(), Some("-1"));
    assert_eq!((config.app.min_isolates, config.app.max_isolates), (2, 3));
    assert_eq!(config.app.slow_log, Some(Duration::from_millis(5)));
    assert!(config.dev);

    let config = folder
        .serve("{} --listen 4 --workers 4", &environment)
        .unwrap();
    assert_eq!(
        (config.listen, config.workers),
        (vec!["127.0.0.1:4".parse().unwrap()], 4)
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
fn the_limit_of_bodies_is_one_setting() {
    let limit = |text: &str| {
        let folder = Folder::with(&[("app.php", ""), ("surus.toml", text)]);
        let config = folder.serve("{}", &[]).unwrap();
        let php = config
            .ini
            .iter()
            .find(|(key, _)| key == "post_max_size")
            .unwrap()
            .1
            .clone();
        (config.edge.body_bytes, php)
    };
    assert_eq!(
        limit("[app.a]\nmax_body = \"1M\""),
        (1 << 20, "1M".to_owned())
    );
    assert_eq!(
        limit("[php]\npost_max_size = \"2M\""),
        (2 << 20, "2M".to_owned())
    );
    assert_eq!(
        limit("[php]\npost_max_size = 0"),
        (u64::MAX, "0".to_owned())
    );
}

#[test]
fn mistakes_are_named() {
    let error = |text: &str| {
        let folder = Folder::with(&[("app.php", ""), ("surus.toml", text)]);
        folder.serve("{}", &[]).unwrap_err()
    };
    let unknown = error("[server]\nworkers = 1\nlisten_on = \"x\"");
    assert!(
        unknown.contains("line 3") && unknown.contains("listen_on"),
        "{unknown}"
    );
    assert!(error("[app.a]\nmode = \"fast\"")
        .contains("expected one of `classic`, `coroutine`, `process`"));
    assert!(error("[app.a]\nrequest_timeout = \"30\"").contains("is not a duration"));
    assert!(
        error("[app.a]\nscript = \"a.php\"\n[app.b]\nscript = \"b.php\"")
            .contains("not several: a, b")
    );
    assert!(error("[[route]]\npath = \"/*\"\nto = \"a\"").contains("[[route]] is not supported"));
    assert!(error("[app.a]\nscript = \"app.php\"\nroot = \".\"").contains("not both"));
    assert!(error("[app.a]\nscript = \"nope.php\"").contains("nope.php"));
    assert!(error("[app.a]\nmax_requests_in_flight = 0").contains("at least 1"));
    assert!(error("[app.a]\nisolates = { min = 3, max = 2 }").contains("more than"));
    assert!(error("[server]\nlisten = \"nowhere\"").contains("not ADDRESS:PORT"));
    assert!(error("[server]\nlisten = []").contains("no address"));

    let folder = Folder::with(&[("app.php", "")]);
    let error = folder
        .serve("{}", &[("SURUS_WORKERS", "many")])
        .unwrap_err();
    assert!(
        error.starts_with("SURUS_WORKERS: \"many\" is not"),
        "{error}"
    );
    assert!(folder
        .serve("{} --config {}/none.toml", &[])
        .unwrap_err()
        .contains("cannot read"));
    assert!(folder.serve("{} --workers 0", &[]).is_err());
}

#[test]
fn processes_are_classic_with_a_process_for_each_request() {
    let folder = Folder::with(&[("index.php", "")]);
    let config = folder.serve("{} --mode process", &[]).unwrap();
    assert_eq!(config.app.entry.mode(), Mode::Classic);
    assert_eq!(config.app.processes, Some(super::PROCESSES));
    assert_eq!(line(&config, "mode"), "mode = \"process\" # --mode");
    assert_eq!(line(&config, "processes"), "processes = 8 # default");
    let config = folder
        .serve("{} --mode classic", &[("SURUS_PROCESSES", "3")])
        .unwrap();
    assert_eq!(config.app.processes, Some(3));
    let error = folder.serve("{}", &[("SURUS_PROCESSES", "0")]).unwrap_err();
    assert_eq!(error, "SURUS_PROCESSES: processes must be at least 1");
}

#[test]
fn what_check_prints_is_a_configuration_that_means_the_same() {
    let folder = Folder::with(&[
        ("app.php", ""),
        ("surus.toml", "[server]\nworkers = 3\n[php]\nprecision = 7"),
    ]);
    let printed = folder.serve("{}", &[]).unwrap().to_toml();
    fs::write(folder.path("again.toml"), &printed).unwrap();
    let again = folder.serve("--config {}/again.toml", &[]).unwrap();
    let values = |text: &str| toml::from_str::<toml::Table>(text).unwrap();
    assert_eq!(values(&again.to_toml()), values(&printed));
    assert!(!again.to_toml().contains("# default"));
}

/// The line of this key in what `surus check` prints, with single spaces.
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

#[test]
fn every_value_says_where_it_comes_from() {
    let text = "[server]\nworkers = 3\nmax_age = \"1h\"\n[app.shop]\nslow_log = \"1s\"\nisolates = { min = 2 }\n[php]\nprecision = 7\n\"mysqli.default_pw\" = \"hunter2\"";
    let folder = Folder::with(&[("app.php", ""), ("surus.toml", text)]);
    let environment = [
        ("SURUS_MAX_AGE", "2h"),
        ("SURUS_ISOLATES_MAX", "9"),
        ("SURUS_ISOLATES", "{ idle = \"3s\" }"),
        ("SURUS_PHP", "{ \"session.name\" = \"id\", precision = 8 }"),
    ];
    let arguments =
        "{} --workers 4 --set max_requests=1000 --set isolates.max_age=5m --set php.precision=9";
    let config = folder.serve(arguments, &environment).unwrap();
    let file = folder.path("surus.toml").display().to_string();
    for (key, expected) in [
        ("workers", "workers = \"4\" # --workers"),
        ("max_age", "max_age = \"7200s\" # SURUS_MAX_AGE"),
        ("max_requests", "max_requests = 1000 # --set max_requests"),
        ("watchdog", "watchdog = \"60s\" # default"),
        ("# user", "# user = # not set"),
        ("mode", "mode = \"coroutine\" # found"),
        ("slow_log", &format!("slow_log = \"1s\" # {file}")),
        ("isolates.min", &format!("min = 2 # {file}")),
        ("isolates.max", "max = 9 # SURUS_ISOLATES_MAX"),
        ("isolates.idle", "idle = \"3s\" # SURUS_ISOLATES"),
        ("precision", "precision = \"9\" # --set php.precision"),
        ("\"session.name\"", "\"session.name\" = \"id\" # SURUS_PHP"),
        (
            "\"mysqli.default_pw\"",
            &format!("\"mysqli.default_pw\" = \"(not shown)\" # {file}"),
        ),
        ("post_max_size", "post_max_size = \"8M\" # max_body"),
    ] {
        assert_eq!(line(&config, key), expected, "{}", config.to_toml());
    }
    assert!(config.to_toml().contains("[app.shop.isolates]\nmin = 2"));
    assert_eq!(
        config.app.isolate_limits.age,
        Some(Duration::from_secs(300))
    );
    let pinned = folder.serve("{}/app.php --config {}/surus.toml", &[]);
    let script = line(&pinned.unwrap(), "script");
    assert!(script.ends_with("# the command line"), "{script}");
}

#[test]
fn every_key_can_be_set_everywhere() {
    let folder = Folder::with(&[("app.php", "")]);
    let shown = folder.serve("{}", &[]).unwrap().to_toml();
    let shown: toml::Table = toml::from_str(&shown).unwrap();
    let mut keys = 0;
    let (server, app) = (&shown["server"], &shown["app"]["app"]);
    let isolates = app["isolates"].as_table().unwrap().iter();
    let isolates = isolates.map(|(key, value)| (format!("isolates.{key}"), value));
    let tables = [server, app]
        .into_iter()
        .flat_map(|it| it.as_table().unwrap());
    let tables = tables.map(|(key, value)| (key.clone(), value));
    for (key, value) in tables.chain(isolates) {
        if ["script", "isolates"].contains(&key.as_str()) {
            continue;
        }
        keys += 1;
        let value = value.to_string();
        let variable = format!("SURUS_{}", key.replace('.', "_").to_uppercase());
        let config = folder.serve("{}", &[(&variable, &value)]).unwrap();
        let from = line(&config, &key);
        assert!(from.ends_with(&format!("# {variable}")), "{from}");
        let flag = format!("{{}} --set {key}={}", value.replace(' ', ""));
        let from = line(&folder.serve(&flag, &[]).unwrap(), &key);
        assert!(from.ends_with(&format!("# --set {key}")), "{from}");
    }
    assert!(keys > 40, "{keys}");
}

#[test]
fn unknown_names_are_refused_wherever_they_stand() {
    let folder = Folder::with(&[("app.php", "")]);
    let variable = |name| folder.serve("{}", &[(name, "hunter2")]).unwrap_err();
    for (wrong, right) in [
        ("SURUS_WOKERS", "SURUS_WORKERS"),
        ("SURUS_MAX_REQUEST", "SURUS_MAX_REQUESTS"),
        ("SURUS_ISOLATE_MAX", "SURUS_ISOLATES_MAX"),
        ("SURUS_workers", "SURUS_WORKERS"),
        ("SURUS_LOGS", "SURUS_LOG"),
    ] {
        let expected = format!("{wrong}: there is no such key; is `{right}` meant?");
        assert_eq!(variable(wrong), expected);
    }
    let far = variable("SURUS_ZZZ");
    assert!(far.contains("`surus check` prints every key"), "{far}");
    let secret = variable("SURUS_PHP");
    assert!(
        secret.starts_with("SURUS_PHP: expected a table") && !secret.contains("hunter2"),
        "{secret}"
    );
    // Kubernetes' own, and what is read elsewhere.
    for fine in [
        "SURUS_PORT",
        "SURUS_PORT_80_TCP",
        "SURUS_SERVICE_HOST",
        "SURUS_LOG",
        "SURUS_BIN",
    ] {
        folder.serve("{}", &[(fine, "x")]).unwrap();
    }
    let flag = |setting: &str| {
        folder
            .serve(&format!("{{}} --set {setting}"), &[])
            .unwrap_err()
    };
    assert!(flag("isolates.maximum=3").contains("`--set isolates.max`"));
    assert!(flag("workers").contains("it takes KEY=VALUE"));
    let value = flag("workers=many");
    assert!(
        value.starts_with("--set workers: \"many\" is not"),
        "{value}"
    );
}
