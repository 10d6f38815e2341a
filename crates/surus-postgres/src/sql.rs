//! What must not be sent on a connection that others use: it would change what their statements do.

/// Statements that begin or end a transaction, or change what the connection is for those who come after.
const OWN: [&str; 20] = [
    "BEGIN",
    "START",
    "COMMIT",
    "END",
    "ROLLBACK",
    "ABORT",
    "SAVEPOINT",
    "RELEASE",
    "PREPARE",
    "EXECUTE",
    "DEALLOCATE",
    "SET",
    "RESET",
    "DISCARD",
    "LISTEN",
    "UNLISTEN",
    "DECLARE",
    "COPY",
    "LOAD",
    "LOCK",
];

/// Of these, what may not be sent in a transaction either, whose begin and end are the client's.
const CLIENTS: [&str; 14] = [
    "BEGIN",
    "START",
    "COMMIT",
    "END",
    "ROLLBACK",
    "ABORT",
    "PREPARE",
    "DEALLOCATE",
    "COPY",
    "DISCARD",
    "LISTEN",
    "UNLISTEN",
    "LOAD",
    "SET",
];

/// What must not be sent: the first word, if it is such a statement. `alone`: nobody else uses the connection.
pub(crate) fn refused(sql: &str, alone: bool) -> Option<&'static str> {
    let (word, rest) = first_word(sql);
    let list: &[&'static str] = if alone { &CLIENTS } else { &OWN };
    let found = list.iter().find(|known| known.eq_ignore_ascii_case(word))?;
    let is_one_of = |word: &str, list: &[&str]| list.iter().any(|it| it.eq_ignore_ascii_case(word));
    let (next, behind) = first_word(rest);
    let ends_with_it = match *found {
        "ROLLBACK" if is_one_of(next, &["WORK", "TRANSACTION"]) => {
            is_one_of(first_word(behind).0, &["TO"])
        }
        "ROLLBACK" => is_one_of(next, &["TO"]),
        // "local.x" is a setting's name.
        "SET" => {
            is_one_of(next, &["LOCAL", "TRANSACTION", "CONSTRAINTS"])
                && !behind_space(behind).starts_with('.')
        }
        _ => false,
    };
    (!alone || !ends_with_it).then_some(*found)
}

pub(crate) fn is_copy(sql: &str) -> bool {
    first_word(sql).0.eq_ignore_ascii_case("COPY")
}

/// Whether it waits for no row's lock and writes nothing, as far as its text says.
pub(crate) fn only_reads(sql: &str) -> bool {
    let (word, _) = first_word(sql);
    let reads = ["SELECT", "VALUES", "TABLE", "SHOW"];
    reads.iter().any(|it| it.eq_ignore_ascii_case(word)) && !has_word(sql, "FOR")
}

fn has_word(sql: &str, wanted: &str) -> bool {
    sql.split_whitespace()
        .any(|word| word.eq_ignore_ascii_case(wanted))
}

/// The first word after space and comments, and what follows it. Several statements in one text the server refuses by itself.
fn first_word(sql: &str) -> (&str, &str) {
    let rest = behind_space(sql);
    let end =
        rest.find(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric() && c != '_' && c != '$');
    rest.split_at(end.unwrap_or(rest.len()))
}

fn behind_space(text: &str) -> &str {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ';' || c == '\u{b}');
        if let Some(comment) = rest.strip_prefix("--") {
            rest = comment.find(['\n', '\r']).map_or("", |end| &comment[end..]);
        } else if rest.starts_with("/*") {
            rest = after_comment(rest);
        } else {
            return rest;
        }
    }
}

/// Comments may be nested.
fn after_comment(text: &str) -> &str {
    let bytes = text.as_bytes();
    let (mut depth, mut at) = (0, 0);
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => {
                depth += 1;
                at += 2;
            }
            b"*/" => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return &text[at..];
                }
            }
            _ => at += 1,
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::{only_reads, refused};

    #[test]
    fn statements_for_a_connection_of_their_own_are_found() {
        for sql in [
            "begin",
            " \n\t;BEGIN;",
            "-- x\nSTART TRANSACTION",
            "--x\rSET a = 1",
            "/* a /* b */ c */ set x to 1",
            "/**/COMMIT",
            "Lock table x",
        ] {
            assert!(refused(sql, false).is_some(), "{sql}");
        }
        for sql in [
            "SELECT 1",
            "(SELECT 1)",
            "",
            "--",
            "/*",
            "/* BEGIN */ SELECT 1",
            "beginning",
            "WITH x AS (SELECT 1) SELECT * FROM x",
            "é",
        ] {
            assert_eq!(refused(sql, false), None, "{sql}");
        }
    }

    #[test]
    fn what_may_lock_is_known() {
        assert!(only_reads("/* x */ select 1"));
        assert!(!only_reads("SELECT * FROM x\nFOR UPDATE"));
        assert!(!only_reads("WITH x AS (DELETE FROM y) SELECT 1"));
        assert!(!only_reads("INSERT INTO x VALUES (1)"));
    }

    #[test]
    fn a_transaction_may_have_savepoints_and_settings() {
        assert_eq!(refused("SAVEPOINT a", true), None);
        assert_eq!(refused("ROLLBACK TO a", true), None);
        assert_eq!(refused("SET LOCAL lock_timeout = 1", true), None);
        assert_eq!(refused("SET search_path = x", true), Some("SET"));
        assert_eq!(refused("ROLLBACK", true), Some("ROLLBACK"));
        assert_eq!(refused("commit", true), Some("COMMIT"));
        assert_eq!(refused("ROLLBACK WORK TO SAVEPOINT a", true), None);
        assert_eq!(refused("SET /* x */ TRANSACTION READ ONLY", true), None);
        for sql in [
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
            "SET search_path TO local",
            "SET a.b = 'x' -- LOCAL",
            "SET transaction_timeout = 1",
            "SET local.x = 1",
            "SET local /**/ . x = 1",
        ] {
            assert_eq!(refused(sql, true), Some("SET"), "{sql}");
        }
        assert_eq!(refused("ROLLBACK /* TO */", true), Some("ROLLBACK"));
    }
}
