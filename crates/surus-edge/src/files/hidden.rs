//! Decides which files of a site are not served, although they are below its root.

use std::collections::HashMap;

use crate::files::backups::is_backup;

/// Files that installations leave in their folders: PHP source under other names than `*.php`, configuration with
/// passwords, databases, logs, keys, lists of dependencies. Folders may have these names.
///
/// Browsers do not need any of these for WordPress, Drupal, MediaWiki, Laravel and Symfony.
const FILES: &[&str] = &[
    // With any suffix: `a.php.old`, `a.php5`, `a.phps`, `a.php~`. This first rule does not apply to `a.php`, which is
    // run, but to `a.PHP`, which is not.
    "*.php*",
    // Names that programs which copy a site give to its pages.
    "!*.php*.html",
    "!*.php*.htm",
    "!*.php*.css",
    "*.phtml*",
    "*.pht",
    "*.phar",
    "*.inc",
    "*.module",
    "*.install",
    "*.engine",
    "*.profile",
    // Executes any code that a client sends.
    "eval-stdin.php",
    "surus*.toml",
    "*.ini",
    "web.config",
    "*.sql",
    "*.sqlite*",
    "*.db",
    "*.db3",
    "*.db-*",
    "*.mdb",
    "*.rdb",
    "*.dump",
    "*.log",
    "*.log-*",
    "*.log_*",
    "error_log",
    "error_log-*",
    "access_log",
    "access_log-*",
    "nohup.out",
    "*.key",
    "*.pem",
    "*.p8",
    "*.p12",
    "*.pfx",
    "*.ppk",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "htpasswd",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "credentials.json",
    "auth.json",
    "composer.json",
    "composer.lock",
    "package.json",
    "package-lock.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "phpunit.xml",
    "phpunit.xml.dist",
    "dockerfile",
    "dockerfile.*",
    "docker-compose*.yml",
    "docker-compose*.yaml",
    "compose.yml",
    "compose.yaml",
];

/// Copies that editors and people make, and dot files; also everything in folders with these names.
const FOLDERS: &[&str] = &[
    "*.bak",
    "*.bak-*",
    "*.bak_*",
    "*.bak0",
    "*.bak1",
    "*.bak2",
    "*.bak3",
    "*.bak4",
    "*.bak5",
    "*.bak6",
    "*.bak7",
    "*.bak8",
    "*.bak9",
    "*.backup",
    "*.old",
    "*.orig",
    "*.save",
    "*.copy",
    "*.tmp",
    "*.swp",
    "*.swo",
    // Left by package managers.
    "*.dpkg-*",
    "*.ucf-*",
    "*.rpmsave",
    "*.rpmnew",
    "*.rpmorig",
    "*~",
    "#*#",
    ".*",
    // Public by RFC 8615.
    "!/.well-known/",
];

/// The same, only if the root is the folder of a project and not its public folder.
const OF_PROJECTS: &[&str] = &["vendor", "node_modules"];

/// Extensions with which a hidden file stays hidden, as with a number or a date: `dump.sql.gz`, `error.log.1`,
/// `error.log.2026-11-23`.
const PACKED: &[&[u8]] = &[
    b"gz", b"bz2", b"xz", b"zst", b"br", b"zip", b"7z", b"rar", b"tar", b"tgz",
];

/// Names and paths that are not served.
#[derive(Clone, Debug)]
pub struct Hidden {
    rules: usize,
    /// Names such as `composer.json`, with the last rule for each.
    names: HashMap<Vec<u8>, Rule>,
    /// Patterns such as `*.sql`, by `sql`, likewise.
    extensions: HashMap<Vec<u8>, Rule>,
    globs: Vec<(Vec<u8>, Rule)>,
    /// Paths from the root, in their order.
    paths: Vec<(Vec<Vec<u8>>, bool)>,
}

/// Of two rules the later one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rule {
    number: usize,
    hides: bool,
}

/// Whether a path is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Served,
    /// Hidden if the root is the folder of a project, else served.
    OfProject,
    Hidden,
}

impl Default for Hidden {
    fn default() -> Self {
        let mut hidden = Hidden {
            rules: 0,
            names: HashMap::new(),
            extensions: HashMap::new(),
            globs: Vec::new(),
            paths: Vec::new(),
        };
        for pattern in FILES.iter().chain(FOLDERS) {
            hidden.add(pattern);
        }
        hidden
    }
}

impl Hidden {
    /// The default rules and these patterns: `*.secret` and `draft` in any folder, `/internal/` at the root; `*`
    /// matches any number of characters. A pattern that begins with `!` names exceptions, which are served. The last
    /// match counts.
    ///
    /// # Errors
    /// The error of the first invalid pattern.
    pub fn with<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let mut hidden = Hidden::default();
        for pattern in patterns {
            check(pattern).map_err(|why| format!("{pattern:?}: {why}"))?;
            hidden.add(pattern);
        }
        Ok(hidden)
    }

    /// Hides this name, too, whatever the patterns say.
    #[must_use]
    pub fn and(mut self, name: &str) -> Self {
        let rule = Rule {
            number: usize::MAX,
            hides: true,
        };
        self.names.insert(plain(name.as_bytes()), rule);
        self
    }

    fn add(&mut self, pattern: &str) {
        self.rules += 1;
        let (pattern, hides) = match pattern.strip_prefix('!') {
            Some(rest) => (rest, false),
            None => (pattern, true),
        };
        let pattern = pattern.to_ascii_lowercase();
        let inner = pattern.trim_end_matches('/');
        if inner.contains('/') {
            let steps = inner.split('/').filter(|step| !step.is_empty());
            let steps = steps.map(|step| step.as_bytes().to_vec()).collect();
            self.paths.push((steps, hides));
            return;
        }
        let rule = Rule {
            number: self.rules,
            hides,
        };
        let name = inner.as_bytes().to_vec();
        match inner.strip_prefix("*.") {
            _ if !inner.contains('*') => _ = self.names.insert(name, rule),
            Some(extension) if !extension.contains(['*', '.']) => {
                _ = self.extensions.insert(extension.as_bytes().to_vec(), rule);
            }
            _ => self.globs.push((name, rule)),
        }
    }

    /// Judges a decoded and normalised path. With a slash at the end it is that of a folder; `is_script`: the file is
    /// not sent, but run.
    pub(crate) fn judge(&self, path: &[u8], is_script: bool) -> Verdict {
        let mut verdict = Verdict::Served;
        let steps: Vec<Vec<u8>> = path
            .split(|&byte| byte == b'/')
            .filter(|step| !step.is_empty())
            .map(plain)
            .collect();
        let folders = steps.len() - usize::from(!path.ends_with(b"/"));
        for (at, name) in steps.iter().enumerate() {
            let first = match at < folders {
                true => FILES.len() + 1,
                false => 1 + usize::from(is_script),
            };
            if let Some(hides) = self.path(&steps[..=at]) {
                verdict = match hides {
                    true => Verdict::Hidden,
                    false => Verdict::Served,
                };
            } else if self.name(name, first) {
                verdict = Verdict::Hidden;
            } else if at == 0 && OF_PROJECTS.iter().any(|folder| name == folder.as_bytes()) {
                verdict = Verdict::OfProject;
            }
        }
        verdict
    }

    fn path(&self, steps: &[Vec<u8>]) -> Option<bool> {
        let fits = |pattern: &[Vec<u8>]| {
            let mut pairs = pattern.iter().zip(steps);
            pattern.len() == steps.len() && pairs.all(|(pattern, step)| fits(pattern, step))
        };
        let mut all = self.paths.iter().rev();
        all.find(|(pattern, _)| fits(pattern))
            .map(|(_, hides)| *hides)
    }

    /// Whether the last rule for a name hides it, of those from `first` on. Packed files are judged by their inner
    /// name.
    fn name(&self, whole: &[u8], first: usize) -> bool {
        let mut name = whole;
        loop {
            if let Some(rule) = self.rule(name, first) {
                return rule.hides;
            }
            match split(name) {
                Some((rest, extension)) if is_addition(extension) => name = rest,
                _ => return is_backup(whole),
            }
        }
    }

    fn rule(&self, name: &[u8], first: usize) -> Option<Rule> {
        let extension = split(name).and_then(|(_, extension)| self.extensions.get(extension));
        let globs = self.globs.iter().filter(|(glob, _)| fits(glob, name));
        let globs = globs.map(|(_, rule)| rule);
        let all = self.names.get(name).into_iter().chain(extension);
        let all = all.chain(globs).filter(|rule| rule.number >= first);
        all.max().copied()
    }
}

/// The name as a file system may see it that ignores case, and dots and spaces at the end.
fn plain(step: &[u8]) -> Vec<u8> {
    let end = step.iter().rposition(|byte| !matches!(byte, b'.' | b' '));
    step[..end.map_or(step.len(), |end| end + 1)].to_ascii_lowercase()
}

/// The parts before and after the last dot.
fn split(name: &[u8]) -> Option<(&[u8], &[u8])> {
    let dot = name.iter().rposition(|&byte| byte == b'.')?;
    Some((&name[..dot], &name[dot + 1..]))
}

fn is_addition(extension: &[u8]) -> bool {
    let is_of_date = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
    PACKED.contains(&extension) || extension.iter().all(is_of_date)
}

/// Whether a name matches a pattern, in which `*` matches any bytes.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut in_name) = (0, 0);
    // The last star, and the position in the name up to which it matches.
    let mut star = None;
    while in_name < name.len() {
        if pattern.get(at) == Some(&b'*') {
            star = Some((at, in_name));
            at += 1;
        } else if pattern.get(at) == Some(&name[in_name]) {
            at += 1;
            in_name += 1;
        } else if let Some((of_star, taken)) = star {
            star = Some((of_star, taken + 1));
            at = of_star + 1;
            in_name = taken + 1;
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|&byte| byte == b'*')
}

fn check(pattern: &str) -> Result<(), &'static str> {
    let bare = pattern.strip_prefix('!').unwrap_or(pattern);
    let mut steps = bare.split('/');
    if bare.chars().all(|it| it == '/') {
        return Err("a name is missing, such as \"*.secret\" or \"/internal/\"");
    }
    if steps.any(|step| matches!(step, "." | "..")) {
        return Err("a path begins at the root of the site and has no \".\" or \"..\"");
    }
    if bare.chars().any(char::is_control) {
        return Err("there is a control character in it");
    }
    Ok(())
}

#[cfg(test)]
#[path = "hidden_tests.rs"]
mod tests;
