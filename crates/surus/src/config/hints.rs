//! Hints for a key in the wrong table, one that has another name in other servers, or a setting of PHP.

use super::tables::{App, Channel, Isolates, Keys, Process, Pusher, Server};

/// Names in nginx, php-fpm, and other servers, with the keys here.
const ELSEWHERE: &[(&str, &str)] = &[
    ("port", "listen of [server]"),
    ("host", "listen of [server], or allowed_hosts of [app.NAME]"),
    ("address", "listen of [server]"),
    ("bind", "listen of [server]"),
    ("worker_processes", "workers of [server]"),
    ("worker_connections", "max_connections of [server]"),
    ("keepalive_timeout", "keep_alive of [server]"),
    ("client_max_body_size", "max_body of [app.NAME]"),
    ("client_body_timeout", "body_timeout of [server]"),
    ("client_header_timeout", "header_timeout of [server]"),
    ("client_body_temp_path", "spool_folder of [app.NAME]"),
    ("send_timeout", "write_timeout of [server]"),
    ("set_real_ip_from", "trusted_proxies of [server]"),
    ("real_ip_header", "forwarded of [server]"),
    ("log_level", "the environment variable SURUS_LOG"),
    ("log", "access_log_file or error_log of [server]"),
    ("document_root", "root of [app.NAME]"),
    ("index", "script of [app.NAME]"),
    ("path", "root or script of [app.NAME]"),
    ("timeout", "request_timeout of [app.NAME]"),
    ("request_terminate_timeout", "request_timeout of [app.NAME]"),
    ("request_slowlog_timeout", "slow_log of [app.NAME]"),
    (
        "slowlog",
        "slow_log of [app.NAME], a duration: it goes to the error log",
    ),
    (
        "pm",
        "workers of [server], and isolates or processes of [app.NAME]",
    ),
    ("max_children", "isolates.max or processes of [app.NAME]"),
    ("php_admin_value", "the table [php]"),
    ("php_value", "the table [php]"),
    ("php_flag", "the table [php]"),
    ("env", "the table [env]"),
    ("environment", "the table [env]"),
    ("tls", "a proxy in front: Surus speaks no TLS"),
    ("ssl", "a proxy in front: Surus speaks no TLS"),
    ("ssl_certificate", "a proxy in front: Surus speaks no TLS"),
    ("https", "a proxy in front: Surus speaks no TLS"),
    ("redis", "channels_redis of [app.NAME]"),
    ("redis_url", "channels_redis of [app.NAME]"),
    ("reverb", "a table [pusher.NAME]"),
    ("app_id", "id of [pusher.NAME]"),
    ("app_key", "key of [pusher.NAME]"),
    ("app_secret", "secret of [pusher.NAME]"),
    ("max_message_size", "max_event of [pusher.NAME]"),
    ("enable_client_messages", "client_events of [pusher.NAME]"),
    ("program", "a table [process.NAME]"),
    ("numprocs", "instances of [process.NAME]"),
    ("autorestart", "restart of [process.NAME]"),
    ("queue", "$app->queue() in PHP"),
    ("concurrency", "an argument of $app->queue() in PHP"),
    ("tries", "an argument of $app->queue() in PHP"),
    ("rate", "an argument of $app->queue() in PHP"),
];

/// Groups of PHP's own settings, and names of some of them.
const OF_PHP: &[&str] = &[
    "opcache",
    "session",
    "date",
    "mbstring",
    "pdo",
    "mysqli",
    "assert",
    "zend",
    "zlib",
    "apc",
    "display_errors",
    "error_reporting",
    "log_errors",
    "post_max_size",
    "upload_max_filesize",
    "upload_tmp_dir",
    "max_execution_time",
    "max_input_time",
    "max_input_vars",
    "max_file_uploads",
    "disable_functions",
    "open_basedir",
    "short_open_tag",
    "include_path",
    "default_charset",
    "auto_prepend_file",
    "realpath_cache_size",
    "extension",
];

/// A hint where this key belongs, if it is known elsewhere.
pub(super) fn place(wrong: &str) -> Option<String> {
    let tables = [
        ("[server]", Server::KEYS),
        ("[app.NAME]", App::KEYS),
        ("isolates = { … } of [app.NAME]", Isolates::KEYS),
        ("[process.NAME]", Process::KEYS),
        ("[channel.PATTERN]", Channel::KEYS),
        ("[pusher.NAME]", Pusher::KEYS),
    ];
    for (table, keys) in tables {
        if keys.contains(&wrong) {
            return Some(format!("it is a key of {table}: write it there"));
        }
    }
    let lower = wrong.to_ascii_lowercase().replace('-', "_");
    if OF_PHP.contains(&lower.as_str()) {
        return Some("it is a setting of PHP: those stand below [php]".to_owned());
    }
    let known = ELSEWHERE.iter().find(|(name, _)| *name == lower)?;
    Some(format!("that is {} here", known.1))
}

/// Replaces names of Rust types in an error by how a value of the type is written.
pub(super) fn typed(error: &str) -> String {
    const NUMBER: &str = "expected a whole number, without quotes and not negative";
    for (theirs, ours) in [
        ("expected usize", NUMBER),
        ("expected u64", NUMBER),
        (
            "expected a boolean",
            "expected true or false, without quotes",
        ),
        ("expected a string", "expected text in quotes"),
        ("expected path string", "expected a path in quotes"),
        (
            "expected struct App",
            "expected a table with a name of your choice: [app.NAME], where this stands below it",
        ),
        ("expected struct Server", "expected a table: [server]"),
        (
            "expected struct Process",
            "expected a table with a name of your choice: [process.NAME], where this stands below it",
        ),
        (
            "expected struct Channel",
            "expected a table with a pattern in quotes: [channel.\"news/*\"], where this stands below it",
        ),
        (
            "expected struct Pusher",
            "expected a table with a name of your choice: [pusher.NAME], where this stands below it",
        ),
        (
            "expected a sequence",
            "expected a list of words: [\"surus\", \"php\", \"worker.php\"]",
        ),
        (
            "invalid unquoted key, expected letters, numbers, `-`, `_`",
            "a name with other characters than letters, digits, - and _ stands in quotes: [channel.\"news/*\"]",
        ),
        (
            "expected struct Isolates",
            "expected a table such as { max = 8 }",
        ),
        (
            "invalid type: sequence, expected a map",
            "expected a table, in single brackets: [server], [app.NAME], [php] or [env]",
        ),
        (
            "expected a map",
            "expected a table: [server], [app.NAME], [php] or [env]",
        ),
        ("key with no value, expected `=`", "expected KEY = VALUE"),
        (
            "unexpected key or value, expected newline, `#`",
            "one value is expected here; several are a list: [\"a\", \"b\"]",
        ),
        (
            "string values must be quoted, expected literal string",
            "text stands in quotes: \"…\"",
        ),
        (
            "duplicate key",
            "this key, or table, is there already: leave one of them",
        ),
    ] {
        if let Some(error) = error.strip_suffix(theirs) {
            return format!("{error}{ours}");
        }
    }
    error.to_owned()
}
