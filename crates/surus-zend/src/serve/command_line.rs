//! PHP as its command line program, in an isolate: `surus php`, and with a neighbour for PHP's own tests.
//!
//! A script and its neighbour take turns: whenever the script parks or is pre-empted, which happens as often as PHP
//! allows, the neighbour runs a step in an isolate of its own. The neighbour changes all state that PHP code can
//! change, and checks that its changes are still there; it must outlive the script.

use std::{
    ffi::{c_char, CString},
    io::Write,
    path::Path,
    ptr::null,
    rc::Rc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use crate::{
    blocking::Parked,
    engine::{changes::Changes, isolate::Isolate, process::StartError},
    exchange::Exchange,
    ffi,
    serve::{
        in_process,
        jobs::end_abandoned,
        task::{Outcome, Task, Turn},
    },
};

/// The usual stack limit of a main thread, as php-cli has.
const STACK_SIZE: usize = 8 * 1024 * 1024;
/// A script that computes is pre-empted at the first possible place this number of times, then once per time slice.
const EAGER_SWITCHES: u32 = 1000;
/// Steps of the neighbour for each turn of the script.
const STEPS: u32 = 4;
/// Steps of the neighbour before the script starts: enough to make all its changes.
const FIRST_STEPS: u32 = 1000;
/// The interval between turns of the neighbour while the script waits.
const PACE: Duration = Duration::from_millis(2);
/// Exit status of a process whose neighbour noticed a change by the script, or ended.
const DISTURBED: i32 = 70;

/// Exit status of a script whose stack was lost: that of a fatal error.
const LOST: i32 = 255;

/// The settings that php-cli makes before those of `-d`.
pub const SETTINGS: &str =
    "html_errors=0\nregister_argc_argv=1\nimplicit_flush=1\noutput_buffering=0\n\
    max_execution_time=0\nmax_input_time=-1\nopcache.force_restart_timeout=0\n";

/// Adds `-d name=value` to php.ini text, as php_ini_builder_define() does: a value that begins with an unusual
/// character is quoted, and a missing value is 1.
pub fn define(ini: &mut Vec<u8>, text: &[u8]) {
    let (name, value) = match text.iter().position(|&b| b == b'=') {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &b"1"[..]),
    };
    let plain = value
        .first()
        .is_none_or(|&b| b.is_ascii_alphanumeric() || b == b'"' || b == b'\'');
    let quote: &[u8] = if plain { b"" } else { b"\"" };
    for part in [name, b"=", quote, value, quote, b"\n"] {
        ini.extend_from_slice(part);
    }
}

/// Options of php-cli for the whole of PHP.
#[derive(Debug, Default)]
pub struct Options {
    /// php.ini text.
    pub ini: CString,
    /// `-c`
    pub ini_path: Option<CString>,
    /// `-n`
    pub no_ini: bool,
    /// Scripts may have tasks (`Surus\all()`), whose connections are guarded as in a server. Not beside a neighbour.
    pub tasks: bool,
    /// The value of `PHP_BINARY`.
    pub executable: CString,
}

/// What php-cli does with the lines of standard input.
#[derive(Debug, Default)]
pub struct Lines {
    /// `-B`: before the first one.
    pub begin: Option<CString>,
    /// `-R`: for each line. Without it (`-F`) the file is run for each line.
    pub each: Option<CString>,
    /// `-E`: after the last one.
    pub end: Option<CString>,
}

/// What to run.
#[derive(Debug)]
pub enum Source {
    /// A file.
    File(CString),
    /// All of standard input.
    StandardInput,
    /// Code without an opening tag.
    Code(CString),
    /// For each line of standard input.
    Lines(Lines, Option<CString>),
}

/// A script and its arguments; the first one is its name.
#[derive(Debug)]
pub struct Invocation {
    /// The script.
    pub source: Source,
    /// `$argv`.
    pub arguments: Vec<CString>,
    /// Only compile it.
    pub lint: bool,
}

/// Loads PHP under php-cli's name and with its settings. Once per process.
pub fn start(options: Options) -> Result<(), StartError> {
    // PHP keeps pointers to these strings.
    let options = Box::leak(Box::new(options));
    let raw = ffi::CommandLine {
        ini: options.ini.as_ptr(),
        ini_path: options.ini_path.as_ref().map_or(null(), |p| p.as_ptr()),
        executable: options.executable.as_ptr(),
        no_ini: options.no_ini,
        tasks: options.tasks,
    };
    let mut error = vec![0u8; 1024];
    // SAFETY: the first call into PHP of this process; the strings live on; `error` has room for its size.
    let result =
        unsafe { ffi::surus_command_line_start(&raw, error.as_mut_ptr().cast(), error.len()) };
    if result == 0 {
        // SAFETY: PHP has started; this thread runs it.
        unsafe { ffi::surus_engine_enter_worker(1000) };
        return Ok(());
    }
    let end = error.iter().position(|&b| b == 0).unwrap_or(0);
    Err(StartError(
        String::from_utf8_lossy(&error[..end]).into_owned(),
    ))
}

/// A task, and all that PHP has pointers to while it runs.
struct Process {
    task: Task,
    exchange: Rc<Exchange>,
    _script: Box<(ffi::Invocation, Invocation, Vec<*mut c_char>)>,
}

impl Process {
    fn new(script: Invocation, switches: u32, quiet: bool) -> Result<Process, StartError> {
        // The neighbour has a fixed memory limit, whatever the script's is.
        let task = Isolate::new(quiet.then_some("128M"))
            .and_then(|isolate| Task::new(&isolate, STACK_SIZE))
            .map_err(|error| StartError(error.to_string()))?;
        let mut argv: Vec<*mut c_char> = script
            .arguments
            .iter()
            .map(|a| a.as_ptr().cast_mut())
            .collect();
        let pointer = |text: &Option<CString>| text.as_ref().map_or(null(), |it| it.as_ptr());
        let (mut file, mut code, mut lines) = (null(), null(), None);
        match &script.source {
            Source::File(path) => file = path.as_ptr(),
            Source::StandardInput => {}
            Source::Code(text) => code = text.as_ptr(),
            Source::Lines(what, path) => {
                file = pointer(path);
                lines = Some(what);
            }
        }
        let raw = ffi::Invocation {
            file,
            code,
            argc: i32::try_from(argv.len()).unwrap_or(0),
            argv: argv.as_mut_ptr(),
            switches,
            lint: script.lint,
            lines: lines.is_some(),
            begin: lines.map_or(null(), |it| pointer(&it.begin)),
            each: lines.map_or(null(), |it| pointer(&it.each)),
            end: lines.map_or(null(), |it| pointer(&it.end)),
            quiet,
        };
        let script = Box::new((raw, script, argv));
        let exchange = Exchange::for_script(Path::new("-"), true);
        // SAFETY: the task is idle; the script is kept for as long as the task, and its pointers lead to memory that
        // does not move with the box.
        unsafe { ffi::surus_task_set_script(task.raw(), &script.0) };
        task.assign(ffi::RUN_SCRIPT, &exchange);
        Ok(Process {
            task,
            exchange,
            _script: script,
        })
    }

    /// Exits at the end of a child process that the script has forked: the event loop belongs to the parent.
    fn resume(&self) -> Turn {
        let parent = std::process::id();
        let turn = self.task.resume();
        if matches!(turn, Turn::Done(_)) && std::process::id() != parent {
            std::process::exit(self.status() & 0xff);
        }
        turn
    }

    /// Waits until `poll` is ready, or a task of the script has ended the script.
    async fn wait(&self, mut poll: impl FnMut(&mut Context<'_>) -> Poll<()>) {
        std::future::poll_fn(|cx| {
            if poll(cx).is_ready() || self.exchange.take_interruption() {
                return Poll::Ready(());
            }
            *self.exchange.driver.borrow_mut() = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// The script's exit status, once it is done.
    fn status(&self) -> i32 {
        // SAFETY: reads memory of the task's isolate, which is alive.
        unsafe { ffi::surus_task_exit_status(self.task.raw()) }
    }
}

/// The neighbour: runs a step at a time.
struct Neighbour {
    process: Process,
    parked: Option<Parked>,
}

impl Neighbour {
    fn steps(&mut self, count: u32) {
        for _ in 0..count {
            self.step();
        }
    }

    fn step(&mut self) {
        if let Some(parked) = &mut self.parked {
            if parked.poll(&mut Context::from_waker(Waker::noop())) == Poll::Pending {
                return;
            }
            self.parked = None;
        }
        match self.process.task.resume() {
            Turn::Preempted | Turn::Yielded => {}
            Turn::Parked(parked) => self.parked = Some(parked),
            Turn::Done(_) => {
                let _ = writeln!(std::io::stderr(), "surus-phpt: the neighbour has ended");
                std::process::exit(DISTURBED);
            }
        }
    }

    /// Ends it as a request is ended; its waits are interrupted.
    fn end(mut self) {
        self.parked = None;
        self.process.task.cancel(ffi::CANCEL_SHUTDOWN);
        self.process.task.finish_now();
    }
}

/// Runs `script` by itself. Returns its exit status.
pub async fn run_alone(script: Invocation) -> Result<i32, StartError> {
    let process = Process::new(script, 0, false)?;
    in_process::allow(process.task.isolate());
    loop {
        match process.resume() {
            Turn::Done(Outcome::Abandoned) => {
                end_abandoned(&process.exchange).await;
                return Ok(LOST);
            }
            Turn::Done(_) => break,
            Turn::Preempted | Turn::Yielded => tokio::task::yield_now().await,
            Turn::Parked(mut parked) => process.wait(|cx| parked.poll(cx)).await,
        }
        // A task of the script may be pre-empted.
        process.task.wait_until_free().await;
    }
    Ok(process.status())
}

/// Runs `script` alternately with `neighbour`, which is PHP code, and records `changes`. Returns the script's exit
/// status.
pub async fn run(
    script: Invocation,
    neighbour: CString,
    changes: Option<&Changes>,
) -> Result<i32, StartError> {
    let mut neighbour = Neighbour {
        process: Process::new(
            Invocation {
                source: Source::Code(neighbour),
                arguments: vec![c"neighbour".into()],
                lint: false,
            },
            u32::MAX,
            true,
        )?,
        parked: None,
    };
    neighbour.steps(FIRST_STEPS);
    let name = script.arguments.first().cloned().unwrap_or_default();
    let process = Process::new(script, EAGER_SWITCHES, false)?;
    loop {
        let turn = process.resume();
        changes.inspect(|changes| changes.look());
        neighbour.steps(STEPS);
        match turn {
            Turn::Done(_) => break,
            Turn::Preempted | Turn::Yielded => {}
            Turn::Parked(mut parked) => {
                while tokio::time::timeout(PACE, std::future::poll_fn(|cx| parked.poll(cx)))
                    .await
                    .is_err()
                {
                    neighbour.steps(STEPS);
                }
            }
        }
    }
    let status = process.status();
    drop(process);
    neighbour.end();
    changes.map_or(Ok(()), |changes| changes.write(&name))?;
    Ok(status)
}

impl Drop for Process {
    fn drop(&mut self) {
        self.exchange.finish();
    }
}
