//! The user and group that workers run as.

use std::ffi::CString;
use std::io;

use nix::sys::prctl;
use nix::unistd::{initgroups, setgid, setuid, Gid, Group, Uid, User};

/// A user with its groups.
#[derive(Clone, Debug)]
pub struct Identity {
    name: CString,
    user: Uid,
    group: Gid,
}

impl Identity {
    /// Looks up both; without `group` it is the user's own. The error says what does not exist.
    pub fn find(user: &str, group: Option<&str>) -> Result<Self, String> {
        let found = User::from_name(user)
            .map_err(|error| error.to_string())?
            .ok_or_else(|| format!("there is no user {user:?}"))?;
        let group = match group {
            None => found.gid,
            Some(name) => {
                Group::from_name(name)
                    .map_err(|error| error.to_string())?
                    .ok_or_else(|| format!("there is no group {name:?}"))?
                    .gid
            }
        };
        if !Uid::effective().is_root() && Uid::effective() != found.uid {
            return Err(format!("only root can run workers as {user:?}"));
        }
        Ok(Identity {
            name: CString::new(user).map_err(|error| error.to_string())?,
            user: found.uid,
            group,
        })
    }

    /// The name of the user.
    pub fn name(&self) -> &str {
        self.name.to_str().unwrap_or_default()
    }

    /// Gives this file or folder to the user.
    pub fn own(&self, path: &std::path::Path) -> io::Result<()> {
        Ok(nix::unistd::chown(path, Some(self.user), Some(self.group))?)
    }

    /// Becomes this user permanently. Groups first: afterwards that is not permitted.
    pub(crate) fn assume(&self) -> io::Result<()> {
        if Uid::effective().is_root() {
            initgroups(&self.name, self.group)?;
            setgid(self.group)?;
            setuid(self.user)?;
            // Otherwise /proc/self would belong to root.
            prctl::set_dumpable(true)?;
        }
        Ok(())
    }
}
