use super::boot::LATE_BOOT;
use super::*;

const DRAIN: Duration = Duration::from_secs(30);
const BOOT: Duration = Duration::from_secs(60);

fn at(millis: u64) -> Now {
    Duration::from_millis(millis)
}

/// A master whose workers are all ready.
fn serving(workers: usize) -> State {
    let mut state = State::new(workers, 0, DRAIN, BOOT);
    state.start(at(0));
    for id in 0..workers as Id {
        state.on(Event::Ready(id), at(50));
    }
    state
}

fn spawn(seat: usize, id: Id) -> Action {
    Action::Spawn { seat, id }
}

fn adopt(id: Id, seat: usize) -> Action {
    Action::Adopt { id, seat }
}

fn prepare(id: Id, refresh: Option<u64>) -> Action {
    Action::Prepare {
        id,
        reload: 1,
        refresh,
    }
}

fn without_logs(actions: Vec<Action>) -> Vec<Action> {
    actions
        .into_iter()
        .filter(|action| !matches!(action, Action::Log(_)))
        .collect()
}

#[test]
fn it_starts_all_and_announces_once_when_all_are_ready() {
    let mut state = State::new(2, 0, DRAIN, BOOT);
    assert_eq!(state.start(at(0)), [spawn(0, 0), spawn(1, 1)]);
    assert_eq!(state.on(Event::Ready(1), at(10)), []);
    assert_eq!(
        state.on(Event::Ready(0), at(11)),
        [adopt(0, 0), adopt(1, 1), Action::Announce]
    );
    state.on(Event::Exited(0, Death::Signal("SIGSEGV")), at(5000));
    assert_eq!(
        state.on(Event::Ready(2), at(5100)),
        [adopt(2, 0), Action::Release { id: 1, seat: 0 }]
    );
}

#[test]
fn a_start_that_does_not_succeed_ends_although_some_are_ready() {
    let mut state = State::new(2, 0, DRAIN, BOOT);
    state.start(at(0));
    state.on(Event::Ready(0), at(10));
    let mut now = 60;
    for id in 1..5 {
        state.on(Event::Exited(id, Death::Signal("SIGSEGV")), at(now));
        now += 1000;
        assert_eq!(state.on(Event::Tick, at(now)), [spawn(1, id + 1)]);
    }
    let actions = state.on(Event::Exited(5, Death::Signal("SIGSEGV")), at(now));
    assert_eq!(without_logs(actions), [Action::Kill(0)], "it serves nobody");
}

#[test]
fn a_worker_that_had_lived_is_replaced_at_once() {
    let mut state = serving(2);
    let actions = state.on(Event::Exited(1, Death::Signal("SIGSEGV")), at(2000));
    assert_eq!(
        actions,
        [
            Action::Log("worker 2 was killed by SIGSEGV; starting another".into()),
            spawn(1, 2),
            Action::Adopt { id: 0, seat: 1 }
        ]
    );
    state.on(Event::Ready(2), at(2100));
    assert_eq!(state.deadline(), None);
}

#[test]
fn a_start_without_end_is_killed_and_the_end_of_it_all() {
    let mut state = State::new(2, 0, DRAIN, BOOT);
    state.start(at(0));
    state.on(Event::Ready(0), at(10));
    let late = BOOT + LATE_BOOT;
    assert_eq!(state.deadline(), Some(late));
    let actions = state.on(Event::Tick, late);
    assert!(actions.contains(&Action::Kill(1)) && actions.contains(&Action::Kill(0)));
    assert!(actions.contains(&Action::Log(
        "worker 2 did not boot within boot_timeout, 60s, nor does it end; killing it".into()
    )));
    state.on(Event::Exited(0, Death::Signal("SIGKILL")), late);
    assert_eq!(
        state.on(Event::Exited(1, Death::Signal("SIGKILL")), late),
        [Action::Finish(Outcome::BootFailed)]
    );
}

#[test]
fn a_successor_without_end_is_killed_and_tried_again() {
    let mut state = serving(1);
    let actions = state.on(Event::Recycle(0, "old".into()), at(2000));
    assert_eq!(without_logs(actions), [spawn(0, 1)]);
    let late = at(2000) + BOOT + LATE_BOOT;
    assert_eq!(state.deadline(), Some(late));
    assert_eq!(without_logs(state.on(Event::Tick, late)), [Action::Kill(1)]);
    assert_eq!(state.on(Event::Ready(1), late), [], "it is too late");
    let killed = Death::Signal("SIGKILL");
    assert_eq!(without_logs(state.on(Event::Exited(1, killed), late)), []);
    let again = late + replace::TRY_AGAIN;
    assert_eq!(state.on(Event::Tick, again - at(1)), []);
    assert_eq!(without_logs(state.on(Event::Tick, again)), [spawn(0, 2)]);
}

#[test]
fn early_deaths_are_answered_with_growing_pauses_and_then_with_giving_up() {
    let mut state = serving(1);
    let mut now = 60;
    for (id, pause) in [(0, 100), (1, 200), (2, 400), (3, 800)] {
        assert_eq!(
            without_logs(state.on(Event::Exited(id, Death::Exit(3)), at(now))),
            []
        );
        assert_eq!(state.deadline(), Some(at(now + pause)));
        assert_eq!(state.on(Event::Tick, at(now + pause - 1)), []);
        assert_eq!(state.on(Event::Tick, at(now + pause)), [spawn(0, id + 1)]);
        now += pause + 10;
    }
    let actions = state.on(Event::Exited(4, Death::Exit(3)), at(now));
    let message =
        "worker 1 exited with 3, for the 5th time in a row right after its start; giving up";
    assert_eq!(
        actions,
        [Action::Log(message.into()), Action::Finish(Outcome::GaveUp)]
    );
}

#[test]
fn while_another_worker_serves_nothing_is_given_up_and_it_keeps_the_seat() {
    let mut state = serving(2);
    let mut now = 60;
    let mut id = 1;
    let actions = state.on(Event::Exited(1, Death::Exit(3)), at(now));
    assert_eq!(without_logs(actions), [Action::Adopt { id: 0, seat: 1 }]);
    for _ in 0..20 {
        now += 5000;
        assert_eq!(state.on(Event::Tick, at(now)), [spawn(1, id + 1)]);
        id += 1;
        now += 10;
        let actions = state.on(Event::Exited(id, Death::Exit(3)), at(now));
        assert_eq!(without_logs(actions), []);
        assert!(state.deadline().unwrap() <= at(now + 5000));
    }
    state.on(Event::Tick, at(now + 5000));
    let actions = state.on(Event::Ready(id + 1), at(now + 6000));
    assert_eq!(
        actions,
        [adopt(id + 1, 1), Action::Release { id: 0, seat: 1 }]
    );
}

#[test]
fn a_keeper_that_dies_is_succeeded() {
    let mut state = serving(3);
    state.on(Event::Exited(0, Death::Exit(3)), at(60));
    let actions = state.on(Event::Exited(1, Death::Exit(3)), at(61));
    assert_eq!(
        without_logs(actions),
        [
            Action::Adopt { id: 2, seat: 0 },
            Action::Adopt { id: 2, seat: 1 }
        ]
    );
}

#[test]
fn a_life_in_between_forgives_early_deaths() {
    let mut state = serving(1);
    let mut now = 60;
    for id in 0..4 {
        state.on(Event::Exited(id, Death::Exit(3)), at(now));
        now += 1000;
        state.on(Event::Tick, at(now));
    }
    now += 1000;
    assert_eq!(
        without_logs(state.on(Event::Exited(4, Death::Exit(3)), at(now))),
        [spawn(0, 5)]
    );
    assert_eq!(
        without_logs(state.on(Event::Exited(5, Death::Exit(3)), at(now + 10))),
        []
    );
    assert_eq!(state.deadline(), Some(at(now + 110)));
}

#[test]
fn an_application_that_does_not_boot_ends_the_start_with_one_message() {
    let mut state = State::new(2, 0, DRAIN, BOOT);
    state.start(at(0));
    let actions = state.on(Event::BootFailed(0, "Parse error".into()), at(10));
    assert_eq!(
        actions,
        [
            Action::Log("Parse error".into()),
            Action::Kill(0),
            Action::Kill(1)
        ]
    );
    assert_eq!(
        state.on(Event::BootFailed(1, "Parse error".into()), at(11)),
        []
    );
    assert_eq!(state.on(Event::Exited(0, Death::Exit(1)), at(12)), []);
    assert_eq!(
        state.on(Event::Exited(1, Death::Exit(1)), at(12)),
        [Action::Finish(Outcome::BootFailed)]
    );
}

#[test]
fn a_replacement_that_does_not_boot_counts_as_an_early_death_however_slow_it_was() {
    let mut state = serving(1);
    state.on(Event::Exited(0, Death::Exit(0)), at(5000));
    assert_eq!(
        state.on(Event::BootFailed(1, "no".into()), at(9000)),
        [Action::Log("no".into())]
    );
    assert_eq!(
        without_logs(state.on(Event::Exited(1, Death::Exit(1)), at(9000))),
        []
    );
    assert_eq!(state.deadline(), Some(at(9100)));
}

#[test]
fn stopping_drains() {
    let mut state = serving(2);
    let actions = state.on(Event::Stop, at(1000));
    assert_eq!(
        actions,
        [
            Action::CloseListeners,
            Action::Terminate(0),
            Action::Terminate(1)
        ]
    );
    assert_eq!(state.on(Event::Exited(0, Death::Exit(0)), at(1100)), []);
    assert_eq!(
        state.on(Event::Exited(1, Death::Exit(0)), at(1200)),
        [Action::Finish(Outcome::Stopped)]
    );
}

#[test]
fn a_drain_has_a_deadline() {
    let mut state = serving(1);
    state.on(Event::Stop, at(1000));
    assert_eq!(state.deadline(), Some(at(31_000)));
    assert_eq!(state.on(Event::Tick, at(30_999)), []);
    assert_eq!(
        without_logs(state.on(Event::Tick, at(31_000))),
        [Action::Kill(0)]
    );
    assert_eq!(state.deadline(), None);
}

#[test]
fn a_second_signal_ends_at_once() {
    let mut state = serving(2);
    state.on(Event::Stop, at(1000));
    state.on(Event::Exited(0, Death::Exit(0)), at(1010));
    assert_eq!(state.on(Event::Stop, at(1020)), [Action::Kill(1)]);
}

#[test]
fn stopping_while_nothing_lives_ends_at_once() {
    let mut state = serving(1);
    state.on(Event::Exited(0, Death::Exit(3)), at(60));
    assert_eq!(
        state.on(Event::Stop, at(70)),
        [Action::CloseListeners, Action::Finish(Outcome::Stopped)]
    );
}

#[test]
fn a_reload_boots_in_one_worker_then_in_the_others_then_serves_in_all() {
    let mut state = serving(3);
    assert_eq!(state.on(Event::Reload(7), at(1000)), [prepare(0, Some(7))]);
    assert_eq!(
        state.on(Event::Prepared(0, 1), at(1100)),
        [prepare(1, None), prepare(2, None)]
    );
    assert_eq!(state.on(Event::Prepared(2, 1), at(1200)), []);
    assert_eq!(
        state.on(Event::Prepared(1, 1), at(1200)),
        [
            Action::Commit(0, 1),
            Action::Commit(1, 1),
            Action::Commit(2, 1),
        ]
    );
    assert_eq!(state.on(Event::Committed(2, 1), at(1300)), []);
    assert_eq!(state.on(Event::Committed(0, 1), at(1300)), []);
    assert_eq!(
        state.on(Event::Committed(1, 1), at(1301)),
        [Action::Reloaded(Ok(()))]
    );
    assert_eq!(state.deadline(), None);
}

#[test]
fn a_worker_that_computes_or_dies_does_not_keep_a_reload_from_its_end() {
    let mut state = serving(2);
    state.on(Event::Reload(7), at(1000));
    state.on(Event::Prepared(0, 1), at(1100));
    state.on(Event::Prepared(1, 1), at(1200));
    assert_eq!(state.deadline(), Some(at(6200)));
    let actions = state.on(Event::Exited(0, Death::Signal("SIGKILL")), at(1300));
    assert!(!actions.contains(&Action::Reloaded(Ok(()))));
    let actions = state.on(Event::Tick, at(6200));
    assert!(actions.contains(&Action::Reloaded(Ok(()))));
}

#[test]
fn a_version_that_does_not_boot_serves_nowhere() {
    let mut state = serving(2);
    state.on(Event::Reload(7), at(1000));
    state.on(Event::Prepared(0, 1), at(1100));
    let no = || "no".to_owned();
    assert_eq!(
        state.on(Event::PrepareFailed(1, 1, no()), at(1200)),
        [
            Action::Abort(1, 1, no()),
            Action::Abort(0, 1, no()),
            Action::Reloaded(Err(no()))
        ]
    );
    // Late reports belong to no reload.
    assert_eq!(state.on(Event::Prepared(1, 1), at(1300)), []);
}

#[test]
fn a_boot_in_a_reload_has_a_deadline() {
    let mut state = serving(1);
    state.on(Event::Reload(7), at(1000));
    assert_eq!(state.deadline(), Some(at(61_000)));
    let error = "the new version did not boot within boot_timeout, 60s".to_owned();
    assert_eq!(
        state.on(Event::Tick, at(61_000)),
        [
            Action::Abort(0, 1, error.clone()),
            Action::Reloaded(Err(error))
        ]
    );
}

#[test]
fn a_reload_that_is_asked_for_meanwhile_follows() {
    let mut state = serving(1);
    state.on(Event::Reload(7), at(1000));
    assert_eq!(state.on(Event::Reload(9), at(1001)), []);
    assert_eq!(state.on(Event::Reload(8), at(1002)), []);
    assert_eq!(
        state.on(Event::Prepared(0, 1), at(1100)),
        [Action::Commit(0, 1)]
    );
    assert_eq!(
        state.on(Event::Committed(0, 1), at(1100)),
        [
            Action::Reloaded(Ok(())),
            Action::Prepare {
                id: 0,
                reload: 2,
                refresh: Some(8)
            }
        ]
    );
}

#[test]
fn a_worker_that_was_starting_when_a_reload_began_is_reloaded_after_it() {
    let mut state = serving(2);
    state.on(Event::Exited(1, Death::Exit(0)), at(2000));
    assert_eq!(state.on(Event::Reload(7), at(2001)), [prepare(0, Some(7))]);
    state.on(Event::Prepared(0, 1), at(2002));
    state.on(Event::Committed(0, 1), at(2002));
    let actions = state.on(Event::Ready(2), at(2100));
    assert!(actions.contains(&Action::Prepare {
        id: 0,
        reload: 2,
        refresh: Some(u64::MAX)
    }));
}

#[test]
fn a_worker_that_is_killed_in_a_reload_does_not_end_it() {
    let mut state = serving(2);
    state.on(Event::Reload(7), at(2000));
    let actions = state.on(Event::Exited(0, Death::Signal("SIGKILL")), at(2001));
    assert!(actions.contains(&prepare(1, Some(0))));
    assert_eq!(
        state.on(Event::Prepared(1, 1), at(2002)),
        [Action::Commit(1, 1)]
    );
    assert_eq!(
        state.on(Event::Committed(1, 1), at(2003)),
        [Action::Reloaded(Ok(()))]
    );
}

#[test]
fn a_version_that_crashes_the_first_worker_is_given_up() {
    let mut state = serving(2);
    state.on(Event::Reload(7), at(2000));
    let actions = state.on(Event::Exited(0, Death::Signal("SIGSEGV")), at(2001));
    let error = "worker 1 was killed by SIGSEGV while it booted".to_owned();
    assert!(actions.contains(&Action::Reloaded(Err(error))));
}

#[test]
fn workers_are_replaced_one_at_a_time_by_successors_that_are_ready() {
    let mut state = serving(2);
    let why = || "old".to_owned();
    assert_eq!(
        without_logs(state.on(Event::Recycle(0, why()), at(2000))),
        [spawn(0, 2)]
    );
    assert_eq!(state.on(Event::Recycle(1, why()), at(2000)), []);
    assert_eq!(
        without_logs(state.on(Event::Ready(2), at(2100))),
        [adopt(2, 0), Action::Terminate(0), spawn(1, 3)]
    );
    assert_eq!(state.on(Event::Exited(0, Death::Exit(0)), at(2200)), []);
    assert_eq!(
        without_logs(state.on(Event::Ready(3), at(2300))),
        [adopt(3, 1), Action::Terminate(1)]
    );
    assert_eq!(state.deadline(), Some(at(32_300)));
    assert_eq!(
        without_logs(state.on(Event::Tick, at(32_300))),
        [Action::Kill(1)]
    );
}

#[test]
fn a_successor_that_does_not_start_leaves_the_worker_in_place() {
    let mut state = serving(1);
    state.on(Event::Recycle(0, "old".into()), at(2000));
    let actions = state.on(Event::Exited(1, Death::Exit(1)), at(2100));
    assert_eq!(without_logs(actions), []);
    assert_eq!(state.deadline(), Some(at(12_100)));
    assert_eq!(
        without_logs(state.on(Event::Tick, at(12_100))),
        [spawn(0, 2)]
    );
}

#[test]
fn an_upgrade_that_fails_changes_nothing() {
    let mut state = serving(1);
    let actions = state.on(Event::Upgrade, at(2000));
    assert_eq!(without_logs(actions), [Action::StartUpgrade]);
    let actions = state.on(Event::UpgradeFailed("no".into()), at(2100));
    assert_eq!(without_logs(actions), [Action::Upgraded(Err("no".into()))]);
    assert_eq!(state.deadline(), None);
}

#[test]
fn after_an_upgrade_the_old_master_drains() {
    let mut state = serving(1);
    state.on(Event::Upgrade, at(2000));
    assert_eq!(
        without_logs(state.on(Event::TakenOver, at(2100))),
        [
            Action::Upgraded(Ok(())),
            Action::CloseListeners,
            Action::Terminate(0)
        ]
    );
    assert_eq!(
        state.on(Event::Exited(0, Death::Exit(0)), at(2200)),
        [Action::Finish(Outcome::Stopped)]
    );
}

#[test]
fn stopping_during_an_upgrade_stops_both() {
    let mut state = serving(1);
    state.on(Event::Upgrade, at(2000));
    let actions = state.on(Event::Stop, at(2100));
    assert!(actions.contains(&Action::StopUpgrade));
    assert!(actions.contains(&Action::Terminate(0)));
}

/// The new binary may have read the code before it changed.
#[test]
fn a_reload_during_an_upgrade_comes_after_it() {
    let mut failed = serving(1);
    failed.on(Event::Upgrade, at(2000));
    assert_eq!(failed.on(Event::Reload(7), at(2100)), []);
    assert!(failed.is_reload_continued());
    let actions = failed.on(Event::UpgradeFailed("no".into()), at(2200));
    assert_eq!(
        without_logs(actions),
        [Action::Upgraded(Err("no".into())), prepare(0, Some(7))]
    );

    let mut replaced = serving(1);
    replaced.on(Event::Upgrade, at(2000));
    replaced.on(Event::Reload(7), at(2100));
    let actions = without_logs(replaced.on(Event::TakenOver, at(2200)));
    let told = "a new binary has taken over, and reloads now";
    assert_eq!(
        actions[..2],
        [Action::Reloaded(Err(told.into())), Action::ReloadSuccessor]
    );
    assert!(!replaced.is_reload_continued());

    let mut stopped = serving(1);
    stopped.on(Event::Upgrade, at(2000));
    stopped.on(Event::Reload(7), at(2100));
    let actions = stopped.on(Event::Stop, at(2200));
    assert_eq!(actions[0], Action::Reloaded(Err("the server ends".into())));
}

#[test]
fn plain_processes_start_when_they_are_needed_and_may_die() {
    let mut state = State::new(1, 2, DRAIN, BOOT).with_plain_on_demand(true);
    assert_eq!(state.start(at(0)), [spawn(0, 0)]);
    let ready = state.on(Event::Ready(0), at(50));
    assert!(ready.contains(&Action::Announce), "{ready:?}");
    assert_eq!(state.on(Event::Reload(7), at(100)), [prepare(0, Some(7))]);
    state.on(Event::Prepared(0, 1), at(110));
    state.on(Event::Committed(0, 1), at(120));
    assert_eq!(state.on(Event::Wake, at(200)), [spawn(1, 1), spawn(2, 2)]);
    assert_eq!(state.on(Event::Wake, at(200)), []);
    state.on(Event::Exited(2, Death::Signal("SIGSEGV")), at(200));
    let (mut id, mut now) = (1, 200);
    for _ in 0..20 {
        let actions = state.on(Event::Exited(id, Death::Signal("SIGSEGV")), at(now));
        assert_eq!(without_logs(actions), [], "not at once");
        now += 6000;
        let actions = state.on(Event::Tick, at(now));
        let spawned = actions.iter().find_map(|action| match action {
            Action::Spawn { seat: 1, id } => Some(*id),
            _ => None,
        });
        id = spawned.expect("it is started again");
    }
}

/// One worker with two plain processes.
fn serving_with_processes() -> State {
    let mut state = State::new(1, 2, DRAIN, BOOT);
    state.start(at(0));
    for id in 0..3 {
        state.on(Event::Ready(id), at(50));
    }
    state
}

#[test]
fn a_reload_replaces_plain_processes_one_after_the_other_and_then_asks_the_workers() {
    let mut state = serving_with_processes();
    assert_eq!(
        state.on(Event::Reload(7), at(2000)),
        [Action::Refresh(7), spawn(1, 3)]
    );
    assert_eq!(
        state.on(Event::Ready(3), at(2100)),
        [Action::Retire(1), spawn(2, 4)]
    );
    assert_eq!(state.on(Event::Exited(1, Death::Exit(0)), at(2100)), []);
    assert_eq!(
        state.on(Event::Ready(4), at(2200)),
        [Action::Retire(2)],
        "it may still take a request"
    );
    assert_eq!(
        state.on(Event::Retired(2), at(2201)),
        [prepare(0, None)],
        "one has died, one has let go of the line"
    );
    assert_eq!(
        state.on(Event::Prepared(0, 1), at(2300)),
        [Action::Commit(0, 1)]
    );
    assert_eq!(
        state.on(Event::Committed(0, 1), at(2301)),
        [Action::Reloaded(Ok(()))]
    );
}

#[test]
fn a_process_that_computes_does_not_keep_a_reload_from_its_end() {
    let mut state = serving_with_processes();
    state.on(Event::Reload(7), at(2000));
    state.on(Event::Ready(3), at(2100));
    state.on(Event::Retired(1), at(2101));
    state.on(Event::Ready(4), at(2200));
    assert_eq!(state.deadline(), Some(at(7200)));
    assert_eq!(state.on(Event::Tick, at(7200)), [prepare(0, None)]);
}

#[test]
fn a_process_that_dies_beside_its_successor_does_not_keep_a_reload_from_its_end() {
    let mut state = serving_with_processes();
    state.on(Event::Reload(7), at(2000));
    let actions = state.on(Event::Exited(1, Death::Signal("SIGKILL")), at(2050));
    assert_eq!(
        without_logs(actions),
        [],
        "the successor is on its way, for the reload"
    );
    assert_eq!(state.on(Event::Ready(3), at(2100)), [spawn(2, 4)]);
    // This one dies before it is ready, after its predecessor.
    state.on(Event::Exited(2, Death::Signal("SIGKILL")), at(2150));
    state.on(Event::Exited(4, Death::Signal("SIGKILL")), at(2160));
    assert_eq!(state.on(Event::Tick, at(2300)), [spawn(2, 5)]);
    assert_eq!(state.on(Event::Ready(5), at(2400)), [prepare(0, None)]);
}

#[test]
fn a_seat_that_waits_is_filled_once() {
    let mut state = serving_with_processes();
    // Right after its start, so that there is a pause before the next one.
    state.on(Event::Exited(1, Death::Signal("SIGKILL")), at(60));
    assert_eq!(
        state.on(Event::Reload(7), at(70)),
        [Action::Refresh(7), spawn(1, 3)]
    );
    assert_eq!(state.on(Event::Ready(3), at(100)), [spawn(2, 4)]);
    assert_eq!(
        state.on(Event::Tick, at(1000)),
        [],
        "the reload has filled it"
    );
    assert_eq!(state.processes.len(), 4);
}

#[test]
fn a_process_that_was_being_recycled_is_replaced_by_one_that_has_booted_the_new_version() {
    let mut state = serving_with_processes();
    let actions = state.on(Event::Recycle(1, "old".into()), at(2000));
    assert_eq!(without_logs(actions), [spawn(1, 3)]);
    assert_eq!(state.on(Event::Reload(7), at(2010)), [Action::Refresh(7)]);
    // It may have begun to read old files.
    assert_eq!(
        state.on(Event::Ready(3), at(2100)),
        [Action::Retire(1), spawn(1, 4)]
    );
    assert_eq!(
        state.on(Event::Ready(4), at(2200)),
        [Action::Retire(3), spawn(2, 5)]
    );
    state.on(Event::Ready(5), at(2300));
    state.on(Event::Retired(3), at(2301));
    state.on(Event::Retired(2), at(2302));
    assert_eq!(state.on(Event::Retired(1), at(2303)), [prepare(0, None)]);
}

#[test]
fn a_version_that_does_not_boot_in_the_first_process_replaces_none() {
    let mut state = serving_with_processes();
    state.on(Event::Reload(7), at(2000));
    state.on(Event::BootFailed(3, "no".into()), at(2100));
    let actions = state.on(Event::Exited(3, Death::Exit(1)), at(2100));
    // The worker is told, too: in development it shows the error.
    assert_eq!(
        without_logs(actions),
        [
            Action::Abort(0, 1, "no".into()),
            Action::Reloaded(Err("no".into()))
        ]
    );
}

/// Its report that it is ready may arrive after it was killed.
#[test]
fn a_successor_that_is_killed_for_its_lateness_takes_nobodys_place() {
    let mut state = serving_with_processes();
    assert_eq!(
        without_logs(state.on(Event::Reload(7), at(2000))),
        [Action::Refresh(7), spawn(1, 3)]
    );
    let actions = state.on(Event::Tick, at(62_000));
    assert!(actions.contains(&Action::Kill(3)), "{actions:?}");
    assert_eq!(state.on(Event::Ready(3), at(62_001)), []);
    let dead = Event::Exited(3, Death::Signal("SIGKILL"));
    assert_eq!(without_logs(state.on(dead, at(62_002))), []);
    assert_eq!(state.seats[1].current, Some(1));
    assert_eq!(state.seats[1].next, None);
}

/// A process that was already replaced by a reload must not be replaced again.
#[test]
fn a_successor_that_is_killed_for_its_lateness_is_not_tried_again() {
    let mut state = serving_with_processes();
    state.on(Event::Exited(1, Death::Signal("SIGSEGV")), at(2000));
    state.on(Event::Ready(3), at(2100));
    state.on(Event::Reload(7), at(3000));
    let actions = state.on(Event::Tick, at(63_000));
    assert!(actions.contains(&Action::Kill(4)), "{actions:?}");
    state.on(Event::Exited(4, Death::Signal("SIGKILL")), at(63_001));
    assert_eq!(state.on(Event::Tick, at(90_000)), []);
}

#[test]
fn nobody_keeps_the_seat_of_a_plain_process() {
    let mut state = serving_with_processes();
    let actions = state.on(Event::Exited(2, Death::Exit(1)), at(2000));
    assert_eq!(without_logs(actions), [spawn(2, 3)]);
}
