//! What is wrong in a configuration, and what is said of it.

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
