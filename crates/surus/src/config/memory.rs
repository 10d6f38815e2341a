//! PHP's memory limit. PHP itself misreads what many people write: it takes "64MB" for 64 bytes.

use std::fmt;
use std::str::FromStr;

use super::units::Size;

/// `"128M"`, or `"-1"` for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    Unlimited,
    Bytes(Size),
}

/// PHP does not start a request with less.
const LEAST: u64 = 1 << 20;

impl Memory {
    pub(super) const EXPECTED: &'static str = "a size such as \"128M\", or \"-1\" for no limit";
}

impl FromStr for Memory {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim() == "-1" {
            return Ok(Memory::Unlimited);
        }
        let size: Size = text.parse()?;
        match size.0 < LEAST {
            true if size.0 > 0 && size.0 < 1 << 16 => Err(format!(
                "{text:?} is less than PHP needs; is \"{}M\" meant?",
                size.0
            )),
            true => Err(format!("{text:?} is less than PHP needs, which is \"1M\"")),
            false => Ok(Memory::Bytes(size)),
        }
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Memory::Unlimited => f.write_str("-1"),
            Memory::Bytes(size) => size.fmt(f),
        }
    }
}
