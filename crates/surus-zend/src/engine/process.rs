//! PHP of this process: started once, before any fork.

use std::{
    ffi::{c_uint, CStr, CString},
    fmt,
    ptr::null_mut,
    sync::{
        atomic::{AtomicBool, Ordering},
        OnceLock,
    },
    time::Duration,
};

use crate::ffi::{self, Swaps};

/// Settings for all of PHP.
#[derive(Debug, Clone, Default)]
pub struct EngineConfig {
    /// php.ini settings that override those of the files.
    pub ini: Vec<(String, String)>,
    /// Show errors in responses.
    pub dev: bool,
    /// `SERVER_NAME`; by default the local address of a request.
    pub server_name: Option<String>,
    /// Size in bytes of the store that all workers share; 0 for none.
    pub store: usize,
    /// Scripts find `frankenphp_handle_request()`, for worker mode.
    pub in_turn: bool,
    /// The environment of the processes that run PHP, as `NAME=value`; by default that of this process.
    pub environment: Option<Vec<CString>>,
}

/// The configured name of the server; the name that a client sends is in `HTTP_HOST`.
static SERVER_NAME: OnceLock<String> = OnceLock::new();

/// Before any fork.
fn set_server_name(name: Option<&str>) {
    if let Some(name) = name {
        // PHP starts once.
        let _ = SERVER_NAME.set(name.to_owned());
    }
}

/// `SERVER_NAME`, if it is configured.
pub(crate) fn server_name() -> Option<&'static str> {
    SERVER_NAME.get().map(String::as_str)
}

/// PHP has not started.
#[derive(Debug)]
pub struct StartError(pub String);

/// An application has not booted, or an isolate could not be made.
#[derive(Debug)]
pub struct BootError(pub String);

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for BootError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StartError {}
impl std::error::Error for BootError {}

/// Proof that PHP has started in this process.
#[derive(Debug, Clone, Copy)]
pub struct Engine {
    /// Show errors to clients.
    pub(crate) dev: bool,
}

/// The environment for the processes that run PHP.
static ENVIRONMENT: OnceLock<Vec<CString>> = OnceLock::new();

static STARTED: AtomicBool = AtomicBool::new(false);

/// Persistent connections of an application in one process, to one database.
#[derive(Clone, Copy, Debug)]
pub struct Connections {
    /// How many are open at a time; 0: no limit.
    pub most: usize,
    /// The longest time that a request waits for a free one.
    pub patience: Duration,
    /// After this time an idle one is closed,
    pub max_idle: Option<Duration>,
    /// except for these.
    pub min_idle: usize,
    /// After this time any is closed.
    pub max_age: Option<Duration>,
}

impl Engine {
    /// Loads PHP and its extensions. Once per process, before any fork and while it has one thread.
    pub fn start(config: &EngineConfig) -> Result<Engine, StartError> {
        if STARTED.swap(true, Ordering::SeqCst) {
            return Err(StartError(
                "PHP has already been started in this process".to_string(),
            ));
        }
        let ini = CString::new(ini_text(config)?)
            .map_err(|_| StartError("a php.ini setting contains a NUL byte".to_string()))?;
        crate::body::room::keep_some_memory();
        crate::shared::rate::start();
        crate::shared::lead::start();
        set_server_name(config.server_name.as_deref());
        crate::shared::store::start(config.store);
        crate::shared::locks::start();
        if let Some(entries) = &config.environment {
            // PHP starts once.
            let _ = ENVIRONMENT.set(entries.clone());
        }
        if config.in_turn {
            // SAFETY: sets a flag that is read when PHP starts.
            unsafe { ffi::surus_engine_serve_in_turn() };
        }
        let mut error = vec![0u8; 1024];
        // SAFETY: first call in this process; `error` has room for its size.
        let result = unsafe {
            ffi::surus_engine_start(ini.as_ptr(), error.as_mut_ptr().cast(), error.len())
        };
        if result == 0 {
            return Ok(Engine { dev: config.dev });
        }
        let end = error.iter().position(|&b| b == 0).unwrap_or(0);
        Err(StartError(
            String::from_utf8_lossy(&error[..end]).into_owned(),
        ))
    }

    /// The names of all settings that PHP and its extensions know. In the master, before there are isolates.
    #[must_use]
    pub fn settings(&self) -> Vec<String> {
        let mut next = 0;
        let mut names = Vec::new();
        loop {
            // SAFETY: PHP has started; the name is a string of the table of settings, which stays.
            unsafe {
                let name = ffi::surus_setting_name(&mut next);
                if name.is_null() {
                    return names;
                }
                names.push(CStr::from_ptr(name).to_string_lossy().into_owned());
            }
        }
    }

    /// For tests, before [`Engine::start`]: PHP allocates with malloc, so that tools can check its memory, and the
    /// process aborts if an isolate frees a block of another one. Slow.
    pub fn check_heaps() {
        assert!(!STARTED.load(Ordering::SeqCst), "PHP has been started");
        // SAFETY: sets a flag that is read when an isolate is made.
        unsafe { ffi::surus_heap_check() };
    }

    /// How often state was swapped since the process began.
    pub fn swaps(&self) -> Swaps {
        // SAFETY: reads two counters, on the thread that PHP belongs to: an engine is not `Send`.
        unsafe { ffi::surus_count_swaps() }
    }

    /// How the application's persistent connections are kept in this process.
    pub fn keep_connections(&self, how: &Connections) {
        let number = |count: usize| c_uint::try_from(count).unwrap_or(0);
        // A part of a second is one.
        let seconds =
            |time: Option<Duration>| time.map_or(0, |time| time.as_secs_f64().ceil() as c_uint);
        let settings = ffi::PersistentSettings {
            places: number(how.most),
            patience: how.patience.as_secs_f64(),
            max_idle: seconds(how.max_idle),
            min_idle: number(how.min_idle),
            max_age: seconds(how.max_age),
        };
        // SAFETY: the settings are copied, on the thread that PHP belongs to: an engine is not `Send`.
        unsafe { ffi::surus_persistent_set(&settings) };
    }

    /// Does not reset persistent sessions with PostgreSQL that were asked for nothing but what looks like reading.
    pub fn trust_texts(&self) {
        // SAFETY: sets a flag, on the thread that PHP belongs to: an engine is not `Send`.
        unsafe { ffi::surus_persistent_trust(true) };
    }

    /// Prepares a forked process to run PHP on the calling thread.
    pub fn enter_worker(&self, preempt_after: Duration) {
        let slice = u64::try_from(preempt_after.as_micros())
            .unwrap_or(10_000)
            .max(1000);
        // SAFETY: the engine has started; timers and handlers are set for this thread.
        unsafe { ffi::surus_engine_enter_worker(slice) };
        if let Some(entries) = ENVIRONMENT.get() {
            let entries = entries.iter().map(|entry| entry.as_ptr().cast_mut());
            let entries: Vec<_> = entries.chain([null_mut()]).collect();
            // SAFETY: the list ends with NULL and is never freed, nor are the strings of a static, which nobody writes
            // to: an environment is copied before it is changed. This process has no isolates yet.
            unsafe { ffi::surus_environment_set(entries.leak().as_mut_ptr()) };
        }
    }
}

fn ini_text(config: &EngineConfig) -> Result<String, StartError> {
    let mut text = String::new();
    let errors = if config.dev { "1" } else { "0" };
    let ours = [
        ("display_errors", errors),
        ("display_startup_errors", errors),
        ("log_errors", "1"),
        ("opcache.enable", "1"),
        ("opcache.jit", "off"),
        // Isolates hold OPcache's usage lock all their life; OPcache must not kill the process for that.
        ("opcache.force_restart_timeout", "0"),
    ];
    // Changes of files take effect immediately.
    let ours_too = [("opcache.revalidate_freq", "0")]
        .into_iter()
        .take(usize::from(config.dev));
    let settings = ours
        .iter()
        .map(|&(k, v)| (k, v))
        .chain(ours_too)
        .chain(config.ini.iter().map(|(k, v)| (k.as_str(), v.as_str())));
    for (key, value) in settings {
        if key.is_empty() || key.contains(['\n', '=', '[', ';']) || value.contains(['\n', '"']) {
            return Err(StartError(format!("php.ini setting {key:?} = {value:?} is not valid: no line breaks, quotes or brackets")));
        }
        text.push_str(&format!("{key}=\"{value}\"\n"));
    }
    Ok(text)
}
