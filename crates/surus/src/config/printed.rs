//! The configuration as it is printed.

use std::collections::BTreeMap;

use serde::Serialize;

use super::nearest::is_secret;
use super::tables::{self, IniValue};

/// The order of the tables in the output of `surus check`.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Printed {
    pub(super) server: tables::Server,
    pub(super) app: BTreeMap<String, tables::App>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) php: BTreeMap<String, IniValue>,
}

impl Printed {
    pub(super) fn to_toml(&self) -> String {
        // Tables of strings, numbers and booleans always serialise.
        toml::to_string(&self.without_secrets()).unwrap_or_default()
    }

    /// What is printed ends up in logs and bug reports.
    fn without_secrets(&self) -> Self {
        let mut printed = self.clone();
        for (name, value) in &mut printed.php {
            if is_secret(name) {
                *value = IniValue::Text("(not shown)".to_owned());
            }
        }
        printed
    }
}
