use super::*;

const DRAIN: Duration = Duration::from_secs(30);

fn at(millis: u64) -> Now {
    Duration::from_millis(millis)
}

/// A master whose workers are all ready.
fn serving(workers: usize) -> State {
    let mut state = State::new(workers, DRAIN);
    state.start(at(0));
    for index in 0..workers {
        state.on(Event::Ready(index), at(50));
    }
    state
}

fn without_logs(actions: Vec<Action>) -> Vec<Action> {
    actions
        .into_iter()
        .filter(|action| !matches!(action, Action::Log(_)))
        .collect()
}

#[test]
fn it_starts_all_and_announces_once_when_all_are_ready() {
    let mut state = State::new(2, DRAIN);
    assert_eq!(state.start(at(0)), [Action::Spawn(0), Action::Spawn(1)]);
    assert_eq!(state.on(Event::Ready(1), at(10)), []);
    assert_eq!(state.on(Event::Ready(0), at(11)), [Action::Announce]);
    state.on(Event::Exited(0, Death::Signal("SIGSEGV")), at(5000));
    assert_eq!(state.on(Event::Ready(0), at(5100)), []);
}

#[test]
fn a_worker_that_had_lived_is_replaced_at_once() {
    let mut state = serving(2);
    let actions = state.on(Event::Exited(1, Death::Signal("SIGSEGV")), at(2000));
    assert_eq!(
        actions,
        [
            Action::Log("worker 2 was killed by SIGSEGV; starting another".into()),
            Action::Spawn(1)
        ]
    );
    assert_eq!(state.deadline(), None);
}

#[test]
fn early_deaths_are_answered_with_growing_pauses_and_then_with_giving_up() {
    let mut state = serving(2);
    let mut now = 60;
    for pause in [100, 200, 400, 800] {
        assert_eq!(
            without_logs(state.on(Event::Exited(0, Death::Exit(3)), at(now))),
            []
        );
        assert_eq!(state.deadline(), Some(at(now + pause)));
        assert_eq!(state.on(Event::Tick, at(now + pause - 1)), []);
        assert_eq!(state.on(Event::Tick, at(now + pause)), [Action::Spawn(0)]);
        now += pause + 10;
    }
    let actions = state.on(Event::Exited(0, Death::Exit(3)), at(now));
    let message =
        "worker 1 exited with 3, for the 5th time in a row right after its start; giving up";
    assert_eq!(actions, [Action::Log(message.into()), Action::Kill(1)]);
    let actions = state.on(Event::Exited(1, Death::Signal("SIGKILL")), at(now + 1));
    assert_eq!(actions, [Action::Finish(Outcome::GaveUp)]);
}

#[test]
fn a_life_in_between_forgives_early_deaths() {
    let mut state = serving(1);
    let mut now = 60;
    for _ in 0..4 {
        state.on(Event::Exited(0, Death::Exit(3)), at(now));
        now += 1000;
        state.on(Event::Tick, at(now));
    }
    now += 1000;
    assert_eq!(
        without_logs(state.on(Event::Exited(0, Death::Exit(3)), at(now))),
        [Action::Spawn(0)]
    );
    assert_eq!(
        without_logs(state.on(Event::Exited(0, Death::Exit(3)), at(now + 10))),
        []
    );
    assert_eq!(state.deadline(), Some(at(now + 110)));
}

#[test]
fn an_application_that_does_not_boot_ends_the_start_with_one_message() {
    let mut state = State::new(2, DRAIN);
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
        state.on(Event::BootFailed(0, "no".into()), at(9000)),
        [Action::Log("no".into())]
    );
    assert_eq!(
        without_logs(state.on(Event::Exited(0, Death::Exit(1)), at(9000))),
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
