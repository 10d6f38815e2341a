//! The table `[env]`: variables of PHP's environment, as php-fpm's `env[NAME]`.

use std::collections::BTreeMap;

use super::tables::IniValue;
use super::wrong::Wrong;

/// The value of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Variable {
    Text(String),
    /// The value of this variable in the server's own environment.
    Of(String),
}

pub(super) fn of(table: &BTreeMap<String, IniValue>, wrong: &mut Wrong) -> Vec<(String, Variable)> {
    let mut variables = Vec::new();
    for (name, value) in table {
        let key = format!("env.{name}");
        if name.is_empty() || name.contains(['=', '\0']) {
            wrong.note(&key, format!("env: {name:?} cannot be a variable's name"));
            continue;
        }
        let text = value.clone().into_text();
        if text.contains('\0') {
            wrong.note(&key, format!("env: the value of {name} has a NUL byte"));
            continue;
        }
        let variable = variable(text);
        if let Variable::Of(theirs) = &variable {
            if theirs.contains(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
                let why = format!(
                    "env: {name} = {:?}: \"$NAME\" stands for a whole variable of the server's environment, and {theirs:?} is no \
                     name; a value that begins with a dollar sign begins with two (\"$$\")",
                    format!("${theirs}")
                );
                wrong.note(&key, why);
                continue;
            }
        }
        variables.push((name.clone(), variable));
    }
    variables
}

/// `$NAME`; `$$` is a dollar sign.
pub(super) fn variable(text: String) -> Variable {
    match text.strip_prefix('$') {
        Some(rest) if rest.starts_with('$') => Variable::Text(rest.to_owned()),
        Some(rest) if !rest.is_empty() => Variable::Of(rest.to_owned()),
        _ => Variable::Text(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dollar_sign_names_a_variable_of_the_servers() {
        let of = |text: &str| variable(text.to_owned());
        assert_eq!(of("$PATH"), Variable::Of("PATH".to_owned()));
        for (text, expected) in [("$$5", "$5"), ("$", "$"), ("a$b", "a$b"), ("", "")] {
            assert_eq!(of(text), Variable::Text(expected.to_owned()));
        }
    }
}
