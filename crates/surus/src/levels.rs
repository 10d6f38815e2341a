//! Which lines are logged: `SURUS_LOG`.

use tracing_subscriber::EnvFilter;

/// Errors that clients cause in HTTP/2 are not logged: every client could fill the log with them.
const DEFAULT: &str = "info,h2=error";

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Targets, which may be given without a level.
const TARGETS: [&str; 4] = ["surus", "php", "app", "h2"];

/// Parses a filter such as `warn` or `info,app=debug`. Returns also the errors of its invalid parts.
pub(crate) fn filter(text: &str) -> (EnvFilter, Vec<String>) {
    let mut wrong = Vec::new();
    let parts = text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty());
    let right: Vec<&str> = parts
        .filter(|part| match complaint(part) {
            None => true,
            Some(why) => {
                wrong.push(why);
                false
            }
        })
        .collect();
    let text = match right.is_empty() {
        true => DEFAULT.to_owned(),
        false => right.join(","),
    };
    if !wrong.is_empty() {
        let last = wrong.len() - 1;
        wrong[last].push_str(&format!(". Logging by {text:?}"));
    }
    (
        EnvFilter::try_new(&text).unwrap_or_else(|_| EnvFilter::new(DEFAULT)),
        wrong,
    )
}

fn complaint(part: &str) -> Option<String> {
    let (target, level) = match part.rsplit_once('=') {
        Some((target, level)) => (Some(target), level.trim()),
        None => (None, part),
    };
    let is_level = LEVELS.iter().any(|known| known.eq_ignore_ascii_case(level));
    let is_target = |name: &str| {
        let first = name.split(':').next().unwrap_or_default();
        TARGETS.contains(&first) || first.starts_with("surus_")
    };
    if is_level || (target.is_none() && is_target(level)) || level.parse::<u8>().is_ok() {
        return EnvFilter::try_new(part)
            .err()
            .map(|error| format!("{part:?}: {error}"));
    }
    let lower = level.to_ascii_lowercase();
    let near = |known: &&str| strsim::jaro_winkler(&lower, known);
    let nearest = LEVELS.iter().max_by(|a, b| near(a).total_cmp(&near(b)));
    let meant = match nearest.filter(|known| near(known) > 0.7) {
        Some(known) => format!("; is {known} meant?"),
        None => String::new(),
    };
    Some(format!(
        "{level:?} is no level (off, error, warn, info, debug, trace){meant}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_level_is_said() {
        for (text, filter, words) in [
            ("wran", "info,h2=error", Some("is warn meant?")),
            ("warning", "info,h2=error", Some("is warn meant?")),
            ("info,app=debgu", "info", Some("is debug meant?")),
            ("nonsense", "info,h2=error", Some("(off, error, warn, info")),
            ("", "info,h2=error", None),
            ("WARN", "warn", None),
            (
                "info, app=debug,php=error",
                "info,app=debug,php=error",
                None,
            ),
            ("php", "php", None),
            ("surus::preflight=debug", "surus::preflight=debug", None),
        ] {
            let (found, wrong) = super::filter(text);
            let expected = EnvFilter::try_new(filter).unwrap();
            assert_eq!(found.to_string(), expected.to_string(), "{text}");
            match words {
                None => assert!(wrong.is_empty(), "{wrong:?}"),
                Some(words) => assert!(wrong.len() == 1 && wrong[0].contains(words), "{wrong:?}"),
            }
        }
    }
}
