//! Keys given in the environment: `SURUS_` and the key in capitals. The value is what would stand in surus.toml; a string
//! needs no quotes.

use toml::{Table, Value};

use super::{tables, ConfigError};

/// The variables that are set among a table's keys, each as a table with that one key.
pub(crate) fn tables<T: tables::Table>(
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<T>, ConfigError> {
    let mut tables = Vec::new();
    for key in T::KEYS {
        let name = format!("SURUS_{}", key.to_uppercase());
        let Some(text) = variable(&name) else {
            continue;
        };
        let typed = Table::from_iter([((*key).to_owned(), value(&text))]);
        // What looks like a number may be meant as text: memory_limit = -1.
        let literal = Table::from_iter([((*key).to_owned(), Value::String(text))]);
        let table = typed
            .try_into()
            .or_else(|error| literal.try_into().map_err(|_: toml::de::Error| error));
        tables
            .push(table.map_err(|error| ConfigError::new(format!("{name}: {}", error.message())))?);
    }
    Ok(tables)
}

fn value(text: &str) -> Value {
    let parsed = toml::from_str::<Table>(&format!("value = {text}")).ok();
    parsed
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| Value::String(text.to_owned()))
}
