//! Lists with weights, as in `Accept` and `Accept-Language` (RFC 9110, section 12.4.2).

/// Items and their weights in thousandths, in the order of the list; a malformed weight is 0.
pub fn weighted(list: &str) -> impl Iterator<Item = (&str, u16)> {
    split(list, ',').map(|item| {
        let mut parts = split(item, ';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let weight = parts.find_map(|parameter| match parameter.split_once('=') {
            Some(("q" | "Q", weight)) => Some(thousandths(weight)),
            _ => None,
        });
        (name, weight.unwrap_or(1000))
    })
}

/// Splits at the separator, but not inside a quoted string (RFC 9110, section 5.6.4). One without a closing quote
/// extends to the end of the text.
fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.split(move |each| {
        if is_escaped {
            is_escaped = false;
            return false;
        }
        match each {
            '"' => is_quoted = !is_quoted,
            '\\' => is_escaped = is_quoted,
            _ => return each == separator && !is_quoted,
        }
        false
    })
}

/// Parses a weight as `0.5`. HTTP allows three decimals: more are cut off.
fn thousandths(text: &str) -> u16 {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let known = matches!(whole, "0" | "1") || (whole.is_empty() && !decimals.is_empty());
    if !known || !digits(decimals) {
        return 0;
    }
    let padded = decimals.bytes().chain(*b"000").take(3);
    let part = padded.fold(0, |part, digit| part * 10 + u16::from(digit - b'0'));
    match whole {
        "1" if decimals.bytes().all(|digit| digit == b'0') => 1000,
        "1" => 0,
        _ => part,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_what_the_table_says() {
        let table = include_str!("../../../tests/weights.txt");
        let mut rows = 0;
        for row in table.lines().filter(|row| !row.starts_with('#')) {
            let (list, rest) = row.split_once(" | ").unwrap();
            let (item, weight) = rest.split_once(" | ").unwrap();
            let mut found = weighted(list).filter(|(name, _)| name.eq_ignore_ascii_case(item));
            let found = found.next().map(|(_, weight)| weight);
            assert_eq!(found, weight.parse().ok(), "{row}");
            rows += 1;
        }
        assert!(rows > 30);
        assert_eq!(weighted("").collect::<Vec<_>>(), [("", 1000)]);
    }
}
