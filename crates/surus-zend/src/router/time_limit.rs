use std::time::Duration;

/// The time for a request to one route.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum TimeLimit {
    /// That of the application's configuration.
    #[default]
    Configured,
    /// Its own; `None` is no limit.
    Own(Option<Duration>),
}

impl TimeLimit {
    /// 0 is no limit, a negative number the configured one.
    pub(crate) fn from_seconds(seconds: f64) -> TimeLimit {
        if seconds < 0.0 {
            return TimeLimit::Configured;
        }
        let limit = Duration::try_from_secs_f64(seconds).ok();
        TimeLimit::Own(limit.filter(|limit| !limit.is_zero()))
    }
}
