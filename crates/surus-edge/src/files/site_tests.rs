use std::collections::HashMap;
use std::time::SystemTime;

use super::*;

/// A file system in memory, rooted at /srv. Names with a slash at the end are directories; a name may be a link to a
/// real path.
struct Memory {
    stats: HashMap<PathBuf, Kind>,
    links: HashMap<PathBuf, PathBuf>,
}

impl Memory {
    fn new(names: &[&str]) -> Self {
        let mut stats = HashMap::from([(PathBuf::from("/srv"), Kind::Directory)]);
        for name in names {
            let kind = if name.ends_with('/') {
                Kind::Directory
            } else {
                Kind::File
            };
            let path = Path::new("/srv").join(name.trim_end_matches('/'));
            for parent in path
                .ancestors()
                .skip(1)
                .take_while(|parent| parent.starts_with("/srv"))
            {
                stats.entry(parent.to_path_buf()).or_insert(Kind::Directory);
            }
            stats.insert(path, kind);
        }
        Memory {
            stats,
            links: HashMap::new(),
        }
    }

    fn link(mut self, name: &str, target: &str) -> Self {
        self.links
            .insert(Path::new("/srv").join(name), PathBuf::from(target));
        self
    }

    fn resolve(&self, path: &str) -> Resolution {
        Site {
            root: "/srv".into(),
            front: "index.php".into(),
            hidden: Hidden::default(),
        }
        .resolve(self, path)
    }
}

impl FileSystem for Memory {
    fn stat(&self, path: &Path) -> Option<Stat> {
        // Components, not bytes: a real file system takes /srv/ and /srv for the same.
        let path: PathBuf = path.components().collect();
        self.stats.get(&path).map(|&kind| Stat {
            kind,
            length: 3,
            modified: SystemTime::UNIX_EPOCH,
        })
    }

    fn real_path(&self, path: &Path) -> Option<PathBuf> {
        self.stat(path)?;
        Some(
            self.links
                .get(path)
                .cloned()
                .unwrap_or_else(|| path.to_path_buf()),
        )
    }
}

fn script(name: &str, path_info: Option<&str>) -> Resolution {
    Resolution::Script(ScriptPath {
        filename: Path::new("/srv").join(&name[1..]),
        name: name.into(),
        path_info: path_info.map(Into::into),
    })
}

fn file(name: &str) -> Resolution {
    let stat = Stat {
        kind: Kind::File,
        length: 3,
        modified: SystemTime::UNIX_EPOCH,
    };
    Resolution::File {
        path: Path::new("/srv").join(name),
        stat,
    }
}

#[test]
fn a_file_is_static() {
    let site = Memory::new(&["index.php", "css/a b.css"]);
    assert_eq!(site.resolve("/css/a%20b.css"), file("css/a b.css"));
    assert_eq!(site.resolve("//css/./a%20b.css"), file("css/a b.css"));
}

#[test]
fn a_script_is_run() {
    let site = Memory::new(&["index.php", "admin/tool.php"]);
    assert_eq!(
        site.resolve("/admin/tool.php"),
        script("/admin/tool.php", None)
    );
    assert_eq!(site.resolve("/index.php"), script("/index.php", None));
    assert_eq!(
        site.resolve("/admin/tool%2Ephp"),
        script("/admin/tool.php", None)
    );
}

#[test]
fn what_follows_a_script_is_path_info() {
    let site = Memory::new(&["index.php", "a.php/b.php"]);
    assert_eq!(
        site.resolve("/index.php/foo/bar"),
        script("/index.php", Some("/foo/bar"))
    );
    assert_eq!(site.resolve("/index.php/"), script("/index.php", Some("/")));
    assert_eq!(
        site.resolve("/index.php/a%20b.php"),
        script("/index.php", Some("/a b.php"))
    );
    assert_eq!(
        site.resolve("/index.php/.x"),
        script("/index.php", Some("/.x"))
    );
    assert_eq!(
        site.resolve("/a.php/b.php/c"),
        script("/a.php/b.php", Some("/c"))
    );
}

#[test]
fn a_directory_is_served_by_its_index() {
    let site = Memory::new(&[
        "index.php",
        "blog/index.php",
        "docs/index.html",
        "both/index.php",
        "both/index.html",
    ]);
    assert_eq!(site.resolve("/"), script("/index.php", None));
    assert_eq!(site.resolve("/blog/"), script("/blog/index.php", None));
    assert_eq!(site.resolve("/docs/"), file("docs/index.html"));
    assert_eq!(site.resolve("/both/"), script("/both/index.php", None));
}

#[test]
fn a_directory_without_its_slash_is_redirected() {
    let site = Memory::new(&["index.php", "blog/index.php", "my docs/index.html"]);
    assert_eq!(site.resolve("/blog"), Resolution::Redirect("/blog/".into()));
    assert_eq!(
        site.resolve("//blog"),
        Resolution::Redirect("/blog/".into())
    );
    assert_eq!(
        site.resolve("/my%20docs"),
        Resolution::Redirect("/my%20docs/".into())
    );
}

#[test]
fn everything_else_goes_to_the_front_controller() {
    let site = Memory::new(&["index.php", "style.css", "empty/"]);
    assert_eq!(site.resolve("/users/7"), script("/index.php", None));
    assert_eq!(site.resolve("/empty/"), script("/index.php", None));
    assert_eq!(site.resolve("/empty"), script("/index.php", None));
    assert_eq!(site.resolve("/style.css/"), script("/index.php", None));
    assert_eq!(site.resolve("/caf%E9"), script("/index.php", None));
}

#[test]
fn another_front_controller() {
    let site = Site {
        root: "/srv".into(),
        front: "app.php".into(),
        hidden: Hidden::default(),
    };
    let fs = Memory::new(&["app.php", "index.php"]);
    assert_eq!(site.resolve(&fs, "/"), script("/app.php", None));
    assert_eq!(site.resolve(&fs, "/x"), script("/app.php", None));
    assert_eq!(site.resolve(&fs, "/index.php"), script("/index.php", None));
}

#[test]
fn without_a_front_controller_it_is_404() {
    let site = Memory::new(&["a.txt", "empty/"]);
    assert_eq!(site.resolve("/"), Resolution::NotFound);
    assert_eq!(site.resolve("/b.txt"), Resolution::NotFound);
    assert_eq!(site.resolve("/empty"), Resolution::NotFound);
}

#[test]
fn a_missing_script_is_404() {
    let site = Memory::new(&["index.php"]);
    assert_eq!(site.resolve("/nope.php"), Resolution::NotFound);
    assert_eq!(site.resolve("/nope.php/x"), Resolution::NotFound);
}

#[test]
fn dot_files_are_404() {
    let site = Memory::new(&[
        "index.php",
        ".env",
        ".git/config",
        "a/.htaccess",
        ".hidden/x.php",
        ".x.php",
        ".well-known/acme/token",
        ".well-known/.x",
    ]);
    for path in [
        "/.env",
        "/%2eenv",
        "/.git/config",
        "/a/.htaccess",
        "/.git/",
        "/.nope",
        "/.hidden/x.php",
        "/.x.php",
        "/.well-known/.x",
    ] {
        assert_eq!(site.resolve(path), Resolution::NotFound, "{path}");
    }
    assert_eq!(
        site.resolve("/.well-known/acme/token"),
        file(".well-known/acme/token")
    );
    assert_eq!(
        site.resolve("/.well-known/webfinger"),
        script("/index.php", None)
    );
}

#[test]
fn paths_that_are_none_are_refused() {
    let site = Memory::new(&["index.php"]);
    for path in [
        "/../etc/passwd",
        "/%2e%2e/x",
        "/a%00",
        "/index.php%00.txt",
        "/index.php/../x",
        "/%zz",
        "*",
        "",
    ] {
        assert_eq!(site.resolve(path), Resolution::Refused, "{path}");
    }
}

#[test]
fn scripts_outside_the_root_are_refused_static_files_are_not() {
    let site = Memory::new(&["index.php", "evil.php", "inner.php", "a.js"])
        .link("evil.php", "/home/eve/evil.php")
        .link("inner.php", "/srv/index.php")
        .link("a.js", "/usr/share/a.js");
    assert_eq!(site.resolve("/evil.php"), Resolution::NotFound);
    assert_eq!(site.resolve("/evil.php/x"), Resolution::NotFound);
    assert_eq!(site.resolve("/inner.php"), script("/inner.php", None));
    assert_eq!(site.resolve("/a.js"), file("a.js"));
    let neighbour = Memory::new(&["index.php"]).link("index.php", "/srv2/index.php");
    assert_eq!(neighbour.resolve("/"), Resolution::NotFound);
}

#[test]
fn source_is_never_sent() {
    let names = ["a.PHP", "b.phtml", "c.phar", "d.php5", "e.txt"];
    let site = Memory::new(&names);
    for path in ["/a.PHP", "/b.phtml", "/c.phar", "/d.php5"] {
        assert_eq!(site.resolve(path), Resolution::NotFound, "{path}");
    }
    assert_eq!(site.resolve("/e.txt"), file("e.txt"));
}

/// Hidden files are treated as missing: a front controller may have routes with any name.
#[test]
fn what_is_hidden_is_not_there() {
    let names = [
        "surus.toml",
        "dump.sql.gz",
        "site.bak/index.html",
        "docs/package.json/index.html",
        "vendor/a.js",
        "vendor/b/index.php",
        "plugin/vendor/a.js",
    ];
    let without = Memory::new(&names);
    let with = Memory::new(&[&names[..], &["index.php"]].concat());
    for path in ["/surus.toml", "/dump.sql.gz", "/site.bak/", "/site.bak"] {
        assert_eq!(without.resolve(path), Resolution::NotFound, "{path}");
        assert_eq!(with.resolve(path), script("/index.php", None), "{path}");
    }
    let redirect = Resolution::Redirect("/docs/package.json/".into());
    assert_eq!(with.resolve("/docs/package.json"), redirect);
    assert_eq!(with.resolve("/vendor/a.js"), file("vendor/a.js"));
    assert_eq!(
        with.resolve("/vendor/b/"),
        script("/vendor/b/index.php", None)
    );

    let project = Memory::new(&[&names[..], &["index.php", "composer.json"]].concat());
    for path in ["/vendor/a.js", "/vendor/b/", "/vendor/b", "/vendor/"] {
        assert_eq!(project.resolve(path), script("/index.php", None), "{path}");
    }
    assert_eq!(project.resolve("/vendor/b/index.php"), Resolution::NotFound);
    assert_eq!(
        project.resolve("/plugin/vendor/a.js"),
        file("plugin/vendor/a.js")
    );
    let path = "/index.php/vendor/a.sql";
    assert_eq!(
        project.resolve(path),
        script("/index.php", Some("/vendor/a.sql"))
    );
}
