//! Whether a statement of SQL only reads: afterwards the session with the server is as it was before.
//!
//! This is decided by the text, so it must err on one side only. Only a `SELECT` that calls no function but some of
//! PostgreSQL's own, and the frame of a transaction, are known to leave nothing; `set_config()`, `nextval()`,
//! `pg_advisory_lock()`, functions of an application and whatever is hard to read are not.

/// Words that may stand before a parenthesis: SQL's own, and functions that compute a value.
const BEFORE_PARENTHESIS: &[&str] = &[
    "all",
    "and",
    "any",
    "array",
    "as",
    "between",
    "by",
    "case",
    "distinct",
    "else",
    "except",
    "exists",
    "filter",
    "from",
    "having",
    "ilike",
    "in",
    "intersect",
    "is",
    "join",
    "lateral",
    "like",
    "limit",
    "not",
    "offset",
    "on",
    "or",
    "over",
    "row",
    "select",
    "some",
    "then",
    "union",
    "using",
    "values",
    "when",
    "where",
    "abs",
    "array_agg",
    "avg",
    "cast",
    "ceil",
    "coalesce",
    "concat",
    "count",
    "date_trunc",
    "dense_rank",
    "extract",
    "floor",
    "greatest",
    "json_agg",
    "json_build_object",
    "jsonb_agg",
    "jsonb_build_object",
    "lag",
    "lead",
    "least",
    "left",
    "length",
    "lower",
    "max",
    "min",
    "now",
    "nullif",
    "position",
    "rank",
    "replace",
    "right",
    "round",
    "row_number",
    "string_agg",
    "substring",
    "sum",
    "to_char",
    "trim",
    "upper",
];

const FRAMES: &[&str] = &["begin", "commit", "rollback", "start transaction"];

/// What stands before a character.
enum Before {
    Word(String),
    /// A name whose function is unknown: in quotes, or with a schema.
    Name,
    Other,
}

pub(super) fn only_reads(text: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(text) else {
        return false;
    };
    let text = text.trim_matches([' ', '\t', '\n', '\r']);
    let text = text.strip_suffix(';').unwrap_or(text).trim_end();
    if FRAMES.iter().any(|frame| text.eq_ignore_ascii_case(frame)) {
        return true;
    }
    let is_select = text
        .get(..6)
        .is_some_and(|first| first.eq_ignore_ascii_case("select"));
    // With a backslash it depends on the server's settings where a text ends.
    is_select && !text.contains('\\') && calls_nothing(text.as_bytes())
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// The position behind a text that begins with this quote; `None` if it does not end.
fn behind_quote(text: &[u8], at: usize) -> Option<usize> {
    let quote = text[at];
    let length = text[at + 1..].iter().position(|byte| *byte == quote)?;
    Some(at + length + 2)
}

fn calls_nothing(text: &[u8]) -> bool {
    let mut before = Before::Other;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let next = text.get(at + 1).copied().unwrap_or_default();
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => at += 1,
            b'\'' | b'"' => {
                let Some(behind) = behind_quote(text, at) else {
                    return false;
                };
                at = behind;
                before = Before::Name;
            }
            b'-' if next == b'-' => return false,
            b'/' if next == b'*' => return false,
            b'$' if !next.is_ascii_digit() => return false,
            b';' | 0..=b' ' => return false,
            b'(' => {
                let is_known = match &before {
                    Before::Word(word) => BEFORE_PARENTHESIS.contains(&word.as_str()),
                    Before::Name => false,
                    Before::Other => true,
                };
                if !is_known {
                    return false;
                }
                at += 1;
                before = Before::Other;
            }
            _ if is_of_word(byte) => {
                let length = text[at..]
                    .iter()
                    .take_while(|byte| is_of_word(**byte))
                    .count();
                let word = String::from_utf8_lossy(&text[at..at + length]).to_ascii_lowercase();
                // Before PostgreSQL 15 "1into" is a number and a word.
                if word == "into" || byte.is_ascii_digit() && word.ends_with("into") {
                    return false;
                }
                let has_schema = text[..at].trim_ascii_end().ends_with(b".");
                at += length;
                before = if has_schema {
                    Before::Name
                } else {
                    Before::Word(word)
                };
            }
            _ => {
                at += 1;
                before = Before::Other;
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::only_reads;

    #[test]
    fn plain_reads() {
        for text in [
            "select 41 + '1'",
            " SELECT id, randomnumber FROM world WHERE id = $1;\n",
            "select * from fortune",
            "SELECT count(*), max (a) FROM \"t\" t0 WHERE t0.\"id\" IN ($1, $2) AND (a = 'x''(' OR b)",
            "select a from (select 1 as a) b join (values (1), (2)) c on (b.a = c.column1)",
            "select name from users where name like 'set_config(%'",
            "BEGIN",
            "start transaction",
            "Commit;",
        ] {
            assert!(only_reads(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn what_may_leave_something() {
        for text in [
            "",
            ";",
            "select set_config('a.b', 'c', false)",
            "select pg_advisory_lock (1)",
            "select nextval('a')",
            "select own.count(1)",
            "select own . \"count\"(1)",
            "select \"pg_advisory_lock\"(1)",
            "select/**/pg_advisory_lock/**/(1)",
            "select pg_advisory_lock -- \n (1)",
            "select 1; set a.b = 'c'",
            "select 1;;",
            "select E'\\'', pg_advisory_lock(1) --'",
            "select $a$'$a$, pg_advisory_lock(1), $a$'$a$",
            "select E'a\\b'",
            "select pg_advisory_lock\u{c}(1)",
            "select 1 into temp a",
            "select 1into temp a",
            "select '",
            "set search_path to a",
            "insert into a values (1)",
            "update a set b = 1",
            "with a as (delete from b returning *) select * from a",
            "listen a",
            "begin; set a.b = 'c'",
            "begin isolation level serializable",
            "prepare a as select 1",
            "deallocate all",
            "discard all",
            "select count\u{e4}(1)",
        ] {
            assert!(!only_reads(text.as_bytes()), "{text}");
        }
        assert!(!only_reads(b"select '\xff'"));
        assert!(!only_reads(b"select 1\0"));
    }
}
