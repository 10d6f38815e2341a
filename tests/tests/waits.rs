//! Every function of libc that can wait, and that libphp, an extension or a library of theirs calls, has a row in
//! docs/internals/waits.md that says what happens; what is hooked is exported.
//!
//! `SURUS_WAITS_IN` is a folder of libraries to read instead of those that are installed: tests/waits/packages reads all
//! of Debian's.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The cancellation points of pthreads(7), which are what may block, the functions of Linux and of glibc that wait and are
/// none of them, and what waits for a lock. `__NAME_chk` is a fortified one.
const WAITING: &str = "
    accept accept4 aio_suspend clock_nanosleep close closedir connect creat fclose fcntl fdatasync fflush fgetc fgets flock
    fopen fork fread fscanf fsync ftruncate fwrite gai_suspend getaddrinfo getaddrinfo_a getc getchar getdelim getgrgid
    getgrgid_r getgrnam getgrnam_r gethostbyaddr gethostbyaddr_r gethostbyname gethostbyname2 gethostbyname2_r
    gethostbyname_r getline getnameinfo getprotobyname getprotobynumber getpwnam getpwnam_r getpwuid getpwuid_r getrandom
    getservbyname getservbyport initgroups io_getevents ioctl lockf mq_receive mq_send mq_timedreceive mq_timedsend msgrcv
    msgsnd msync nanosleep open openat opendir pause pclose poll popen posix_fallocate posix_spawn posix_spawnp ppoll pread
    preadv preadv2 pselect pthread_barrier_wait pthread_cond_clockwait pthread_cond_timedwait pthread_cond_wait
    pthread_join pthread_mutex_clocklock pthread_mutex_lock pthread_mutex_timedlock pthread_rwlock_rdlock
    pthread_rwlock_timedrdlock pthread_rwlock_timedwrlock pthread_rwlock_wrlock pthread_timedjoin_np pwrite pwritev read
    readdir readv recv recvfrom recvmmsg recvmsg res_nquery res_nquerydomain res_nsearch res_nsend res_query res_querydomain
    res_search res_send select sem_clockwait sem_timedwait sem_wait semop semtimedop send sendfile sendmmsg sendmsg sendto
    sigpause sigsuspend sigtimedwait sigwait sigwaitinfo sleep splice sync sync_file_range syncfs syslog system tcdrain tee
    usleep vmsplice vsyslog wait wait3 wait4 waitid waitpid wordexp write writev epoll_pwait epoll_pwait2 epoll_wait
    copy_file_range cnd_timedwait cnd_wait mtx_lock mtx_timedlock thrd_join thrd_sleep";

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    root.expect("the crate is in the repository").to_owned()
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// `recv` for `__recv_chk`, `open` for `open64` and `__open64_2`.
fn plain(name: &str) -> String {
    let name = name.strip_prefix("__").unwrap_or(name);
    let name = name.strip_suffix("_chk").unwrap_or(name);
    let name = name.strip_suffix("_2").unwrap_or(name);
    let name = name.strip_prefix("isoc99_").unwrap_or(name);
    name.strip_suffix("64").unwrap_or(name).to_owned()
}

/// The libraries below a folder, or libphp and the installed extensions with all that they need.
fn libraries() -> BTreeSet<PathBuf> {
    if let Some(folder) = env::var_os("SURUS_WAITS_IN") {
        let folder = folder.into_string().expect("a folder in UTF-8");
        let found = output("find", &[&folder, "-name", "*.so*", "-type", "f"]);
        return found.lines().map(PathBuf::from).collect();
    }
    let config = env::var("PHP_CONFIG").unwrap_or_else(|_| "php-config8.2".to_owned());
    let extensions = output(&config, &["--extension-dir"]);
    let version = output(&config, &["--version"]);
    let short = version.splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
    let mut all = BTreeSet::from([PathBuf::from(format!("/usr/lib/libphp{short}.so"))]);
    for entry in fs::read_dir(extensions.trim()).expect("the folder of extensions") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|ending| ending == "so") {
            all.insert(path);
        }
    }
    let needed: BTreeSet<_> = all
        .iter()
        .flat_map(|library| needs(library))
        .filter(|path| !is_of_libc(path))
        .collect();
    all.extend(needed);
    all
}

fn needs(library: &Path) -> Vec<PathBuf> {
    let lines = output("ldd", &[&library.to_string_lossy()]);
    let paths = lines.lines().filter_map(|line| {
        let path = line.split_whitespace().find(|word| word.starts_with('/'))?;
        fs::canonicalize(path).ok()
    });
    paths.collect()
}

/// Its functions call each other, not through the executable.
fn is_of_libc(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    ["libc.so", "libc-", "ld-linux", "libresolv", "libm.so"]
        .iter()
        .any(|start| name.starts_with(start))
}

/// What these libraries call that can wait, each with some of them.
fn calls() -> BTreeMap<String, Vec<String>> {
    let waiting: HashSet<&str> = WAITING.split_whitespace().collect();
    let mut calls = BTreeMap::<_, Vec<_>>::new();
    for library in libraries() {
        let symbols = output(
            "nm",
            &["-D", "--undefined-only", &library.to_string_lossy()],
        );
        for symbol in symbols
            .lines()
            .filter_map(|line| line.split_whitespace().last())
        {
            let name = plain(symbol.split('@').next().unwrap_or(symbol));
            if waiting.contains(name.as_str()) {
                let file = library.file_name().unwrap_or_default();
                let callers = calls.entry(name).or_default();
                callers.push(file.to_string_lossy().into_owned());
            }
        }
    }
    calls
}

/// The rows of the page: function, what happens.
fn rows() -> BTreeMap<String, String> {
    let page = fs::read_to_string(root().join("docs/internals/waits.md")).expect("the page");
    let mut rows = BTreeMap::new();
    for line in page.lines().filter(|line| line.starts_with("| `")) {
        let mut cells = line.trim_matches('|').split('|');
        let (names, what) = (cells.next().unwrap_or(""), cells.next().unwrap_or(""));
        for name in names.split('`').skip(1).step_by(2) {
            let twice = rows.insert(name.to_owned(), what.trim().to_owned());
            assert!(twice.is_none(), "{name} has two rows");
        }
    }
    rows
}

fn exports() -> HashSet<String> {
    let list = fs::read_to_string(root().join("crates/surus-zend/exports.txt")).expect("the list");
    list.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn every_function_that_waits_is_known() {
    let rows = rows();
    let unknown: Vec<_> = calls()
        .into_iter()
        .filter(|(name, _)| !rows.contains_key(name))
        .collect();
    assert!(
        unknown.is_empty(),
        "these can wait and have no row in docs/internals/waits.md: {unknown:#?}"
    );
}

#[test]
fn what_is_said_to_park_is_hooked() {
    let (rows, exports) = (rows(), exports());
    for (name, what) in &rows {
        let is_hooked = exports.contains(name) || !what.starts_with("parks");
        assert!(is_hooked, "{name}: {what:?}, and exports.txt has it not");
    }
    for name in WAITING
        .split_whitespace()
        .filter(|name| exports.contains(*name))
    {
        assert!(rows.contains_key(name), "{name} is hooked and has no row");
    }
}
