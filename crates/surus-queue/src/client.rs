//! The side of those who push and run jobs. The connection comes and goes; what the owner has not confirmed is sent again.

mod link;
mod pushing;
mod streams;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::fmt;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::{oneshot, Notify};
use tokio::time::timeout;

use pushing::{Pushing, Unanswered};

use crate::job::{Ending, Id, NewBatch, Push, Pushed};
use crate::message::{check_length, write, Delivery, Question, Subscription, ToOwner};

/// For an answer. The owner answers when the job is on disk; it may die and be replaced meanwhile.
const PATIENCE: Duration = Duration::from_secs(15);

/// Bytes that are kept of an error.
const LONGEST_ERROR: usize = 16 << 10;

type Handler = dyn Fn(Delivery);

/// A connection to the owner of the jobs in a folder. On a thread with a `LocalSet`.
#[derive(Clone)]
pub struct Client {
    shared: Rc<Shared>,
}

struct Shared {
    folder: PathBuf,
    /// There is no owner: whoever starts one is told so.
    summon: Box<dyn Fn()>,
    state: RefCell<State>,
    /// There is something to send.
    wake: Notify,
    /// The end of a run was noted.
    noted: Notify,
    /// The link has begun.
    is_linked: Cell<bool>,
}

#[derive(Default)]
struct State {
    /// Bytes for the owner, while there is a connection.
    out: Vec<u8>,
    is_connected: bool,
    last_request: u64,
    pushes: BTreeMap<u64, Unanswered>,
    questions: BTreeMap<u64, (Question, oneshot::Sender<String>)>,
    /// What the owner is told: what was declared, and what is taken.
    subscriptions: BTreeMap<String, Subscription>,
    /// Of [`Client::subscribe`].
    declared: BTreeMap<String, Subscription>,
    /// Jobs that this process has, until the owner has noted their end.
    held: HashSet<Id>,
    ended: BTreeMap<Id, Ending>,
    reads: BTreeMap<u64, streams::Asked>,
    /// By stream and group, what this process has read and not acknowledged.
    entries: BTreeMap<(String, String), BTreeSet<u64>>,
    /// What running jobs have said of themselves, and nobody has been told yet.
    progress: BTreeMap<Id, f32>,
    handler: Option<Rc<Handler>>,
    takers: HashMap<String, VecDeque<oneshot::Sender<Delivery>>>,
    /// Jobs that were taken, and their queues.
    taken: HashMap<Id, String>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("folder", &self.shared.folder)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// `summon` is called while there is no owner, several times a second.
    pub fn new(folder: PathBuf, summon: impl Fn() + 'static) -> Self {
        let shared = Shared {
            folder,
            summon: Box::new(summon),
            state: RefCell::default(),
            wake: Notify::new(),
            noted: Notify::new(),
            is_linked: Cell::new(false),
        };
        Client {
            shared: Rc::new(shared),
        }
    }

    fn send(&self, message: &ToOwner) {
        if !self.shared.is_linked.replace(true) {
            tokio::task::spawn_local(link::run(Rc::downgrade(&self.shared)));
        }
        let mut state = self.shared.state.borrow_mut();
        if state.is_connected {
            write(message, &mut state.out);
            self.shared.wake.notify_one();
        }
    }

    /// Returns when the job is on disk.
    ///
    /// # Errors
    /// It is not; or the owner has not answered in time, and nobody knows.
    pub async fn push(&self, push: Push) -> Result<Pushed, String> {
        // The owner ends a connection whose messages are too long, and with it those of all others.
        check_length("payload", push.payload.len())?;
        self.push_any(Pushing::Job(push)).await
    }

    /// The same for jobs that belong together: all of them are kept, or none. The id is that of the batch.
    ///
    /// # Errors
    /// As for one.
    pub async fn push_batch(&self, batch: NewBatch) -> Result<Pushed, String> {
        check_length("batch", batch.length())
            .map_err(|why| format!("{why}: make several of it"))?;
        self.push_any(Pushing::Batch(Box::new(batch))).await
    }

    async fn push_any(&self, pushing: Pushing) -> Result<Pushed, String> {
        let (id, (sender, answer)) = (Id::new(), oneshot::channel());
        let request = {
            let mut state = self.shared.state.borrow_mut();
            state.last_request += 1;
            let request = state.last_request;
            state.pushes.insert(request, (id, pushing.clone(), sender));
            request
        };
        let shared = Rc::clone(&self.shared);
        let _forget = Forget(move || _ = shared.state.borrow_mut().pushes.remove(&request));
        self.send(&pushing.message(request, id));
        match timeout(PATIENCE, answer).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) | Err(_) => Err(self.silence("whether the job is kept is not known")),
        }
    }

    fn silence(&self, so: &str) -> String {
        let folder = self.shared.folder.display();
        let state = self.shared.state.borrow();
        let why = match state.is_connected {
            true => "did not answer",
            false => "was not there",
        };
        format!("the process that has the jobs in {folder} {why} for {PATIENCE:?}: {so}")
    }

    /// The answer is JSON.
    ///
    /// # Errors
    /// There is none in time.
    pub async fn ask(&self, question: Question) -> Result<String, String> {
        let (sender, answer) = oneshot::channel();
        let request = {
            let mut state = self.shared.state.borrow_mut();
            state.last_request += 1;
            let request = state.last_request;
            state.questions.insert(request, (question.clone(), sender));
            request
        };
        let shared = Rc::clone(&self.shared);
        let _forget = Forget(move || _ = shared.state.borrow_mut().questions.remove(&request));
        self.send(&ToOwner::Ask { request, question });
        match timeout(PATIENCE, answer).await {
            Ok(Ok(text)) => Ok(text),
            Ok(Err(_)) | Err(_) => Err(self.silence("is a server running?")),
        }
    }

    /// From now on the handler gets jobs of these queues, and of no others. It says with [`Client::end`] how each has ended.
    pub fn subscribe(&self, wanted: Vec<Subscription>, handler: Rc<Handler>) {
        let queues: Vec<String> = {
            let mut state = self.shared.state.borrow_mut();
            state.handler = Some(handler);
            state.declared = wanted
                .into_iter()
                .map(|each| (each.queue.clone(), each))
                .collect();
            let both = state.subscriptions.keys().chain(state.declared.keys());
            both.cloned().collect()
        };
        queues.iter().for_each(|queue| self.want(queue));
    }

    /// The next job of a queue, if there is one within this time.
    ///
    /// # Errors
    /// The owner has not said whether there is one.
    pub async fn take(&self, queue: &str, wait: Duration) -> Result<Option<Delivery>, String> {
        let (sender, job) = oneshot::channel();
        self.wait_for(queue, sender);
        let mut waiting = Waiting {
            client: self,
            queue,
            job,
        };
        self.want(queue);
        if let Ok(job) = timeout(wait, &mut waiting.job).await {
            return Ok(job.ok());
        }
        // That there is none is the owner's to say, which may be slow. Its first answer may come before a job that it has had meanwhile;
        // the second one comes after it.
        for _ in 0..2 {
            let nothing = Question::Batches {
                id: Some(Id::new()),
            };
            tokio::select! {
                biased;
                job = &mut waiting.job => return Ok(job.ok()),
                answer = self.ask(nothing) => {
                    answer?;
                }
            }
        }
        Ok(waiting.job.try_recv().ok())
    }

    fn wait_for(&self, queue: &str, taker: oneshot::Sender<Delivery>) {
        let takers = &mut self.shared.state.borrow_mut().takers;
        takers.entry(queue.to_owned()).or_default().push_back(taker);
    }

    /// Says how many jobs of a queue are wanted: by its handler, and by those who take single ones.
    fn want(&self, queue: &str) {
        let mut state = self.shared.state.borrow_mut();
        let waiting = state.takers.get_mut(queue).map_or(0, |takers| {
            takers.retain(|taker| !taker.is_closed());
            takers.len()
        });
        let running = state.taken.values().filter(|name| *name == queue).count();
        let taken = u32::try_from(waiting + running).unwrap_or(u32::MAX);
        // Whoever takes a job knows itself how often it may run.
        let mut wanted = Subscription {
            queue: queue.to_owned(),
            places: taken,
            tries: None,
            rate: None,
        };
        if let Some(declared) = state.declared.get(queue) {
            wanted.places = declared.places.saturating_add(taken);
            wanted.tries = declared.tries;
            wanted.rate = declared.rate;
        }
        let before = match wanted.places {
            0 => state.subscriptions.remove(queue),
            _ => state.subscriptions.insert(queue.to_owned(), wanted.clone()),
        };
        drop(state);
        let is_same = match &before {
            Some(before) => *before == wanted,
            None => wanted.places == 0,
        };
        if !is_same {
            self.send(&ToOwner::Subscribe(wanted));
        }
    }

    /// How much of a running job is done, from 0 to 1. What is said meanwhile counts, if the owner is slow.
    pub fn progress(&self, id: Id, done: f32) {
        let mut state = self.shared.state.borrow_mut();
        if state.held.contains(&id) && !state.ended.contains_key(&id) {
            state.progress.insert(id, done);
            self.shared.wake.notify_one();
        }
    }

    /// A run of a job has ended.
    pub fn end(&self, id: Id, ending: Ending) {
        let mut state = self.shared.state.borrow_mut();
        if !state.held.contains(&id) {
            return;
        }
        let ending = shortened(ending);
        state.progress.remove(&id);
        state.ended.insert(id, ending.clone());
        let queue = state.taken.remove(&id);
        drop(state);
        self.send(&ToOwner::Ended { id, ending });
        if let Some(queue) = queue {
            self.want(&queue);
        }
    }

    /// Returns when the owner has noted how this run has ended, or does not answer.
    pub async fn settled(&self, id: Id) {
        let noted = async {
            while self.shared.state.borrow().ended.contains_key(&id) {
                self.shared.noted.notified().await;
            }
        };
        let _ = timeout(PATIENCE, noted).await;
    }

    /// Whether the owner has noted the ends of all runs.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.shared.state.borrow().ended.is_empty()
    }

    fn arrived(&self, job: Delivery) {
        let mut state = self.shared.state.borrow_mut();
        state.held.insert(job.id);
        let mut job = job;
        while let Some(taker) = state
            .takers
            .get_mut(&job.queue)
            .and_then(VecDeque::pop_front)
        {
            let (id, queue) = (job.id, job.queue.clone());
            match taker.send(job) {
                Ok(()) => {
                    state.taken.insert(id, queue);
                    return;
                }
                Err(back) => job = back,
            }
        }
        let handler = state.handler.clone();
        let is_wanted = state.declared.contains_key(&job.queue);
        drop(state);
        match handler.filter(|_| is_wanted) {
            Some(handler) => handler(job),
            None => self.end(
                job.id,
                Ending::Again {
                    delay: Duration::ZERO,
                    error: None,
                    counts: false,
                },
            ),
        }
    }
}

/// Errors are as long as applications like; the log and messages are not.
fn shortened(mut ending: Ending) -> Ending {
    if let Ending::Failed { error }
    | Ending::Again {
        error: Some(error), ..
    } = &mut ending
    {
        let mut end = error.len().min(LONGEST_ERROR);
        while !error.is_char_boundary(end) {
            end -= 1;
        }
        error.truncate(end);
    }
    ending
}

/// One who waits for a job. A job that has come goes back if nobody looks any more.
struct Waiting<'a> {
    client: &'a Client,
    queue: &'a str,
    job: oneshot::Receiver<Delivery>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.job.close();
        if let Ok(job) = self.job.try_recv() {
            let ending = Ending::Again {
                delay: Duration::ZERO,
                error: None,
                counts: false,
            };
            self.client.end(job.id, ending);
        }
        self.client.want(self.queue);
    }
}

/// Runs when it is dropped.
struct Forget<F: FnMut()>(F);

impl<F: FnMut()> Drop for Forget<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
