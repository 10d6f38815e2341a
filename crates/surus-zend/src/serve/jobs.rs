//! Drives the jobs of requests: `csrc/app/jobs.c`. Each is a future of its own, resumed like the request's own task; the
//! request's deadline, client and end reach it through its cancellation.

use std::{
    ffi::{c_int, c_void},
    future::poll_fn,
    rc::Rc,
    time::Duration,
};

use crate::{
    blocking::{can_park, park_always, park_on},
    exchange::{
        jobs::{Job, Jobs},
        Exchange,
    },
    ffi,
    serve::{
        task::{Task, Turn},
        turns::Ticket,
    },
};

/// How often C code of a job that was cancelled twice may repeat a refused call before it is given up.
const MAX_YIELDS: usize = 1000;

async fn drive(task: &Task, job: &Job, jobs: &Jobs, exchange: &Exchange) {
    let mut ticket = None;
    let mut yields = 0;
    loop {
        // One that was cancelled runs to its end although another task holds the isolate, as a request does.
        tokio::select! {
            biased;
            () = task.wait_until_free() => {}
            () = job.cancelled.notified() => {}
        }
        if jobs.abandoned.get() && !task.has_begun() {
            return;
        }
        let turn = task.resume();
        drop(ticket.take());
        match turn {
            Turn::Done(_) => return,
            Turn::Parked(mut parked) => {
                tokio::select! {
                    biased;
                    () = poll_fn(|cx| parked.poll(cx)) => {}
                    () = job.cancelled.notified() => {}
                }
            }
            Turn::Preempted | Turn::Yielded => {
                if matches!(turn, Turn::Yielded) && job.is_hurried() {
                    yields += 1;
                }
                if yields > MAX_YIELDS {
                    tracing::error!("a cancelled task does not end: its isolate is given up");
                    task.give_up();
                    return;
                }
                if exchange.preempts.get() {
                    task.isolate().release(task.raw());
                }
                // SAFETY: the task is alive, and so is its request.
                if unsafe { ffi::surus_job_is_unwanted(task.raw()) } {
                    exchange.wake_driver();
                }
                let mut next = Ticket::take();
                poll_fn(|cx| next.poll_first(cx)).await;
                next.begin().await;
                if !task.is_blocked() {
                    ticket = Some(next);
                }
            }
        }
    }
}

/// The request's own task was abandoned: its jobs must end, too, before its state is freed.
pub(crate) async fn end_abandoned(exchange: &Exchange) {
    let Some(jobs) = exchange.jobs.get() else {
        return;
    };
    jobs.cancel_all(false);
    jobs.cancel_all(true);
    while !jobs.is_empty() {
        jobs.ended.notified().await;
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_job_begin(exchange: *mut c_void, raw: *mut ffi::Task) -> u64 {
    // SAFETY: of the running task; and a new task, which is ours from here on.
    let (exchange, task) = unsafe {
        (
            Exchange::from_raw(exchange).shared(),
            Task::of_running_isolate(raw),
        )
    };
    let jobs = exchange.jobs.get_or_init(Rc::default).clone();
    let (number, job) = jobs.add(raw);
    tokio::task::spawn_local(async move {
        drive(&task, &job, &jobs, &exchange).await;
        // SAFETY: the task is alive.
        let dooms = unsafe { ffi::surus_job_dooms(task.raw()) };
        jobs.forget(number);
        drop(task);
        jobs.ended.notify_one();
        if dooms {
            exchange.interrupt();
        }
    });
    number
}

#[no_mangle]
unsafe extern "C" fn surus_rs_job_wait(exchange: *mut c_void, number: u64, seconds: f64) -> c_int {
    if !can_park() {
        return ffi::CANNOT_WAIT;
    }
    // SAFETY: of the running task.
    let exchange = unsafe { Exchange::from_raw(exchange) };
    let jobs = exchange.jobs.get_or_init(Rc::default);
    let job = jobs.get(number);
    let woken = job.as_ref().map_or(&jobs.woken, |job| &job.woken);
    let waited = match Duration::try_from_secs_f64(seconds) {
        Ok(time) => park_on(async { tokio::time::timeout(time, woken.notified()).await.is_ok() }),
        Err(_) => park_on(async {
            woken.notified().await;
            true
        }),
    };
    match waited {
        Ok(true) => ffi::WOKEN,
        Ok(false) => ffi::TIME_OVER,
        Err(_) => ffi::MUST_END,
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_job_wake(exchange: *mut c_void, number: u64) {
    // SAFETY: of the running task.
    let exchange = unsafe { Exchange::from_raw(exchange) };
    if let Some(jobs) = exchange.jobs.get() {
        jobs.wake(number);
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_job_cancel(exchange: *mut c_void, number: u64) {
    // SAFETY: of the running task.
    let exchange = unsafe { Exchange::from_raw(exchange) };
    if let Some(jobs) = exchange.jobs.get() {
        jobs.cancel(number);
    }
}

#[no_mangle]
unsafe extern "C" fn surus_rs_jobs_end(exchange: *mut c_void, hard: bool) -> bool {
    // SAFETY: of the running task.
    let exchange = unsafe { Exchange::from_raw(exchange) };
    let Some(jobs) = exchange.jobs.get().filter(|jobs| !jobs.is_empty()) else {
        return false;
    };
    jobs.cancel_all(hard);
    park_always(jobs.ended.notified());
    true
}
