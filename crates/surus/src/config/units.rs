//! The types of single values: how they are written in surus.toml, in the environment and on the command line.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub(crate) use super::memory::Memory;
pub(crate) use super::share::Share;

/// Parses from a TOML string through `FromStr`, prints through `Display`.
macro_rules! by_text {
    ($type:ty) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl serde::de::Visitor<'_> for Visitor {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str(<$type>::EXPECTED)
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<$type, E> {
                        number.to_string().parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_any(Visitor)
            }
        }

        impl Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    };
}

/// A duration: `"10ms"`, `"30s"`, `"2m"`, `"1h"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span(pub(crate) Duration);

impl Span {
    const EXPECTED: &'static str = "a duration such as \"30s\" (units: ms, s, m, h)";

    /// A limit for which zero means no limit.
    pub(crate) fn limit(self) -> Option<Duration> {
        Some(self.0).filter(|duration| !duration.is_zero())
    }
}

by_text!(Span);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            let meant = meant(text, &["s", "m", "h", "d"]);
            format!("{text:?} is not {}{meant}", Self::EXPECTED)
        };
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let millis: u64 = match unit.trim() {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            // Zero needs no unit.
            "" if number == "0" => 0,
            _ => return Err(wrong()),
        };
        let number: u64 = number.parse().map_err(|_| wrong())?;
        Ok(Span(Duration::from_millis(
            number.checked_mul(millis).ok_or_else(wrong)?,
        )))
    }
}

/// For a number whose unit is missing or written in full: a suggestion, as a question. Without a unit it is the first
/// of `units`, else the one with the same letter.
fn meant(text: &str, units: &[&str]) -> String {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim().to_ascii_lowercase();
    let is_word = unit.bytes().all(|byte| byte.is_ascii_alphabetic());
    let Ok(number) = number.parse::<u64>() else {
        return String::new();
    };
    let known = match unit.chars().next() {
        None => units.first(),
        Some(letter) => units
            .iter()
            .find(|known| known.to_ascii_lowercase().starts_with(letter)),
    };
    match known.filter(|_| is_word) {
        Some(&"d") => format!("; is \"{}h\" meant?", number.saturating_mul(24)),
        Some(&"T") => format!("; is \"{}G\" meant?", number.saturating_mul(1024)),
        Some(unit) => format!("; is \"{number}{unit}\" meant?"),
        None => String::new(),
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_millis() {
            0 => f.write_str("0s"),
            millis if millis % 1000 != 0 => write!(f, "{millis}ms"),
            millis => write!(f, "{}s", millis / 1000),
        }
    }
}

/// A number of bytes, as PHP writes it: `"512K"`, `"8M"`, `"1G"`, or a plain number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

impl Size {
    const EXPECTED: &'static str = "a size such as \"8M\" (units: K, M, G)";
}

by_text!(Size);
by_text!(Memory);
by_text!(Share);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            let meant = meant(text, &["M", "K", "G", "T"]);
            format!("{text:?} is not {}{meant}", Self::EXPECTED)
        };
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let shift = match unit.trim() {
            "" => 0,
            "K" | "k" => 10,
            "M" | "m" => 20,
            "G" | "g" => 30,
            _ => return Err(wrong()),
        };
        let number: u64 = number.parse().map_err(|_| wrong())?;
        number.checked_mul(1 << shift).map(Size).ok_or_else(wrong)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (shift, unit) in [(30, "G"), (20, "M"), (10, "K")] {
            if self.0 > 0 && self.0 % (1 << shift) == 0 {
                return write!(f, "{}{unit}", self.0 >> shift);
            }
        }
        write!(f, "{}", self.0)
    }
}

/// A number of workers, or one per processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Workers {
    Auto,
    Count(usize),
}

/// More would be a typing error: each worker serves thousands of requests at a time.
const MAX_WORKERS: usize = 1024;

impl Workers {
    const EXPECTED: &'static str = "\"auto\" or a number from 1 to 1024";

    pub(crate) fn count(self) -> usize {
        match self {
            Workers::Auto => std::thread::available_parallelism().map_or(1, usize::from),
            Workers::Count(count) => count,
        }
    }
}

by_text!(Workers);

impl FromStr for Workers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            _ if text == "auto" => Ok(Workers::Auto),
            Ok(count) if (1..=MAX_WORKERS).contains(&count) => Ok(Workers::Count(count)),
            _ => Err(format!("{text:?} is not {}", Self::EXPECTED)),
        }
    }
}

impl fmt::Display for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Workers::Auto => f.write_str("auto"),
            Workers::Count(count) => write!(f, "{count}"),
        }
    }
}

/// How many connections one address may have, in each worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PerAddress {
    /// Many, and connections from this machine are not counted.
    Auto,
    /// For every address. Zero: any number.
    Count(usize),
}

impl PerAddress {
    const EXPECTED: &'static str = "\"auto\" or a number (0: no bound)";
    /// For all workers together, since the kernel distributes connections evenly.
    const MANY: usize = 2048;
    /// The minimum for one worker.
    const FEW: usize = 128;

    pub(crate) fn count(self, workers: usize) -> usize {
        match self {
            PerAddress::Auto => (Self::MANY / workers.max(1)).max(Self::FEW),
            PerAddress::Count(count) => count,
        }
    }
}

by_text!(PerAddress);

impl FromStr for PerAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            _ if text == "auto" => Ok(PerAddress::Auto),
            Ok(count) => Ok(PerAddress::Count(count)),
            Err(_) => Err(format!("{text:?} is not {}", Self::EXPECTED)),
        }
    }
}

impl fmt::Display for PerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PerAddress::Auto => f.write_str("auto"),
            PerAddress::Count(count) => write!(f, "{count}"),
        }
    }
}

/// How PHP runs.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    Classic,
    Coroutine,
    Worker,
    Snapshot,
    Process,
}

impl Mode {
    /// Whether the application boots once in each isolate.
    pub(crate) fn boots_isolates(self) -> bool {
        matches!(self, Mode::Worker | Mode::Snapshot)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Classic => "classic",
            Mode::Coroutine => "coroutine",
            Mode::Worker => "worker",
            Mode::Snapshot => "snapshot",
            Mode::Process => "process",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let millis = |text: &str| text.parse::<Span>().map(|span| span.0.as_millis());
        assert_eq!(millis("10ms"), Ok(10));
        assert_eq!(millis("30s"), Ok(30_000));
        assert_eq!(millis("2m"), Ok(120_000));
        assert_eq!(millis("1 h"), Ok(3_600_000));
        assert_eq!(millis("0"), Ok(0));
        for wrong in [
            "",
            "30",
            "s",
            "-1s",
            "1.5s",
            "1d",
            "99999999999999999999h",
            "18446744073709551615h",
        ] {
            assert!(millis(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Span(Duration::from_millis(1500)).to_string(), "1500ms");
        assert_eq!(Span(Duration::from_secs(90)).to_string(), "90s");
    }

    #[test]
    fn what_was_meant_is_said() {
        for (text, meant) in [
            ("30", "; is \"30s\" meant?"),
            ("30sec", "; is \"30s\" meant?"),
            ("5 minutes", "; is \"5m\" meant?"),
            ("2d", "; is \"48h\" meant?"),
        ] {
            let error = text.parse::<Span>().unwrap_err();
            assert!(error.ends_with(meant), "{error}");
        }
        for (text, meant) in [
            ("8MB", "; is \"8M\" meant?"),
            ("8 MiB", "; is \"8M\" meant?"),
            ("1t", "; is \"1024G\" meant?"),
        ] {
            let error = text.parse::<Size>().unwrap_err();
            assert!(error.ends_with(meant), "{error}");
        }
        for text in ["", "1.5s", "-1s", "1x", "1 s s"] {
            let error = text.parse::<Span>().unwrap_err();
            assert!(error.ends_with(Span::EXPECTED), "{error}");
        }
    }

    #[test]
    fn sizes() {
        let bytes = |text: &str| text.parse::<Size>().map(|size| size.0);
        assert_eq!(bytes("512"), Ok(512));
        assert_eq!(bytes("8M"), Ok(8 << 20));
        assert_eq!(bytes("1g"), Ok(1 << 30));
        for wrong in ["", "M", "1T", "-1", "1.5M", "18446744073709551615K"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Size(8 << 20).to_string(), "8M");
        assert_eq!(Size(1000).to_string(), "1000");
    }

    #[test]
    fn connections_of_one_address() {
        assert_eq!("auto".parse(), Ok(PerAddress::Auto));
        assert_eq!("9".parse(), Ok(PerAddress::Count(9)));
        for wrong in ["", "-1", "many", "1.5"] {
            assert!(wrong.parse::<PerAddress>().is_err(), "{wrong}");
        }
        let counts = [1, 4, 100].map(|workers| PerAddress::Auto.count(workers));
        assert_eq!(counts, [2048, 512, 128]);
        assert_eq!(PerAddress::Count(7).count(4), 7);
    }

    #[test]
    fn workers() {
        assert_eq!("auto".parse(), Ok(Workers::Auto));
        assert_eq!("3".parse(), Ok(Workers::Count(3)));
        for wrong in ["0", "-1", "1025", "many", ""] {
            assert!(wrong.parse::<Workers>().is_err(), "{wrong}");
        }
    }
}
