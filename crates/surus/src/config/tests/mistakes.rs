//! Errors in a configuration, and their messages.

use super::*;

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
        .contains("expected one of `classic`, `coroutine`, `worker`, `snapshot`, `process`"));
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
    assert!(error("[app.a]\nhidden = [\"../a\"]").contains("hidden: \"../a\": a path begins"));
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

/// For keys of nginx or php-fpm, and for keys in the wrong table, the message says where they belong.
#[test]
fn keys_in_the_wrong_place_are_led_to_the_right_one() {
    for (text, parts) in [
        (
            "workers = 2",
            &["line 1", "`workers`: it is a key of [server]"][..],
        ),
        (
            "[app.a]\nlisten = \"1\"",
            &["line 2", "`listen`: it is a key of [server]"],
        ),
        (
            "[server]\nroot = \".\"",
            &["line 2", "`root`: it is a key of [app.NAME]"],
        ),
        (
            "[app]\nroot = \".\"",
            &["line 2", "a table with a name of your choice: [app.NAME]"],
        ),
        ("[[app]]\nroot = \".\"", &["line 1", "single brackets"]),
        ("[server]\nmax = 3", &["`max`: it is a key of isolates"]),
        (
            "[app.a]\nupload_max_filesize = \"9M\"",
            &["those stand below [php]"],
        ),
        ("[app.a]\nopcache.enable = 1", &["those stand below [php]"]),
        (
            "[app.a]\nclient_max_body_size = \"9M\"",
            &["that is max_body of [app.NAME] here"],
        ),
        (
            "[server]\npm.max_children = 5",
            &["`pm`: that is workers of [server]"],
        ),
        (
            "[server]\nuser = www-data",
            &["line 2", "text stands in quotes"],
        ),
        ("[server]\nuser = 33", &["expected text in quotes"]),
        (
            "[server]\nworkers = 2\nworkers = 3",
            &["line 3", "there already"],
        ),
        ("[server]\nerror_log = true", &["expected a path in quotes"]),
        (
            "[server]\naccess_log = \"a.log\"",
            &["a path is access_log_file's"],
        ),
        (
            "[app.a]\nisolates = 5",
            &["expected a table such as { max = 8 }"],
        ),
        ("[app.a]\nrequest_timeout = 30", &["is \"30s\" meant?"]),
        ("[app.a]\nmax_body = \"8MB\"", &["is \"8M\" meant?"]),
        (
            "[app.a]\nroot = \"app.php\"",
            &["line 2", "is a file; script = "],
        ),
        (
            "[app.a]\nscript = \".\"",
            &["line 2", "is a folder; root = "],
        ),
        (
            "[app.a]\npublic = \"app.php\"",
            &["line 2", "it is not a folder"],
        ),
        (
            "[app.a]\nroot = \"none\"",
            &["line 2", "there is no such file or folder"],
        ),
        ("[server]\nlisten = \"*:80\"", &["line 2", "\"0.0.0.0:80\""]),
        (
            "[server]\nlisten = \"/run/a.sock\"",
            &["line 2", "\"unix:/run/a.sock\""],
        ),
        (
            "[server]\nlisten = \"http://a:80/\"",
            &["without http://, \"a:80\""],
        ),
        ("[server]\nlisten = \"localhost\"", &["\"localhost:8080\""]),
        ("[server]\nlisten = \"a:1, b:2\"", &["several are a list"]),
        (
            "[server]\nlisten = \"no.invalid:80\"",
            &["no address of the name \"no.invalid\""],
        ),
        ("[app.a]\n[app.b]", &["not several: a, b. Give each"]),
        ("[app.a]\nmemory_limit = \"64MB\"", &["is \"64M\" meant?"]),
        (
            "[app.a]\nmemory_limit = 64",
            &["less than PHP needs; is \"64M\" meant?"],
        ),
        (
            "[php]\nmemory_limit = \"64MB\"",
            &["line 2: [php] memory_limit", "is \"64M\" meant?"],
        ),
        (
            "[php]\nupload_max_filesize = \"9MB\"",
            &["line 2: [php] upload_max_filesize", "is \"9M\" meant?"],
        ),
        (
            "[app.a]\nallowed_hosts = \"a, b\"",
            &["several are a list: [\"a\", \"b\"]"],
        ),
        (
            "[app.a]\nhidden = \"*.a,*.b\"",
            &["several are a list: [\"*.a\", \"*.b\"]"],
        ),
        (
            "[server]\nheader_timeout = 0",
            &["line 2: header_timeout must be more than 0"],
        ),
        (
            "[app.a]\nchannels_redis = \"10.0.0.5:6379\"",
            &["line 2", "\"redis://10.0.0.5:6379\""],
        ),
        (
            "[app.a]\nchannels_redis = \"rediss://a:6379\"",
            &["line 2", "with redis://"],
        ),
        (
            "[app.a]\nchannels_redis = \"$REDIS_URL\"",
            &["SURUS_CHANNELS_REDIS"],
        ),
        ("[pusher]\nkey = \"a\"", &["[pusher.NAME]"]),
        ("[channel]\nhistory = 1", &["[channel.\"news/*\"]"]),
        ("[channel.news/*]\nhistory = 1", &["stands in quotes"]),
        (
            "[channel.\"news/*\"]\nhistory = -1",
            &["line 2", "not negative"],
        ),
        (
            "[process.a]\ncommand = \"surus php a.php\"",
            &["line 2", "[\"surus\", \"php\", \"worker.php\"]"],
        ),
        (
            "[process.a]\ncommand = [\"true\"]\nrestart = \"no\"",
            &["line 3", "`always` or `on-failure`"],
        ),
        (
            "[process.a]\ncommand = [\"true\"]\nnumprocs = 4",
            &["line 3", "that is instances of [process.NAME]"],
        ),
        (
            "[channel.\"a\"]\nttl = 0",
            &["line 2: ttl must be more than 0"],
        ),
        (
            "[process.a]\ninstances = 2",
            &["line 1: process.a needs a command"],
        ),
        (
            "[process.a]\ncommand = [\"true\"]\ninstances = 0",
            &["line 3: instances must be from 1"],
        ),
        (
            "[app.a]\nhistory = 10",
            &["it is a key of [channel.PATTERN]"],
        ),
        (
            "[server]\nboot_timeout = 0",
            &["line 2: boot_timeout must be more than 0"],
        ),
    ] {
        let folder = Folder::with(&[("app.php", ""), ("surus.toml", text)]);
        let error = folder.serve("{}", &[]).unwrap_err();
        for part in parts {
            assert!(error.contains(part), "{text}: no {part:?} in\n{error}");
        }
    }
    let folder = Folder::with(&[("app.php", "")]);
    let error = folder
        .serve("{} --set app.shop.mode=classic", &[])
        .unwrap_err();
    assert!(error.contains("is `--set mode` meant?"), "{error}");
}

#[test]
fn what_changes_nothing_is_said() {
    for (mode, text, said) in [
        (
            "coroutine",
            "isolates = { max = 3 }",
            "line 2: isolates.max has no effect: an application",
        ),
        (
            "process",
            "isolates = { min = 1 }",
            "line 2: isolates.min has no effect: in mode process",
        ),
        (
            "process",
            "offload_processes = 2",
            "line 2: offload_processes has no effect: in mode process",
        ),
        (
            "classic",
            "preempt_fibers = true",
            "line 2: preempt_fibers has no effect",
        ),
        ("classic", "isolates = { max = 3 }", ""),
        ("coroutine", "preempt_fibers = true", ""),
        ("coroutine", "isolates = { max_requests = 3 }", ""),
    ] {
        let text = format!("[app.a]\n{text}\n");
        let files = [
            ("app.php", ""),
            ("index.php", ""),
            ("surus.toml", text.as_str()),
        ];
        let folder = Folder::with(&files);
        let config = folder.serve(&format!("{{}} --mode {mode}"), &[]).unwrap();
        let idle = config.idle.join("\n");
        assert_eq!(idle.is_empty(), said.is_empty(), "{mode} {text}: {idle}");
        assert!(idle.contains(said), "{idle}");
    }
}

/// A single value of a list needs no brackets, a port no quotes.
#[test]
fn one_value_is_a_list() {
    let text = "[server]\nlisten = 8099\ntrusted_proxies = \"10.0.0.0/8\"\n[app.a]\nallowed_hosts = \"a.example\"\n\
        hidden = \"*.x\"\nsendfile = \".\"";
    let folder = Folder::with(&[("app.php", ""), ("surus.toml", text)]);
    let config = folder.serve("{}", &[]).unwrap();
    assert_eq!(config.listen, ["127.0.0.1:8099".parse().unwrap()]);
    assert_eq!(config.settings.proxies.networks.len(), 1);
    assert_eq!(config.settings.allowed_hosts.len(), 1);
    assert_eq!(
        config.app.sendfile,
        [folder.path("").canonicalize().unwrap()]
    );
    assert_eq!(
        line(&config, "hidden").split(" #").next(),
        Some("hidden = [\"*.x\"]")
    );
    let two = folder
        .serve("{}", &[("SURUS_LISTEN", "[8098, \"[::1]:8098\"]")])
        .unwrap();
    assert_eq!(two.listen.len(), 2);
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
    // Variables of Kubernetes, and those that are read elsewhere.
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

#[test]
fn applications_of_pusher_need_credentials_of_their_own() {
    let folder = Folder::with(&[("app.php", "")]);
    let serve = |text: &str| {
        fs::write(folder.path("surus.toml"), text).unwrap();
        folder.serve("{}", &[])
    };
    let right = "[pusher.chat]\nkey = \"k\"\nsecret = \"hidden-secret\"\n";
    let config = serve(right).unwrap();
    assert_eq!(config.pushers[0].app.id, "chat");
    let printed = config.to_toml();
    assert!(printed.contains("[pusher.chat]") && !printed.contains("hidden-secret"));
    let app = "[app.a]\nserver_name = \"b.example\"\nallowed_hosts = \"a.example\"";
    let config = serve(&format!("{right}webhook = \"/x\"\n{app}")).unwrap();
    let hook = config.pushers[0].webhook.as_ref();
    assert_eq!(hook.unwrap().authority, "a.example", "it is allowed");
    for (more, expected) in [
        ("[pusher.a]\nkey = \"a\"", "[pusher.a] needs a secret"),
        (
            "[pusher.a]\nsecret = \"12345678\"",
            "[pusher.a] needs a key",
        ),
        (
            "[pusher.a]\nkey = \"a\"\nsecret = \"short\"",
            "fewer than 8 characters",
        ),
        (
            "[pusher.a]\nkey = \"k\"\nsecret = \"12345678\"",
            "key: [pusher.a] and [pusher.chat] have the same one, \"k\"",
        ),
        (
            "[pusher.a]\nid = \"chat\"\nkey = \"a\"\nsecret = \"12345678\"",
            "id: [pusher.a] and [pusher.chat] have the same one, \"chat\"",
        ),
        (
            "[pusher.a]\nkey = \"a\"\nprefix = \"a/\"\nsecret = \"hidden-secret\"",
            "secret: [pusher.a] and [pusher.chat] have the same one",
        ),
        (
            "[pusher.a]\nkey = \"a/b\"\nsecret = \"12345678\"",
            "key: it is a part of paths",
        ),
        (
            "[pusher.a]\nkey = \"$NOT_THERE\"\nsecret = \"12345678\"",
            "no variable NOT_THERE",
        ),
        (
            "allowed_origins = \"ftp://a\"",
            "neither http:// nor https://",
        ),
        ("allowed_origins = \"a/b\"", "is no host"),
        ("max_event = \"1M\"", "max_event must be from"),
        (
            "[pusher.a]\nkey = \"a\"\nsecret = \"12345678\"",
            "prefix: [pusher.a] has \"\", too",
        ),
        ("prefix = \"a\"", "with a slash at the end"),
        ("webhook = \"https://a/b\"", "speaks no TLS"),
        ("webhook = \"a/b\"", "it is no address"),
        ("webhook = \"ftp://a/b\"", "neither a path"),
        (
            "webhook = \"/x\"\n[server]\nproxy_protocol = true",
            "cannot send requests to itself",
        ),
        (
            "webhook = \"/x\"\n[app.a]\nallowed_hosts = \"*.a.example\"",
            "allowed_hosts has no name without a star",
        ),
        (
            "webhook_events = [\"occupied\"]",
            "is none of channel_occupied",
        ),
        ("prefix = \"#/\"", "with a slash at the end"),
        ("clientevents = true", "is `client_events` meant?"),
    ] {
        let error = serve(&format!("{right}{more}")).unwrap_err();
        assert!(error.contains(expected), "{more}: {error}");
        assert!(!error.contains("12345678"), "{error}");
        assert!(!error.contains("hidden-secret"), "{error}");
    }
}
