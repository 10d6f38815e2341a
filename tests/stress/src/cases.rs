//! What the requests of php/cases.php answer.

/// The answer to a request whose client waits for it and whose time does not run out.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Answer {
    /// 200 with the request's id, a space and this.
    Says(&'static str),
    /// 200 with the id, a space, this and the id in capitals, and what follows.
    Prints(&'static str, &'static str),
    /// 200 with the id, a space and so many bytes.
    Streams(usize),
    /// 500.
    Fails,
    /// What was sent before the end, or 500.
    Ends,
    /// There is none.
    Never,
}

/// What a request brings with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Brings {
    Nothing,
    /// A multipart form with a file.
    Upload,
    /// A body that comes piece by piece.
    Body,
}

#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// How often it is chosen.
    pub(crate) weight: u64,
    pub(crate) brings: Brings,
    pub(crate) answer: Answer,
    /// It ends its isolate.
    pub(crate) fatal: bool,
}

const fn case(name: &'static str, weight: u64, answer: Answer) -> Case {
    Case {
        name,
        weight,
        brings: Brings::Nothing,
        answer,
        fatal: false,
    }
}

const fn with(brings: Brings, case: Case) -> Case {
    Case { brings, ..case }
}

const fn fatal(name: &'static str, weight: u64, answer: Answer) -> Case {
    Case {
        fatal: true,
        ..case(name, weight, answer)
    }
}

use Answer::{Ends, Fails, Never, Prints, Says, Streams};

pub(crate) const CASES: &[Case] = &[
    case("park", 30, Says("park")),
    case("state", 30, Says("state")),
    case("nested", 15, Says("nested 3")),
    case("generators", 15, Says("generators 1")),
    case("abandoned_generator", 8, Says("abandoned_generator")),
    case("abandoned_fiber", 8, Says("abandoned_fiber")),
    case("tasks", 15, Says("tasks 3")),
    case("cancelled_tasks", 15, Says("cancelled_tasks")),
    case("tasks_left", 10, Says("tasks_left")),
    case("exception_in_task", 8, Fails),
    case("exit_in_task", 8, Says("exit_in_task")),
    case("endless_task", 4, Never),
    case("output", 15, Prints("OUT", " output")),
    case("open_buffers", 8, Says("buffer")),
    case("library", 15, Says("library")),
    case("cycles", 10, Says("cycles")),
    case("session", 10, Says("session")),
    case("shared_session", 10, Says("session")),
    with(Brings::Upload, case("upload", 10, Says("upload"))),
    with(Brings::Body, case("body", 10, Says("body"))),
    case("sockets", 12, Says("sockets")),
    case("curl", 8, Says("curl")),
    case("pipes", 1, Says("pipes")),
    case("compute", 3, Says("compute")),
    case("destructor", 10, Says("destructor")),
    case("shutdown", 10, Says("shutdown afterwards")),
    case("include", 10, Says("include once more")),
    case("stream", 15, Streams(40 * 32_768)),
    case("finish", 8, Says("finish")),
    case("exception", 15, Fails),
    case("exception_in_fiber", 8, Fails),
    case("exit", 12, Says("exit")),
    case("exit_in_fiber", 8, Says("exit_in_fiber")),
    case("endless", 3, Never),
    case("endless_wait", 8, Never),
    fatal("memory", 2, Fails),
    fatal("memory_at_once", 2, Fails),
    fatal("recursion", 2, Fails),
    fatal("c_recursion", 1, Fails),
    fatal("redeclared", 3, Fails),
    fatal("fatal_while_buffering", 2, Ends),
    fatal("fatal_in_fiber", 2, Fails),
    fatal("fatal_in_task", 2, Fails),
    fatal("memory_in_task", 2, Fails),
    fatal("fatal_in_shutdown", 2, Ends),
    fatal("fatal_while_flushing", 2, Ends),
];
