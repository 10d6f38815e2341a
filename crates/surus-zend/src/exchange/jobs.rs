//! The jobs of one request that have not ended: tasks of its isolate that wait at the same time as its own.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
};

use tokio::sync::Notify;

use crate::ffi;

/// What waits for what; all on one thread.
#[derive(Default)]
pub(crate) struct Jobs {
    running: RefCell<HashMap<u64, Rc<Job>>>,
    last: Cell<u64>,
    /// Wakes the request's own code where it waits for a job.
    pub(crate) woken: Notify,
    /// Notified when a job has ended.
    pub(crate) ended: Notify,
    /// The request's own task was abandoned: a job that has not begun never does.
    pub(crate) abandoned: Cell<bool>,
}

pub(crate) struct Job {
    task: *mut ffi::Task,
    /// Wakes it where it waits for another one.
    pub(crate) woken: Notify,
    /// Ends what it waits for.
    pub(crate) cancelled: Notify,
    /// How often it was cancelled.
    asked: Cell<u8>,
}

impl Job {
    /// Cancels it: once, and once more if it is `hard`.
    fn cancel(&self, hard: bool) {
        let most = if hard { 2 } else { 1 };
        if self.asked.get() >= most {
            return;
        }
        self.asked.set(self.asked.get() + 1);
        // SAFETY: a job is forgotten before its task is freed.
        unsafe { ffi::surus_task_cancel(self.task, ffi::CANCEL_JOB) };
        self.cancelled.notify_one();
    }

    /// Whether it was cancelled twice: nothing of it may wait.
    pub(crate) fn is_hurried(&self) -> bool {
        self.asked.get() > 1
    }
}

impl Jobs {
    pub(crate) fn add(&self, task: *mut ffi::Task) -> (u64, Rc<Job>) {
        let number = self.last.get() + 1;
        self.last.set(number);
        let job = Rc::new(Job {
            task,
            woken: Notify::new(),
            cancelled: Notify::new(),
            asked: Cell::new(0),
        });
        self.running.borrow_mut().insert(number, job.clone());
        (number, job)
    }

    /// Before its task is freed.
    pub(crate) fn forget(&self, number: u64) {
        self.running.borrow_mut().remove(&number);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.running.borrow().is_empty()
    }

    pub(crate) fn get(&self, number: u64) -> Option<Rc<Job>> {
        self.running.borrow().get(&number).cloned()
    }

    pub(crate) fn wake(&self, number: u64) {
        match self.get(number) {
            _ if number == 0 => self.woken.notify_one(),
            Some(job) => job.woken.notify_one(),
            None => {}
        }
    }

    pub(crate) fn cancel(&self, number: u64) {
        if let Some(job) = self.get(number) {
            job.cancel(false);
        }
    }

    pub(crate) fn cancel_all(&self, hard: bool) {
        for job in self.running.borrow().values() {
            job.cancel(hard);
        }
    }
}
