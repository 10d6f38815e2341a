use super::*;

fn companions() -> Companions<'static> {
    let companion = |name: &str, on_demand| Companion {
        name: name.to_owned(),
        on_demand,
        outlives_workers: on_demand,
        reloads: !on_demand,
        always: !on_demand,
        run: Box::new(|| 0),
    };
    Companions::new(vec![companion("jobs", true), companion("mail", false)])
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn one_starts_when_it_is_asked_for_and_again_after_its_death() {
    let mut all = companions();
    all.begin(Now::ZERO);
    assert_eq!(all.next(Now::ZERO), Some(1));
    all.started(1, Pid::from_raw(11), Now::ZERO);
    assert_eq!(all.next(Now::ZERO), None);
    all.summon("jobs", SECOND);
    assert_eq!(all.next(SECOND), Some(0));
    all.started(0, Pid::from_raw(10), SECOND);
    let death = Death::Signal("SIGKILL");
    let said = all.exited(Pid::from_raw(10), death, 3 * SECOND);
    assert!(said.is_some_and(|said| said.ends_with("starting another")));
    assert_eq!(all.next(3 * SECOND), Some(0));
    // One that has ended for good.
    all.started(0, Pid::from_raw(12), 3 * SECOND);
    all.exited(Pid::from_raw(12), Death::Exit(0), 4 * SECOND);
    assert_eq!(all.next(100 * SECOND), None);
    assert!(all.exited(Pid::from_raw(99), death, SECOND).is_none());
}

#[test]
fn one_that_has_left_for_the_next_server_is_not_started_again() {
    let mut all = companions();
    all.summon("jobs", Now::ZERO);
    all.started(0, Pid::from_raw(1), Now::ZERO);
    all.exited(Pid::from_raw(1), Death::Exit(0), SECOND);
    all.summon("jobs", SECOND);
    assert_eq!(all.next(SECOND), Some(0));
    all.started(0, Pid::from_raw(2), SECOND);
    all.taken_over();
    // As long as that server has none.
    all.exited(Pid::from_raw(2), Death::Signal("SIGKILL"), 3 * SECOND);
    assert_eq!(all.next(3 * SECOND), Some(0));
    all.started(0, Pid::from_raw(3), 3 * SECOND);
    all.exited(Pid::from_raw(3), Death::Exit(0), 5 * SECOND);
    all.summon("jobs", 5 * SECOND);
    assert_eq!((all.next(5 * SECOND), all.due()), (None, None));
}

#[test]
fn early_deaths_make_pauses_that_grow() {
    let mut all = companions();
    let (mut now, mut pauses) = (Now::ZERO, Vec::new());
    all.begin(now);
    for pid in 1..=9 {
        now = all.due().expect("another one");
        all.started(1, Pid::from_raw(pid), now);
        all.exited(Pid::from_raw(pid), Death::Exit(1), now);
        let due = all.due().expect("another one");
        pauses.push((due - now).as_millis());
    }
    assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000]);
}

#[test]
fn a_reload_starts_those_with_code_anew_and_none_starts_at_the_end() {
    let mut all = companions();
    all.begin(Now::ZERO);
    all.started(1, Pid::from_raw(1), Now::ZERO);
    all.summon("jobs", Now::ZERO);
    all.started(0, Pid::from_raw(2), Now::ZERO);
    assert_eq!(all.reload(SECOND, SECOND), [Pid::from_raw(1)]);
    // It does not end in time, and is killed once.
    assert_eq!(all.due(), Some(2 * SECOND));
    assert!(all.late(SECOND).is_empty());
    assert_eq!(all.late(2 * SECOND)[0].0, Pid::from_raw(1));
    assert!(all.late(2 * SECOND).is_empty() && all.due().is_none());
    all.exited(Pid::from_raw(1), Death::Signal("SIGTERM"), SECOND);
    assert_eq!(all.next(SECOND), Some(1));
    all.started(1, Pid::from_raw(3), SECOND);
    assert_eq!(all.leave(), [Pid::from_raw(3)]);
    // While the workers have their last requests, which may take a while.
    all.exited(Pid::from_raw(3), Death::Signal("SIGTERM"), SECOND);
    assert_eq!(all.due(), None);
    assert_eq!(all.end(), [Pid::from_raw(2)]);
    all.exited(Pid::from_raw(2), Death::Exit(1), SECOND);
    assert!(all.is_empty() && all.due().is_none());
}

#[test]
fn one_that_exits_with_0_starts_again_if_it_is_to_run_always() {
    let mut all = companions();
    all.begin(Now::ZERO);
    all.started(1, Pid::from_raw(1), Now::ZERO);
    let said = all.exited(Pid::from_raw(1), Death::Exit(0), 60 * SECOND);
    assert_eq!(
        said.as_deref(),
        Some("process mail exited with 0; starting another")
    );
    assert_eq!(all.next(60 * SECOND), Some(1));
    // Not in a tight loop.
    all.started(1, Pid::from_raw(2), 60 * SECOND);
    all.exited(Pid::from_raw(2), Death::Exit(0), 60 * SECOND);
    assert_eq!(all.due(), Some(60 * SECOND + BACK_OFF));
}

#[test]
fn one_that_cannot_be_started_is_tried_again() {
    let mut all = companions();
    let why = Death::NotStarted(nix::errno::Errno::EAGAIN);
    let (mut now, mut pauses) = (Now::ZERO, Vec::new());
    all.begin(now);
    for count in 0..7 {
        assert_eq!(all.next(now), Some(1));
        let said = all.refused(1, why, now);
        assert_eq!(said.is_some(), count == 0, "{said:?}");
        let due = all.due().expect("another attempt");
        pauses.push((due - now).as_millis());
        now = due;
    }
    assert_eq!(pauses, [100, 200, 400, 800, 1600, 2000, 2000]);
    all.started(1, Pid::from_raw(1), now);
    assert!(all.refused(1, why, now).is_some());
}
