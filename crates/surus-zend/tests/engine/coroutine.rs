//! Coroutine applications.

use std::time::{Duration, Instant};

use http::Method;
use surus_zend::{AppLimits, Coroutine, Engine, RequestBody};
use tokio::time::timeout;

use crate::{
    classic::together,
    site::{appears, get, read, request, Site},
};

async fn boot(engine: &Engine, code: &str, limits: AppLimits) -> (Coroutine, Site) {
    let site = Site::with("app.php", code);
    let app = Coroutine::boot(engine, &site.path("app.php"), limits).await;
    (app.expect("it boots"), site)
}

pub(crate) async fn what_does_not_boot_says_so(engine: &Engine) {
    for code in [
        "syntax error",
        "throw new Exception('no');",
        "return 7;",
        "exit;",
        "",
    ] {
        let site = Site::with("app.php", code);
        let result = Coroutine::boot(engine, &site.path("app.php"), AppLimits::default()).await;
        let error = result.expect_err(code).to_string();
        assert!(error.contains("app.php"), "{code}: {error}");
    }
}

pub(crate) async fn routes_need_no_php(engine: &Engine) {
    let code = r#"
        $app = new Surus\App();
        $app->get('/users/{id:int}', fn (int $id) => ['id' => $id]);
        $app->post('/users', fn () => 201);
        return $app;
    "#;
    let (app, _site) = boot(engine, code, AppLimits::default()).await;
    let answer = app.call(get("/users/7")).await;
    assert_eq!(answer.headers()["content-type"], "application/json");
    assert_eq!(read(answer).await, (200, "{\"id\":7}".to_owned()));
    assert_eq!(app.call(get("/users/seven")).await.status(), 404);
    assert_eq!(app.call(get("/nothing")).await.status(), 404);
    let refused = app.call(get("/users")).await;
    assert_eq!(refused.status(), 405);
    assert!(refused.headers()["allow"]
        .to_str()
        .is_ok_and(|allow| allow.contains("POST")));
    let made = request(Method::POST, "/users", RequestBody::Empty);
    assert_eq!(app.call(made).await.status(), 201);
}

const WAITS: &str = r#"
    return function (Surus\Http\Request $request): string {
        $_GET['own'] = $request->query('id');
        usleep(100_000);
        return $_GET['own'];
    };
"#;

pub(crate) async fn requests_wait_side_by_side(engine: &Engine) {
    let (app, _site) = boot(engine, WAITS, AppLimits::default()).await;
    let begun = Instant::now();
    let calls = (0..50).map(|id| {
        let app = &app;
        async move { read(app.call(get(&format!("/?id={id}"))).await).await }
    });
    for (id, answer) in together(calls).await.into_iter().enumerate() {
        assert_eq!(answer, (200, id.to_string()));
    }
    assert!(
        begun.elapsed() < Duration::from_secs(2),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(app.in_flight(), 0);
}

pub(crate) async fn a_dropped_future_is_a_client_that_left(engine: &Engine) {
    let code = r#"
        return function (): void {
            try { sleep(60); } finally { file_put_contents(__DIR__ . '/left', connection_aborted()); }
        };
    "#;
    let (app, site) = boot(engine, code, AppLimits::default()).await;
    assert!(timeout(Duration::from_millis(50), app.call(get("/")))
        .await
        .is_err());
    let sign = site.path("left");
    appears(&sign).await;
    assert_eq!(std::fs::read_to_string(sign).expect("a number"), "1");
}

/// A fiber that computes is interrupted for other isolates, not for others of its own: from its first turn on.
pub(crate) async fn a_computing_fiber_keeps_its_isolate(engine: &Engine) {
    let code = r#"
        return function (Surus\Http\Request $request): string {
            static $inside = 0;
            usleep((int) $request->query('us'));
            $seen = ++$inside;
            for ($end = hrtime(true) + 30_000_000, $hash = ''; hrtime(true) < $end;) {
                $hash = md5($hash);
            }
            $seen += $inside--;
            return (string) $seen;
        };
    "#;
    let (app, _site) = boot(engine, code, AppLimits::default()).await;
    for us in [0, 1000] {
        let calls = (0..10).map(|id| {
            let (app, target) = (&app, format!("/?us={}", us * id));
            async move { read(app.call(get(&target)).await).await }
        });
        for answer in together(calls).await {
            assert_eq!(answer, (200, "2".to_owned()), "{us}");
        }
    }
}

pub(crate) async fn too_many_requests_are_refused(engine: &Engine) {
    let limits = AppLimits {
        max_in_flight: 3,
        max_queue: 1,
        ..AppLimits::default()
    };
    let (app, _site) = boot(engine, WAITS, limits).await;
    let answers = together((0..6).map(|_| app.call(get("/?id=1")))).await;
    let refused: Vec<_> = answers.iter().filter(|a| a.status() == 503).collect();
    assert_eq!(refused.len(), 2);
    assert!(refused
        .iter()
        .all(|a| a.headers().contains_key("retry-after")));
}

pub(crate) async fn a_deadline_is_a_504(engine: &Engine) {
    let code = r#"
        return function (Surus\Http\Request $request): string {
            try {
                while (true) { $request->query('waits') ? usleep(1000) : null; }
            } finally {
                file_put_contents(__DIR__ . '/' . $request->query('name'), '');
            }
        };
    "#;
    let limits = AppLimits {
        request_timeout: Some(Duration::from_millis(100)),
        ..AppLimits::default()
    };
    let (app, site) = boot(engine, code, limits).await;
    for (waits, name) in [(0, "computes"), (1, "waits")] {
        let target = format!("/?waits={waits}&name={name}");
        assert_eq!(app.call(get(&target)).await.status(), 504, "{name}");
        appears(&site.path(name)).await;
    }
}

pub(crate) async fn a_fatal_error_boots_the_application_again(engine: &Engine) {
    let code = r#"
        $boot = bin2hex(random_bytes(8));
        return function (Surus\Http\Request $request) use ($boot): string {
            if ($request->query('fatal')) { eval('class One {}'); eval('class One {}'); }
            usleep((int) $request->query('us'));
            return $boot;
        };
    "#;
    let (app, _site) = boot(engine, code, AppLimits::default()).await;
    let first = read(app.call(get("/")).await).await.1;
    let (neighbour, failed) =
        tokio::join!(app.call(get("/?us=100000")), app.call(get("/?fatal=1")));
    assert_eq!(failed.status(), 500);
    assert_eq!(read(neighbour).await, (200, first.clone()));
    let second = read(app.call(get("/")).await).await.1;
    assert_ne!(first, second);
    // Each of them brings down what the others wait for.
    for answer in together((0..20).map(|_| app.call(get("/?fatal=1")))).await {
        assert_eq!(answer.status(), 500);
    }
}

/// Nobody waits for a boot any longer than the request itself may take.
pub(crate) async fn a_boot_that_takes_long_is_a_503(engine: &Engine) {
    let code = r#"
        while (is_file(__DIR__ . '/held')) { usleep(1000); clearstatcache(); }
        return function (Surus\Http\Request $request): string {
            if ($request->query('fatal')) { eval('class One {}'); eval('class One {}'); }
            return 'booted';
        };
    "#;
    let limits = AppLimits {
        request_timeout: Some(Duration::from_millis(200)),
        ..AppLimits::default()
    };
    let (app, site) = boot(engine, code, limits).await;
    let held = site.path("held");
    std::fs::write(&held, "").expect("a file");
    assert_eq!(app.call(get("/?fatal=1")).await.status(), 500);
    let refused = app.call(get("/")).await;
    assert!(refused.headers().contains_key("retry-after"));
    assert_eq!(refused.status(), 503);
    std::fs::remove_file(held).expect("it is there");
    let mut answer = app.call(get("/")).await;
    for _ in 0..100 {
        if answer.status() != 503 {
            break;
        }
        answer = app.call(get("/")).await;
    }
    assert_eq!(read(answer).await, (200, "booted".to_owned()));
}

pub(crate) async fn memory_comes_back(engine: &Engine) {
    let code = r#"
        return function (Surus\Http\Request $request): string {
            date_default_timezone_set('Asia/Tokyo');
            ini_set('precision', '7');
            set_error_handler(fn () => true);
            register_shutdown_function(fn () => null);
            ob_start();
            mb_detect_order(['SJIS', 'UTF-8']);
            mb_convert_encoding('text', 'UTF-8', str_replace('-', '', 'EUC-J-P'));
            mb_ereg_search_init('text', 't');
            mb_ereg_search();
            normalizer_normalize("\xff");
            socket_strerror(123_456);
            date_create('no date');
            output_add_rewrite_var('own', $_GET['id']);
            openssl_pkey_get_public('none');
            mysqli_report(MYSQLI_REPORT_OFF);
            @mysqli_connect('127.0.0.1', 'nobody', '', '', 1);
            usleep(100);
            return json_encode([$_GET, getenv('PATH'), strtok('a b', ' '), headers_list()]);
        };
    "#;
    let (app, _site) = boot(engine, code, AppLimits::default()).await;
    let mut sizes = Vec::new();
    for turn in 0..3 {
        for id in 0..50 {
            let answer = app.call(get(&format!("/?id={id}"))).await;
            assert_eq!(answer.status(), 200);
        }
        sizes.push((turn, app.memory().0));
    }
    // To the byte: blocks are counted one by one.
    assert_eq!(sizes[1].1, sizes[2].1, "{sizes:?}");
}

pub(crate) async fn state_is_swapped_only_where_another_goes_on(engine: &Engine) {
    let code = r#"
        return function (Surus\Http\Request $request): string {
            if ($request->query('wait')) {
                usleep((int) $request->query('wait'));
            }
            return 'done';
        };
    "#;
    let (app, _site) = boot(engine, code, AppLimits::default()).await;
    let (other, _other_site) = boot(engine, code, AppLimits::default()).await;
    let done = (200, "done".to_owned());
    assert_eq!(read(app.call(get("/")).await).await, done);
    let before = engine.swaps();
    for _ in 0..100 {
        assert_eq!(read(app.call(get("/")).await).await, done);
    }
    assert_eq!(engine.swaps(), before, "nobody has waited");
    // Two that wait: each is put aside for the other or for nobody, and no more than that.
    let calls = (0..2).map(|_| async { read(app.call(get("/?wait=20000")).await).await });
    assert_eq!(together(calls).await, [done.clone(), done.clone()]);
    let waited = engine.swaps();
    assert_eq!(waited.isolates, before.isolates, "one isolate");
    let aside = waited.fibers - before.fibers;
    assert!((1..=4).contains(&aside), "{aside} fibers were put aside");
    for _ in 0..10 {
        assert_eq!(read(other.call(get("/")).await).await, done);
        assert_eq!(read(app.call(get("/")).await).await, done);
    }
    let turns = engine.swaps().isolates - waited.isolates;
    assert_eq!(turns, 20, "each turn is the other isolate's");
}

pub(crate) async fn superglobals_are_built_where_loaded_code_refers_to_them(engine: &Engine) {
    let code = r#"
        return function (Surus\Http\Request $request): string {
            if ($request->path() === '/more') {
                require __DIR__ . '/more.php';
            }
            $built = array_intersect(['_GET', '_POST', '_COOKIE', '_FILES', '_SERVER', '_REQUEST'], array_keys($GLOBALS));
            return implode(' ', $built);
        };
    "#;
    let (app, site) = boot(engine, code, AppLimits::default()).await;
    site.write("more.php", "$GLOBALS['said'] = $_GET['a'];");
    for (path, expected) in [("/?a=b", ""), ("/more?a=b", "_GET"), ("/?a=b", "_GET")] {
        let answer = read(app.call(get(path)).await).await;
        assert_eq!(answer, (200, expected.to_owned()), "{path}");
    }
}
