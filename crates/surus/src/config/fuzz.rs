//! Targets for the fuzzer (`fuzz/`) and its replay in the tests, one for each parser: no input may panic, and the
//! assertions hold for all of them.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use super::nearest::suggest;
use super::tables::File;
use super::units::{Size, Span, Workers};

/// A value: its printed form parses to the same value.
pub(crate) fn units(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    same::<Span>(text);
    same::<Size>(text);
    same::<Workers>(text);
}

fn same<T>(text: &str)
where
    T: FromStr<Err = String> + Display + PartialEq + Debug,
{
    match text.parse::<T>() {
        Ok(value) => assert_eq!(value.to_string().parse(), Ok(value)),
        Err(error) => assert!(!error.is_empty()),
    }
}

/// A surus.toml.
pub(crate) fn file(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Err(error) = toml::from_str::<File>(text) {
        assert!(!suggest(&error.to_string()).is_empty());
    }
}

#[cfg(test)]
mod tests {
    use surus_replay::replay;

    #[test]
    fn seeds_and_mutations() {
        replay("units", super::units);
        replay("config", super::file);
    }
}
