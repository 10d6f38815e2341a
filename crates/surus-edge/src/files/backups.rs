//! Recognizes archives that are backups, and not downloads for visitors, by their names.

/// Extensions of archives. The name of the packed file is checked as well: `dump.sql.gz`.
const ARCHIVES: &[&[u8]] = &[
    b"zip", b"tar", b"tgz", b"tbz", b"tbz2", b"txz", b"tzst", b"gz", b"bz2", b"xz", b"zst", b"7z",
    b"rar",
];

/// Words that people and scripts use for a copy of a site or of its database.
const COPIES: &[&[u8]] = &[
    b"backup",
    b"backups",
    b"bak",
    b"dump",
    b"dumps",
    b"sqldump",
    b"mysqldump",
    b"pgdump",
    b"wwwroot",
    b"htdocs",
    b"webroot",
];

/// The same, but only without other words, or with a date.
const DATA: &[&[u8]] = &[b"database", b"db", b"sql", b"mysql", b"www"];

/// Checks a name in lower case: `backup.zip`, `example.com-backup-2026-11-23.tar.gz`, `db.7z`, `public_html.tgz`. The
/// word must be the last one, apart from version and date, or the first one of a name with a date:
/// `backup-tool-1.2.zip` and `sakila-db.zip` are downloads.
pub(crate) fn is_backup(name: &[u8]) -> bool {
    let mut parts: Vec<&[u8]> = name.split(|&byte| byte == b'.').collect();
    let packed = parts.iter().rev();
    let packed = packed.take_while(|part| ARCHIVES.contains(part)).count();
    if packed == 0 || packed == parts.len() {
        return false;
    }
    parts.truncate(parts.len() - packed);
    if parts[0].starts_with(b"public_html") {
        return true;
    }
    let words = parts.iter().flat_map(|part| {
        part.split(|byte| matches!(byte, b'-' | b'_' | b' ' | b'(' | b')' | b'@' | b'+'))
    });
    let (numbers, words): (Vec<&[u8]>, Vec<&[u8]>) = words
        .filter(|word| !word.is_empty())
        .partition(|word| word.iter().all(u8::is_ascii_digit));
    let (Some(first), Some(last)) = (words.first(), words.last()) else {
        return false;
    };
    // A year, or a whole date.
    let has_date = numbers.iter().any(|number| number.len() >= 4);
    let is_data = |word| DATA.contains(word) && (has_date || words.len() == 1);
    COPIES.contains(last) || (has_date && COPIES.contains(first)) || is_data(first) || is_data(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backups_are_told_from_downloads() {
        for name in [
            "backup.zip",
            "backup.tar.gz",
            "dump.tar.gz",
            "dump.gz",
            "db.zip",
            "db_dump.7z",
            "database.tar.xz",
            "site-backup.zip",
            "example.com-backup-2026-11-23.tar.gz",
            "backup_2026-11-23-1200_shop_abc.zip",
            "backup-20261123.tgz",
            "backup (2).zip",
            "public_html.tgz",
            "wwwroot.rar",
            "mysql.gz",
            "shop-db-20261123.gz",
        ] {
            assert!(is_backup(name.as_bytes()), "{name}");
        }
        for name in [
            "zip",
            "tar.gz",
            ".zip",
            "backup",
            "backup.php",
            "backup.html",
            "dump.js.gz",
            "backup-tool-1.2.zip",
            "sakila-db.zip",
            "manual_html.tar.gz",
            "myplugin-1.4.2.zip",
            "photos-2026.zip",
            "brochure.zip",
            "dbview.zip",
            "linux-6.12.tar.xz",
            "app.css.gz",
        ] {
            assert!(!is_backup(name.as_bytes()), "{name}");
        }
    }
}
