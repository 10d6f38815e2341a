//! The meaning of keys, wherever they are set, and which source wins.

use super::*;

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
    assert_eq!(settings.proxies.networks.len(), 2);
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
