//! The channels of this worker: what `surus-channels` needs of the post between workers and of the memory that they share.

mod history;

use std::{
    cell::{Cell, OnceCell},
    io,
    rc::Rc,
    sync::OnceLock,
    time::Duration,
};

use bytes::Bytes;
use surus_channels::{Hub, Links, Rules};
use tokio::{
    sync::Notify,
    task::{spawn_local, JoinHandle},
    time::sleep,
};

use super::{memory, mutex::Mutex, post};
use history::SharedHistory;

/// How long changes of the numbers of subscribers wait for each other before others are told.
const SOON: Duration = Duration::from_millis(20);

/// How often it is checked whether letters were lost and others have died, while there are channels.
const LOOK: Duration = Duration::from_millis(500);

/// What is made before the fork.
struct Shared {
    rules: Rules,
    /// Other servers share them.
    is_shared: bool,
    /// In the higher half of the number of each worker: its server, if several share channels.
    node: u64,
    locks: &'static [Mutex],
    appended: &'static std::sync::atomic::AtomicU64,
}

static SHARED: OnceLock<Shared> = OnceLock::new();

thread_local! {
    static HUB: OnceCell<Rc<Hub>> = const { OnceCell::new() };
    static LOOKING: Cell<Option<JoinHandle<()>>> = const { Cell::new(None) };
    /// There may be channels.
    static STIRRED: Rc<Notify> = Rc::default();
}

/// Before any fork: channels of so many workers. `rules`: which have a history. `is_shared`: with other servers.
///
/// # Errors
/// The system has no more memory or descriptors.
pub fn channels_between(workers: usize, rules: Rules, is_shared: bool) -> io::Result<()> {
    post::post_between(workers)?;
    let _ = SHARED.set(Shared {
        rules,
        is_shared,
        node: u64::from(history::random() as u32) << 32,
        locks: Mutex::several(history::LOCKS)?,
        appended: &memory::shared_counters(1)?[0],
    });
    Ok(())
}

/// The channels of this process; `None`: it is none of a server.
#[must_use]
pub fn channels() -> Option<Rc<Hub>> {
    HUB.with(|hub| hub.get().cloned())
}

/// This process may publish from now on. After the fork.
pub fn reach_channels() {
    let Some(shared) = SHARED.get() else {
        return;
    };
    HUB.with(|hub| {
        hub.get_or_init(|| {
            let me = shared.node | post::number();
            let history = SharedHistory {
                locks: shared.locks,
                appended: shared.appended,
                is_shared: shared.is_shared,
            };
            let rules = shared.rules.clone();
            Rc::new(Hub::new(me, Box::new(Post), Box::new(history), rules))
        });
    });
}

/// This process has clients: from now on their subscriptions get what others publish. After the fork, on the event loop's thread.
pub fn enter_channels() {
    reach_channels();
    let Some(hub) = channels() else {
        return;
    };
    let receiving = Rc::clone(&hub);
    post::enter(move |letter| {
        if receiving.receive(&letter).is_none() {
            tracing::error!("a letter of another worker is malformed");
        }
        stir();
    });
    hub.hello();
    let looking = spawn_local(look(hub));
    LOOKING.set(Some(looking));
}

/// It ends: others need not write to it.
pub fn leave_channels() {
    post::leave();
    if let Some(looking) = LOOKING.take() {
        looking.abort();
    }
}

pub(super) fn stir() {
    STIRRED.with(|stirred| stirred.notify_one());
}

async fn look(hub: Rc<Hub>) {
    let stirred = STIRRED.with(Rc::clone);
    loop {
        while hub.figures().channels == 0 && !post::has_lost() {
            stirred.notified().await;
        }
        sleep(LOOK).await;
        hub.catch_up();
        for other in post::take_lost() {
            hub.introduce_anew((hub.me() >> 32 << 32) | other);
        }
        for other in hub.others() {
            if hub.is_of_this_server(other) && !post::is_there(other & u64::from(u32::MAX)) {
                hub.gone(other);
            }
        }
    }
}

struct Post;

impl Links for Post {
    fn send(&self, letter: Bytes) {
        post::send(&letter);
        stir();
    }

    fn soon(&self) {
        spawn_local(async {
            sleep(SOON).await;
            if let Some(hub) = channels() {
                hub.flush();
            }
        });
        stir();
    }
}
