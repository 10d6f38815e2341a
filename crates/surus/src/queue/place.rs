//! Where the jobs of a server are, and the process that has them.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use surus_master::{Companion, JobCounts};

use crate::config::{App, Config};
use crate::environment::path_in as variable;
use crate::BOOT_FAILED;

/// The name of that process.
pub(crate) const NAME: &str = "queue";

/// The folder that is configured, or one for this site where programs keep their state: systemd's `StateDirectory`, /var/lib of root,
/// the XDG base directory of others.
///
/// Found once, before the master forks: its children may be another user, and must find the same one.
pub(crate) fn folder(app: &App) -> Result<PathBuf, String> {
    static FOUND: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    FOUND.get_or_init(|| find(app)).clone()
}

fn find(app: &App) -> Result<PathBuf, String> {
    if let Some(folder) = &app.queue_folder {
        return Ok(folder.clone());
    }
    // systemd separates several by colons.
    let given = variable("STATE_DIRECTORY").and_then(|all| {
        let all = all.to_str()?.to_owned();
        all.split(':').next().map(PathBuf::from)
    });
    let root = nix::unistd::Uid::effective().is_root();
    let own = || {
        variable("XDG_STATE_HOME")
            .or_else(|| Some(variable("HOME")?.join(".local/state")))
            .map(|folder| folder.join("surus"))
    };
    let folder = given
        .or_else(|| root.then(|| PathBuf::from("/var/lib/surus")))
        .or_else(own)
        .ok_or("there is no folder for jobs: set queue_folder of the application")?;
    Ok(folder.join(name(&app.source)))
}

/// The same, for programs that are told so.
pub(crate) fn folder_of(app: &App) -> Option<PathBuf> {
    folder(app).ok()
}

/// For people, and different for each site.
fn name(source: &Path) -> String {
    let last = source.file_name().unwrap_or_default().to_string_lossy();
    // FNV-1a: it must be the same in each version of this program.
    let mut sum: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in source.as_os_str().as_encoded_bytes() {
        sum = (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("queue-{last}-{:08x}", sum >> 32 ^ sum & 0xffff_ffff)
}

fn create(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
}

/// The process that has the jobs. It starts when the first one is pushed or awaited; with a configured folder, at once.
pub(crate) fn companion(config: &Config, counts: JobCounts) -> Companion<'_> {
    if let (Some(identity), Ok(folder)) = (&config.master.identity, folder(&config.app)) {
        // Only root may: the process itself is the workers' user.
        // The folders above are not that user's, who must pass through them.
        let above = folder.parent().map_or(Ok(()), fs::create_dir_all);
        let made = above.and_then(|()| create(&folder));
        if let Err(error) = made.and_then(|()| identity.own(&folder)) {
            tracing::warn!("{}: no folder for jobs: {error}", folder.display());
        }
    }
    Companion {
        name: NAME.to_owned(),
        // Programs beside the workers cannot ask for it.
        on_demand: config.app.queue_folder.is_none() && config.processes.is_empty(),
        outlives_workers: true,
        reloads: false,
        // Another owner has taken over, or it was told to end.
        always: false,
        run: Box::new(move || own(&config.app, counts)),
    }
}

/// In that process. Returns its exit code.
fn own(app: &App, counts: JobCounts) -> i32 {
    let wrong = match folder(app) {
        Err(error) => error,
        Ok(folder) => {
            let observe = |totals| counts.set(totals);
            let owned =
                create(&folder).and_then(|()| surus_queue::own(&folder, app.queue_size, &observe));
            match owned {
                Ok(_) => return 0,
                Err(error) => format!("{}: jobs cannot be kept: {error}", folder.display()),
            }
        }
    };
    surus_log::say!("{wrong}");
    i32::from(BOOT_FAILED)
}

#[cfg(test)]
mod tests {
    use super::name;
    use std::path::Path;

    #[test]
    fn each_site_has_a_name_that_stays() {
        let name = |path: &str| name(Path::new(path));
        assert_eq!(name("/srv/shop/app.php"), name("/srv/shop/app.php"));
        assert_ne!(name("/srv/shop/app.php"), name("/srv/blog/app.php"));
        assert!(name("/srv/shop/app.php").starts_with("queue-app.php-"));
    }
}
