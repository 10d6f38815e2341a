//! The time of a line, in UTC.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// A moment, as date and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    year: u64,
    month: u64,
    day: u64,
    hour: u64,
    minute: u64,
    second: u64,
    micros: u32,
}

/// This moment.
pub fn now() -> Clock {
    Clock::of(SystemTime::now())
}

impl Clock {
    /// Nothing was logged before 1970.
    pub fn of(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let (seconds, micros) = (since.as_secs(), since.subsec_micros());
        // Howard Hinnant's civil_from_days, for days from 0000-03-01 on.
        let days = seconds / 86_400 + 719_468;
        let (era, day_of_era) = (days / 146_097, days % 146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * day_of_year + 2) / 153;
        let month = if from_march < 10 {
            from_march + 3
        } else {
            from_march - 9
        };
        Clock {
            year: era * 400 + year_of_era + u64::from(month <= 2),
            month,
            day: day_of_year - (153 * from_march + 2) / 5 + 1,
            hour: seconds / 3600 % 24,
            minute: seconds / 60 % 60,
            second: seconds % 60,
            micros,
        }
    }

    /// `06/Nov/1994:08:49:37 +0000`, the format of most web servers' access logs.
    pub fn common(&self) -> String {
        let month = MONTHS[(self.month as usize - 1).min(11)];
        format!(
            "{:02}/{month}/{:04}:{:02}:{:02}:{:02} +0000",
            self.day, self.year, self.hour, self.minute, self.second
        )
    }
}

/// `1994-11-06T08:49:37.123456Z`
impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z",
            self.year, self.month, self.day, self.hour, self.minute, self.second, self.micros
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn times() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00.000005Z"),
            (784_111_777, "1994-11-06T08:49:37.000005Z"),
            (951_782_400, "2000-02-29T00:00:00.000005Z"),
            (1_709_251_199, "2024-02-29T23:59:59.000005Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000005Z"),
        ] {
            let time = UNIX_EPOCH + Duration::new(seconds, 5000);
            assert_eq!(Clock::of(time).to_string(), expected);
        }
        let time = UNIX_EPOCH + Duration::from_secs(784_111_777);
        assert_eq!(Clock::of(time).common(), "06/Nov/1994:08:49:37 +0000");
    }
}
