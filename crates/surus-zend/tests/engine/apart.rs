//! What overlapping classic requests share in the operating system, and must not notice.

use std::time::{Duration, Instant};

use surus_zend::{AppLimits, Classic, ClassicConfig, Engine, IsolateLimits};

use crate::{
    classic::together,
    site::{get, read, Site},
};

fn classic(engine: &Engine) -> Classic {
    let config = ClassicConfig {
        limits: AppLimits::default(),
        min_isolates: 0,
        max_isolates: 10,
        memory: u64::MAX,
        idle: Duration::from_secs(1),
        recycle: IsolateLimits::default(),
    };
    Classic::new(engine, config).expect("isolates are made")
}

/// The realpath cache is the process's: what one request has looked up stays closed to another one.
pub(crate) async fn an_open_basedir_is_one_requests(engine: &Engine) {
    let site = Site::with(
        "index.php",
        r#"
            if ($_GET['id'] === '0') { ini_set('open_basedir', __DIR__ . '/own'); }
            $look = fn () => [
                @file_get_contents(__DIR__ . '/link/secret'), @realpath(__DIR__ . '/link/secret'), is_file(__DIR__ . '/link/secret'),
            ];
            $first = $look();
            usleep(20_000);
            $second = $look();
            echo json_encode([array_filter([...$first, ...$second]) === [], count(array_filter([...$first, ...$second])) === 6]);
        "#,
    );
    std::fs::create_dir(site.path("real")).expect("a folder");
    std::fs::write(site.path("real/secret"), "kept").expect("a file");
    std::os::unix::fs::symlink(site.path("real"), site.path("link")).expect("a link");
    let classic = classic(engine);
    for _ in 0..3 {
        let calls = (0..6).map(|id| {
            let (classic, script) = (&classic, site.script("index.php"));
            async move { read(classic.call(get(&format!("/?id={}", id % 2)), script).await).await }
        });
        for (id, (_, text)) in together(calls).await.into_iter().enumerate() {
            let expected = if id % 2 == 0 {
                "[true,false]"
            } else {
                "[false,true]"
            };
            assert_eq!(text, expected, "{id}");
        }
    }
}

/// Who waits for a lock by `fcntl` does not keep its holder, a request of the same thread, from going on.
pub(crate) async fn locks_by_fcntl_are_waited_for(engine: &Engine) {
    let site = Site::with(
        "index.php",
        r#"
            $libc = FFI::cdef('
                struct flock { short type; short whence; long start; long length; int pid; };
                int fcntl(int fd, int command, ...); int open(const char *path, int flags); int close(int fd);
            ');
            $fd = $libc->open(__DIR__ . '/locked', 2);
            $lock = $libc->new('struct flock');
            $lock->type = 1;
            $got = $libc->fcntl($fd, 38, FFI::addr($lock)); // F_OFD_SETLKW: between descriptors, not processes
            $inside = file_get_contents(__DIR__ . '/inside');
            file_put_contents(__DIR__ . '/inside', '1');
            usleep(20_000);
            file_put_contents(__DIR__ . '/inside', '0');
            $libc->close($fd);
            echo $got, $inside;
        "#,
    );
    std::fs::write(site.path("locked"), "").expect("a file");
    std::fs::write(site.path("inside"), "0").expect("a file");
    let classic = classic(engine);
    let begun = Instant::now();
    let calls = (0..6).map(|_| {
        let (classic, script) = (&classic, site.script("index.php"));
        async move { read(classic.call(get("/"), script).await).await }
    });
    for answer in together(calls).await {
        assert_eq!(answer, (200, "00".to_owned()));
    }
    assert!(
        begun.elapsed() < Duration::from_secs(3),
        "{:?}",
        begun.elapsed()
    );
}
