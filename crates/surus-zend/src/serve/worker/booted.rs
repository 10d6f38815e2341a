//! One isolate in worker mode: the application has booted in it, and it serves one request at a time.

use std::{path::Path, rc::Rc};

use super::{
    isolates::{OneAtATime, Plan},
    warm_up,
};
use crate::{
    engine::{isolate::Isolate, process::BootError},
    exchange::{request::AppLimits, Exchange},
    ffi,
    serve::{
        coroutine::version::{log_output, Version},
        refresh::BootLog,
        task::{Outcome, Task},
    },
};

/// The usual size of a process's main stack: code that runs under php-fpm must not overflow it here.
const STACK_SIZE: usize = 8 * 1024 * 1024;

pub(crate) struct Booted {
    /// None at the end only: it must be freed before the isolate ends.
    task: Option<Task>,
    script: Option<Looping>,
    version: Version,
    /// What a failed request has left must not be run.
    has_failed: bool,
    /// Its memory is put back after each request: the script does not go on.
    is_snapshot: bool,
    limits: AppLimits,
}

/// From now on each request of the task finds the isolate as it is now.
async fn take_snapshot(
    task: &Task,
    script: &Path,
    limits: &AppLimits,
    dev: bool,
) -> Result<(), BootError> {
    let exchange = Exchange::for_script(script, dev);
    task.assign(ffi::RUN_SNAPSHOT, &exchange);
    let limits = AppLimits {
        request_timeout: limits.boot_timeout,
        ..limits.clone()
    };
    let log = BootLog::begin(&exchange);
    let outcome = task.start(&exchange, &limits).await;
    log_output(&exchange);
    match outcome {
        Outcome::Ok => Ok(()),
        _ => Err(log.error(script, None)),
    }
}

/// A script that waits in `Surus\handle_request()`, with what it prints.
struct Looping {
    task: Task,
    exchange: Rc<Exchange>,
}

impl Looping {
    /// Resumes the script: a request has ended, and `more` will come, or none.
    async fn go_on(&self, more: bool, limits: &AppLimits) -> Outcome {
        self.exchange.begin_again();
        self.task.tell(more);
        let turn = self.task.resume();
        let outcome = self.task.drive(&self.exchange, limits, turn).await;
        log_output(&self.exchange);
        outcome
    }

    /// Tells the script that no more requests come. Its waits are interrupted.
    fn end_now(&self) {
        self.exchange.begin_again();
        self.task.tell(false);
        self.task.finish_now();
        log_output(&self.exchange);
    }
}

impl OneAtATime for Booted {
    async fn boot(plan: &Plan) -> Result<Self, BootError> {
        let limits = &plan.config.limits;
        let exchange = Exchange::for_script(&plan.script.file, plan.engine.dev);
        let memory_limit = limits.memory_limit.as_deref();
        let isolate = match plan.script.is_snapshot {
            true => Isolate::for_snapshots(memory_limit)?,
            false => Isolate::new(memory_limit)?,
        };
        isolate.serve_in_turn(plan.script.starter.as_deref());
        let limit = limits.boot_timeout;
        let (version, task) =
            Version::boot_in(isolate, limit, &plan.script.file, limits, &exchange).await?;
        let script = task
            .waits_for_requests()
            .then_some(Looping { task, exchange });
        let mut booted = Booted {
            task: None,
            script,
            version,
            has_failed: false,
            is_snapshot: false,
            limits: limits.clone(),
        };
        let task = booted
            .task
            .insert(Task::new(&booted.version.isolate, STACK_SIZE)?);
        for uri in &plan.script.warm_up {
            let served = &plan.script.served;
            warm_up::ask(task, &booted.version, uri, served, limits, plan.engine.dev).await?;
            if let Some(script) = &booted.script {
                let outcome = script.go_on(true, limits).await;
                if outcome != Outcome::Ok || !script.task.waits_for_requests() {
                    return Err(BootError(format!(
                        "warm_up: {uri}: the script has not gone on after it"
                    )));
                }
            }
        }
        if plan.script.is_snapshot {
            take_snapshot(task, &plan.script.file, limits, plan.engine.dev).await?;
            booted.is_snapshot = true;
        }
        Ok(booted)
    }

    fn task(&self) -> Option<&Task> {
        self.task.as_ref()
    }

    fn version(&self) -> &Version {
        &self.version
    }

    fn goes_on_by_itself(&self) -> bool {
        self.script.is_some() && !self.is_snapshot
    }

    async fn settle(&mut self) -> bool {
        let Some(script) = &self.script else {
            return true;
        };
        let outcome = script.go_on(true, &self.limits).await;
        if outcome == Outcome::Ok && script.task.waits_for_requests() {
            return true;
        }
        self.script = None;
        self.has_failed = matches!(outcome, Outcome::Fatal | Outcome::Abandoned);
        false
    }

    async fn end(mut self) {
        self.task = None;
        if let Some(script) = self.script.take() {
            script.go_on(false, &self.limits).await;
        }
    }

    fn fail(mut self) {
        self.has_failed = true;
    }
}

impl Drop for Booted {
    fn drop(&mut self) {
        self.task = None;
        if let Some(script) = self.script.take() {
            if !self.is_snapshot && !self.has_failed && self.version.isolate.is_clean() {
                script.end_now();
            }
        }
        // The version ends the isolate.
    }
}
