//! Classic sites.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use surus_zend::{AppLimits, Classic, ClassicConfig, Engine, IsolateLimits, RequestBody};
use tokio::time::timeout;

use crate::site::{appears, get, piece, read, request, Site};

fn classic(engine: &Engine, min: usize, max: usize) -> Classic {
    let config = ClassicConfig {
        limits: AppLimits::default(),
        min_isolates: min,
        max_isolates: max,
        memory: u64::MAX,
        idle: Duration::from_millis(100),
        recycle: IsolateLimits::default(),
    };
    Classic::new(engine, config).expect("isolates are made")
}

pub(crate) async fn answers(engine: &Engine) {
    let site = Site::with(
        "index.php",
        r#"http_response_code(201); header('X-Name: ' . $_GET['name']); define('ONCE', 1); echo ONCE, PHP_SAPI;"#,
    );
    let classic = classic(engine, 1, 1);
    // Twice in the same isolate: the constant of the first request is gone.
    for name in ["ada", "grace"] {
        let target = format!("/index.php?name={name}");
        let answer = classic.call(get(&target), site.script("index.php")).await;
        assert_eq!(answer.headers()["x-name"], name);
        assert_eq!(read(answer).await, (201, "1surus".to_owned()));
    }
    assert_eq!(classic.isolates(), (1, 1));
}

pub(crate) async fn requests_wait_side_by_side(engine: &Engine) {
    let site = Site::with("index.php", "usleep(200_000); echo $_GET['id'];");
    let classic = classic(engine, 0, 20);
    let begun = Instant::now();
    let calls = (0..20).map(|id| {
        let (classic, script) = (&classic, site.script("index.php"));
        async move { read(classic.call(get(&format!("/?id={id}")), script).await).await }
    });
    for (id, answer) in together(calls).await.into_iter().enumerate() {
        assert_eq!(answer, (200, id.to_string()));
    }
    assert!(
        begun.elapsed() < Duration::from_secs(2),
        "{:?}",
        begun.elapsed()
    );
}

/// Runs all the futures at once.
pub(crate) async fn together<F: std::future::Future>(
    futures: impl Iterator<Item = F>,
) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|cx| {
        let mut waiting = false;
        for (future, output) in &mut futures {
            if output.is_none() {
                match future.as_mut().poll(cx) {
                    std::task::Poll::Ready(value) => *output = Some(value),
                    std::task::Poll::Pending => waiting = true,
                }
            }
        }
        if waiting {
            std::task::Poll::Pending
        } else {
            std::task::Poll::Ready(())
        }
    })
    .await;
    futures
        .into_iter()
        .map(|(_, output)| output.expect("all are ready"))
        .collect()
}

pub(crate) async fn a_dropped_future_is_a_client_that_left(engine: &Engine) {
    let site = Site::with(
        "index.php",
        r#"try { sleep(60); } finally { file_put_contents(__DIR__ . '/left', connection_aborted()); }"#,
    );
    let classic = classic(engine, 0, 1);
    let call = classic.call(get("/"), site.script("index.php"));
    assert!(timeout(Duration::from_millis(50), call).await.is_err());
    let sign = site.path("left");
    appears(&sign).await;
    assert_eq!(std::fs::read_to_string(sign).expect("a number"), "1");
}

pub(crate) async fn more_requests_than_isolates_wait_in_line(engine: &Engine) {
    let site = Site::with("index.php", "usleep(10_000); echo 'done';");
    let classic = classic(engine, 0, 2);
    let calls = (0..10).map(|_| {
        let (classic, script) = (&classic, site.script("index.php"));
        async move { read(classic.call(get("/"), script).await).await }
    });
    for answer in together(calls).await {
        assert_eq!(answer, (200, "done".to_owned()));
    }
    assert_eq!(classic.isolates(), (2, 2));
}

pub(crate) async fn idle_isolates_are_freed(engine: &Engine) {
    let site = Site::with("index.php", "usleep(20_000);");
    let classic = classic(engine, 1, 5);
    let calls = (0..5).map(|_| classic.call(get("/"), site.script("index.php")));
    together(calls).await;
    assert_eq!(classic.isolates(), (5, 5));
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(classic.isolates(), (1, 1));
}

pub(crate) async fn a_fatal_error_frees_the_isolate(engine: &Engine) {
    let site = Site::with("index.php", "eval('class One {}'); eval('class One {}');");
    let classic = classic(engine, 0, 3);
    for _ in 0..5 {
        let answer = classic.call(get("/"), site.script("index.php")).await;
        assert_eq!(answer.status(), 500);
        assert_eq!(classic.isolates().0, 0);
    }
}

pub(crate) async fn bodies_are_streamed_in_and_out(engine: &Engine) {
    let site = Site::with(
        "index.php",
        r#"while (ob_get_level()) { ob_end_clean(); } echo 'first'; flush(); usleep(1000); echo strlen(file_get_contents('php://input'));"#,
    );
    let classic = classic(engine, 0, 1);
    let body = RequestBody::Full(Bytes::from(vec![b'x'; 100_000]));
    let mut sent = request(Method::POST, "/", body);
    sent.headers.insert("content-length", 100_000.into());
    let answer = classic.call(sent, site.script("index.php")).await;
    let mut body = answer.into_body();
    assert_eq!(piece(&mut body).await.as_deref(), Some(&b"first"[..]));
    assert_eq!(piece(&mut body).await.as_deref(), Some(&b"100000"[..]));
    assert_eq!(piece(&mut body).await, None);
}
