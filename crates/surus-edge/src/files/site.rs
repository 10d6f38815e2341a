//! Resolves request paths to files or scripts, as nginx's `try_files $uri $uri/ /index.php` and php-fpm do.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::files::hidden::Verdict;
use crate::files::path::{encode, normalise};
use crate::{FileSystem, Hidden, Kind, Stat};

/// A classic site: a folder of scripts and files.
#[derive(Clone, Debug)]
pub struct Site {
    /// Without symbolic links, so that the paths of scripts can be compared with it.
    root: PathBuf,
    /// The file name of the front controller, also the first choice for a directory's index.
    front: String,
    hidden: Hidden,
}

/// A script to run, in the terms of CGI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptPath {
    /// `SCRIPT_FILENAME`
    pub filename: PathBuf,
    /// `SCRIPT_NAME`: the script's path below the root, decoded, with a leading slash.
    pub name: Vec<u8>,
    /// `PATH_INFO`: what follows the script's name in the path, decoded.
    pub path_info: Option<Vec<u8>>,
}

/// The result of resolving a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// A script to be run.
    Script(ScriptPath),
    /// A file to be sent.
    File {
        /// Below the site's root.
        path: PathBuf,
        /// Its metadata.
        stat: Stat,
    },
    /// A redirect to the same path with a slash at the end, encoded; the caller appends the query.
    Redirect(String),
    /// 404.
    NotFound,
    /// The path is invalid: 400.
    Refused,
}

impl Site {
    /// `front` is the front controller's file name, `index.php` unless a script of another name is served.
    pub fn new(root: &Path, front: &str) -> io::Result<Self> {
        let root = std::fs::canonicalize(root)?;
        if !root.is_dir() {
            return Err(io::Error::new(io::ErrorKind::NotADirectory, "not a folder"));
        }
        Ok(Site {
            root,
            front: front.to_owned(),
            hidden: Hidden::default(),
        })
    }

    /// The same site with other rules for hidden files.
    #[must_use]
    pub fn hiding(self, hidden: &Hidden) -> Self {
        Site {
            hidden: hidden.clone(),
            ..self
        }
    }

    /// `DOCUMENT_ROOT`
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Resolves the path of a request target as it was sent, without its query.
    pub fn resolve(&self, fs: &impl FileSystem, raw: &str) -> Resolution {
        let Ok(path) = normalise(raw) else {
            return Resolution::Refused;
        };
        if let Some(resolution) = self.named_script(fs, &path) {
            return resolution;
        }
        let file = self.below_root(&path);
        let found = fs.stat(&file);
        let is_folder = found.is_some_and(|stat| stat.kind == Kind::Directory);
        let mut judged = path.clone();
        if is_folder && !path.ends_with(b"/") {
            judged.push(b'/');
        }
        if self.hides(fs, &judged, false) {
            // As if it did not exist. No application has routes that begin with a dot.
            if is_dotted(&path) {
                return Resolution::NotFound;
            }
        } else if is_folder {
            if let Some(resolution) = self.directory(fs, judged, &path) {
                return resolution;
            }
        } else if let Some(stat) = found.filter(|_| !path.ends_with(b"/")) {
            // A name with a slash at the end is not that of a file.
            return Resolution::File { path: file, stat };
        }
        self.script(fs, format!("/{}", self.front).into_bytes(), None)
            .unwrap_or(Resolution::NotFound)
    }

    /// The file of a request path, for a folder of files only: scripts are neither run nor sent.
    pub fn file(&self, fs: &impl FileSystem, raw: &str) -> Option<PathBuf> {
        let mut path = normalise(raw).ok()?;
        if path.ends_with(b"/") {
            path.extend_from_slice(b"index.html");
        }
        if self.hides(fs, &path, false) {
            return None;
        }
        let file = self.below_root(&path);
        let stat = fs.stat(&file)?;
        (stat.kind == Kind::File).then_some(file)
    }

    /// A path that names a `.php` file: the script, or `NotFound`. Everything after its name is PATH_INFO. `None` for
    /// paths that name no script.
    fn named_script(&self, fs: &impl FileSystem, path: &[u8]) -> Option<Resolution> {
        let mut end = 0;
        while end < path.len() {
            end = path[end + 1..]
                .iter()
                .position(|&byte| byte == b'/')
                .map_or(path.len(), |next| end + 1 + next);
            let (name, rest) = path.split_at(end);
            if !name.ends_with(b".php") {
                continue;
            }
            if self.hides(fs, name, true) {
                return Some(Resolution::NotFound);
            }
            if fs
                .stat(&self.below_root(name))
                .is_some_and(|stat| stat.kind == Kind::Directory)
            {
                continue;
            }
            let path_info = (!rest.is_empty()).then(|| rest.to_vec());
            return Some(
                self.script(fs, name.to_vec(), path_info)
                    .unwrap_or(Resolution::NotFound),
            );
        }
        None
    }

    /// The index of a directory, or a redirect to its name with a slash. `None` if it has no index.
    fn directory(
        &self,
        fs: &impl FileSystem,
        directory: Vec<u8>,
        path: &[u8],
    ) -> Option<Resolution> {
        for index in [self.front.as_str(), "index.php", "index.html"] {
            let mut name = directory.clone();
            name.extend_from_slice(index.as_bytes());
            let file = self.below_root(&name);
            let Some(stat) = fs.stat(&file).filter(|stat| stat.kind == Kind::File) else {
                continue;
            };
            let is_page = index == "index.html";
            if self.hides(fs, &name, !is_page) {
                continue;
            }
            let resolution = if is_page {
                Some(Resolution::File { path: file, stat })
            } else {
                self.script(fs, name, None)
            };
            if resolution.is_some() {
                return if path.ends_with(b"/") {
                    resolution
                } else {
                    Some(Resolution::Redirect(encode(&directory)))
                };
            }
        }
        None
    }

    /// The script of that name, if it is a file and lies under the root: a link in an upload folder must not make PHP
    /// run a file from elsewhere. (Links of static files may lead anywhere, as with nginx: Debian's WordPress links its
    /// JavaScript to /usr/share/javascript, Laravel its uploads to storage/.)
    fn script(
        &self,
        fs: &impl FileSystem,
        name: Vec<u8>,
        path_info: Option<Vec<u8>>,
    ) -> Option<Resolution> {
        let filename = self.below_root(&name);
        fs.stat(&filename).filter(|stat| stat.kind == Kind::File)?;
        if !fs.real_path(&filename)?.starts_with(&self.root) {
            return None;
        }
        Some(Resolution::Script(ScriptPath {
            filename,
            name,
            path_info,
        }))
    }

    fn hides(&self, fs: &impl FileSystem, path: &[u8], is_script: bool) -> bool {
        match self.hidden.judge(path, is_script) {
            Verdict::Served => false,
            Verdict::Hidden => true,
            Verdict::OfProject => fs.stat(&self.root.join("composer.json")).is_some(),
        }
    }

    fn below_root(&self, path: &[u8]) -> PathBuf {
        self.root.join(OsStr::from_bytes(&path[1..]))
    }
}

/// True if a segment starts with a dot, as in `.env` and `.git/config`, except `.well-known` (RFC 8615).
fn is_dotted(path: &[u8]) -> bool {
    let path = path.strip_prefix(b"/.well-known/").unwrap_or(path);
    path.first() == Some(&b'.') || path.windows(2).any(|pair| pair == b"/.")
}

#[cfg(test)]
#[path = "site_tests.rs"]
mod tests;
