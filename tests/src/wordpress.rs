//! Debian's WordPress, laid out in a folder of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::mariadb::MariaDb;
use crate::process;
use crate::temp::TempDir;

/// Where the package `wordpress` puts the program; the theme's package adds the theme there.
const PACKAGE: &str = "/usr/share/wordpress";
const THEME: &str = "wp-content/themes/twentytwentythree";

#[derive(Debug)]
pub struct WordPress {
    root: PathBuf,
    _folder: TempDir,
}

impl WordPress {
    /// Copies the package, with its links followed, and writes a configuration for an empty database.
    pub fn new(database: &MariaDb) -> Self {
        assert!(
            Path::new(PACKAGE).join(THEME).exists(),
            "the Debian packages wordpress and wordpress-theme-twentytwentythree are missing"
        );
        let folder = TempDir::new("wordpress");
        let root = folder.path().join("site");
        let mut copy = Command::new("cp");
        copy.args(["-rL", PACKAGE]).arg(&root);
        process::run(copy);
        folder.folder("site/wp-content/uploads");
        // Debian's wp-config.php looks for its settings in /etc.
        folder.file("site/wp-config.php", &config(database.port()));
        database.create("wordpress");
        Self {
            root,
            _folder: folder,
        }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }
}

/// The site is wherever it is asked for, so that two servers can serve it; nothing is fetched from
/// outside, and scheduled tasks do not change pages between two looks at them.
fn config(port: u16) -> String {
    let (user, password) = (MariaDb::USER, MariaDb::PASSWORD);
    let keys: String = ["AUTH_KEY", "SECURE_AUTH_KEY", "LOGGED_IN_KEY", "NONCE_KEY"]
        .iter()
        .flat_map(|key| [(*key).to_owned(), key.replace("KEY", "SALT")])
        .map(|key| format!("define('{key}', 'a fixed {key} for tests');\n"))
        .collect();
    format!(
        "<?php
define('DB_NAME', 'wordpress');
define('DB_USER', '{user}');
define('DB_PASSWORD', '{password}');
define('DB_HOST', '127.0.0.1:{port}');
define('DB_CHARSET', 'utf8mb4');
define('DB_COLLATE', '');
{keys}
define('WP_HOME', 'http://' . $_SERVER['HTTP_HOST']);
define('WP_SITEURL', 'http://' . $_SERVER['HTTP_HOST']);
define('COOKIEHASH', 'test');
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('DISABLE_WP_CRON', true);
define('AUTOMATIC_UPDATER_DISABLED', true);
define('WP_AUTO_UPDATE_CORE', false);
$table_prefix = 'wp_';
if (!defined('ABSPATH')) {{
    define('ABSPATH', __DIR__ . '/');
}}
require_once ABSPATH . 'wp-settings.php';
"
    )
}
