//! The output of `surus check`: each value with its source.

use super::*;

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
fn what_a_key_brings_about_is_said_to_come_from_it() {
    let folder = Folder::with(&[("app.php", "")]);
    let config = folder.serve("{} --set access_log_file=a.log", &[]).unwrap();
    assert_eq!(
        line(&config, "access_log"),
        "access_log = true # access_log_file"
    );
    let off = folder.serve("{} --set access_log_file=a.log --set access_log=false", &[]);
    assert_eq!(
        line(&off.unwrap(), "access_log"),
        "access_log = false # --set access_log"
    );
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
