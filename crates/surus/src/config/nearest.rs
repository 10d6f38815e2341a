//! Suggests names for misspelt ones, and recognizes values that must stay secret.

use super::hints::{place, typed};

/// The name that was probably meant, if one is similar.
pub(super) fn nearest(wrong: &str, names: impl IntoIterator<Item = String>) -> Option<String> {
    let near = |name: &String| strsim::jaro_winkler(wrong, name);
    let nearest = names.into_iter().max_by(|a, b| near(a).total_cmp(&near(b)));
    nearest.filter(|name| near(name) > 0.7)
}

/// Makes an error about a surus.toml readable: with the most similar name instead of the list of all, and without the
/// values of secrets.
pub(super) fn suggest(error: &str) -> String {
    let mut hides = false;
    let lines = error.lines().map(|line| {
        if let Some((number, text)) = line.split_once(" | ") {
            if number.trim().parse::<usize>().is_ok() && (is_secret(text) || holds_secret(text)) {
                hides = true;
                return format!("{number} | (not shown)");
            }
        }
        let shown = match hides {
            true => without_text(line),
            false => line.to_owned(),
        };
        let line = &*shown;
        let (Some(wrong), Some(at)) = (wrong(line), line.find(", expected")) else {
            return typed(line);
        };
        let names = quoted(&line[at..]).into_iter().map(str::to_owned);
        if let Some(place) = place(wrong) {
            return format!("{}: {place}", &line[..at]);
        }
        match nearest(wrong, names) {
            Some(name) => format!("{}; is `{name}` meant?", &line[..at]),
            None => line.to_owned(),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// An error that quotes the value that it is about, without it.
fn without_text(line: &str) -> String {
    match (line.find("string \""), line.rfind("\", expected")) {
        (Some(begin), Some(end)) if begin < end => {
            format!("{}text{}", &line[..begin], &line[end + 1..])
        }
        _ => line.to_owned(),
    }
}

fn wrong(line: &str) -> Option<&str> {
    let rest = line.split_once("unknown field `")?.1;
    Some(rest.split_once('`')?.0)
}

/// The texts between backticks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Whether a setting of php.ini holds a password or a key, by its name.
pub(super) fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [
        "password",
        "passwd",
        "passphrase",
        "secret",
        "token",
        "api_key",
        "default_pw",
        "auth",
        "license",
    ]
    .iter()
    .any(|part| name.contains(part))
}

/// Whether a value contains one, whatever its key: an address with a user's password, or with credentials in its query,
/// as `tcp://localhost?auth=…` in `session.save_path`.
pub(super) fn holds_secret(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    let has_user = value.split("://").skip(1).any(|rest| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        authority
            .rsplit_once('@')
            .is_some_and(|(user, _)| user.contains(':'))
    });
    has_user || (value.contains('=') && is_secret(&value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested() {
        let error = "TOML parse error\nunknown field `workrs`, expected one of `listen`, `workers`, `access_log`";
        let expected = "TOML parse error\nunknown field `workrs`; is `workers` meant?";
        assert_eq!(suggest(error), expected);
        let far = "unknown field `zzz`, expected `listen` or `workers`";
        assert_eq!(suggest(far), far);
        assert_eq!(suggest("something else"), "something else");
        let secret = "TOML parse error\n  |\n3 | mysqli.default_pw = hunter2\n  |    ^";
        let hidden = "TOML parse error\n  |\n3 | (not shown)\n  |    ^";
        assert_eq!(suggest(secret), hidden);
        let secret =
            "1 | secret = \"hunter2\"\ninvalid type: string \"hunter2\", expected struct Pusher";
        let hidden = suggest(secret);
        assert!(
            hidden.contains("invalid type: text, expected a table"),
            "{hidden}"
        );
        assert!(!hidden.contains("hunter2"), "{hidden}");
    }
}
