//! The user and group that workers run as.

use std::ffi::CString;
use std::io;

use nix::sys::prctl;
use nix::unistd::{initgroups, setgid, setuid, Gid, Group, Uid, User};

/// A user, with the groups that it is in.
#[derive(Clone, Debug)]
pub struct Identity {
    name: CString,
    user: Uid,
    group: Gid,
}

impl Identity {
    /// Looks both up; the group is the user's own unless it is named. The message says what there is not.
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

    /// The user's.
    pub fn name(&self) -> &str {
        self.name.to_str().unwrap_or_default()
    }

    /// For good. Groups first: afterwards nobody could.
    pub(crate) fn assume(&self) -> io::Result<()> {
        if Uid::effective().is_root() {
            initgroups(&self.name, self.group)?;
            setgid(self.group)?;
            setuid(self.user)?;
            // Else /proc/self would be root's.
            prctl::set_dumpable(true)?;
        }
        Ok(())
    }
}
