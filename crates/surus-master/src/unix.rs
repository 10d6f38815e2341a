//! Unix sockets to listen on. All workers accept from the same one: there is no SO_REUSEPORT for these.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;

use socket2::{Domain, SockAddr, Socket, Type};

/// As with nginx: everybody with access to the folder may connect, as everybody on this machine may to a port.
const MODE: u32 = 0o666;

/// Listens on this path. Replaces a socket that a server has left behind.
pub(crate) fn listen(path: &Path, backlog: i32) -> io::Result<Socket> {
    if is_left_behind(path)? {
        fs::remove_file(path)?;
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    fs::set_permissions(path, fs::Permissions::from_mode(MODE))?;
    socket.listen(backlog)?;
    Ok(socket)
}

/// Checks whether this path could be bound now, without listening.
pub(crate) fn probe(path: &Path) -> io::Result<()> {
    SockAddr::unix(path)?;
    is_left_behind(path)?;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    match fs::metadata(folder.unwrap_or(Path::new("."))) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(io::ErrorKind::NotADirectory.into()),
        Err(error) => Err(error),
    }
}

/// Whether there is a socket that nobody listens on.
fn is_left_behind(path: &Path) -> io::Result<bool> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        found => found?,
    };
    if !found.file_type().is_socket() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(true),
        // Somebody listens: perhaps it is busy, or belongs to another user.
        Ok(_) => Err(io::ErrorKind::AddrInUse.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(_) => Err(io::ErrorKind::AddrInUse.into()),
    }
}

/// Device and inode of the file, to distinguish it from one with which another server has replaced it.
pub(crate) fn file(path: &Path) -> Option<(u64, u64)> {
    let found = fs::symlink_metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_behind_is_replaced_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        probe(&path).unwrap();
        let first = listen(&path, 8).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, MODE);
        for error in [probe(&path).unwrap_err(), listen(&path, 8).unwrap_err()] {
            assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        }
        let before = file(&path);
        drop(first);
        probe(&path).unwrap();
        let _second = listen(&path, 8).unwrap();
        assert!(before.is_some() && file(&path).is_some());

        let other = folder.path().join("file");
        fs::write(&other, "mine").unwrap();
        for error in [probe(&other).unwrap_err(), listen(&other, 8).unwrap_err()] {
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        }
        assert_eq!(fs::read(&other).unwrap(), b"mine");
        let nowhere = folder.path().join("none/a.sock");
        assert_eq!(probe(&nowhere).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
