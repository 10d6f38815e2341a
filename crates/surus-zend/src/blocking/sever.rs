//! Ends the connection of a descriptor whose wait was interrupted, for all its users.
//!
//! A query was sent and its response is still to come. The next user of the connection would take it for the response
//! to another query. So the connection is closed here, whatever its protocol, and received bytes are discarded: its
//! driver sees the same as when a server disconnects.
//!
//! | descriptor | when a wait on it is interrupted |
//! |---|---|
//! | connected stream socket, also one that is still connecting | shut down |
//! | socket pair (`socketpair(2)`): both ends are of this process or a child; libraries wake up with it | unchanged |
//! | listening socket, datagrams | unchanged: each connection, each datagram is independent |
//! | pipe, FIFO | unchanged: one direction, no queries; that of a program ends with its process |
//! | anything else (files, `eventfd`, `signalfd`, …) | unchanged |

use std::{ffi::c_int, mem::MaybeUninit, os::fd::RawFd};

use super::{
    descriptor::option,
    real::{errno, real, set_errno},
    registered::is_unknown,
};
use crate::ffi;

/// Ends the conversation on a descriptor; true if it had one. `errno` is unchanged.
pub(crate) fn sever(fd: RawFd) -> bool {
    let before = errno();
    let is_one = is_conversation(fd);
    if is_one {
        // SAFETY: a plain system call. It fails where the connection has ended already.
        unsafe { libc::shutdown(fd, libc::SHUT_RDWR) };
        is_unknown(fd); // the event loop will tell, but not before its next turn
        discard(fd);
    }
    set_errno(before);
    is_one
}

#[no_mangle]
extern "C" fn surus_rs_sever(fd: c_int) {
    sever(fd);
}

#[no_mangle]
extern "C" fn surus_rs_is_conversation(fd: c_int) -> bool {
    let before = errno();
    let is_one = is_conversation(fd);
    set_errno(before);
    is_one
}

/// Severs each of them; true if one had a conversation.
pub(crate) fn sever_all(descriptors: impl Iterator<Item = RawFd>) -> bool {
    descriptors.filter(|fd| sever(*fd)).count() > 0
}

/// Whether the running request must end, so that the interrupted call must not start anything new: libraries try again.
pub(crate) fn is_over() -> bool {
    // SAFETY: on a PHP stack it reads the task; elsewhere there is none.
    unsafe { ffi::surus_is_over() }
}

/// Whether it is a stream to a peer that answers.
pub(crate) fn is_conversation(fd: RawFd) -> bool {
    let kind = option(fd, libc::SOL_SOCKET, libc::SO_TYPE);
    matches!(kind, Some(libc::SOCK_STREAM | libc::SOCK_SEQPACKET))
        && option(fd, libc::SOL_SOCKET, libc::SO_ACCEPTCONN) == Some(0)
        && !is_pair(fd)
}

/// Discards received bytes: they could still be read after a shutdown.
fn discard(fd: RawFd) {
    type Recv = unsafe extern "C" fn(c_int, *mut libc::c_void, usize, c_int) -> isize;
    let recv = real!(recv: Recv);
    let mut room = [MaybeUninit::<u8>::uninit(); 16 * 1024];
    // SAFETY: `room` has room for this number of bytes, which nobody reads.
    while unsafe { recv(fd, room.as_mut_ptr().cast(), room.len(), libc::MSG_DONTWAIT) } > 0 {}
}

type NameOf = unsafe extern "C" fn(c_int, *mut libc::sockaddr, *mut libc::socklen_t) -> c_int;

/// Whether it is a Unix socket without a name on either side: no server has created it.
fn is_pair(fd: RawFd) -> bool {
    let unnamed = |name_of: NameOf| {
        let mut address = MaybeUninit::<libc::sockaddr_storage>::zeroed();
        let mut size = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        // SAFETY: `address` has room for `size` bytes, and zeros are one.
        let (result, family) = unsafe {
            let result = name_of(fd, address.as_mut_ptr().cast(), &mut size);
            (result, address.assume_init_ref().ss_family)
        };
        result == 0
            && c_int::from(family) == libc::AF_UNIX
            && size as usize <= size_of::<libc::sa_family_t>()
    };
    unnamed(libc::getsockname) && unnamed(libc::getpeername)
}

#[cfg(test)]
mod tests {
    use std::{
        io::{self, Read, Write},
        net::{TcpListener, TcpStream, UdpSocket},
        os::{
            fd::AsRawFd,
            unix::net::{UnixListener, UnixStream},
        },
    };

    use super::{is_conversation, sever};

    fn connected() -> io::Result<(TcpStream, TcpStream)> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let near = TcpStream::connect(listener.local_addr()?)?;
        Ok((near, listener.accept()?.0))
    }

    #[test]
    fn nothing_is_read_from_a_severed_connection() -> io::Result<()> {
        let (mut near, mut far) = connected()?;
        far.write_all(b"an answer that has come")?;
        near.peek(&mut [0])?;
        assert!(sever(near.as_raw_fd()));
        // The other side may notice it immediately or a little later.
        let _ = far.write_all(b"an answer that is late");
        let mut text = Vec::new();
        let _ = near.read_to_end(&mut text);
        assert_eq!(text, b"");
        assert!(near.write(b"a question").is_err());
        Ok(())
    }

    #[test]
    fn what_is_no_conversation_is_left() -> io::Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        assert!(!sever(listener.as_raw_fd()));
        let datagrams = UdpSocket::bind("127.0.0.1:0")?;
        datagrams.connect(datagrams.local_addr()?)?;
        assert!(!sever(datagrams.as_raw_fd()));
        let (mut one, mut other) = UnixStream::pair()?;
        assert!(!sever(one.as_raw_fd()));
        one.write_all(b"x")?;
        other.read_exact(&mut [0])?;
        assert!(!sever(-1));
        assert!(!sever(io::stdin().as_raw_fd()) || is_conversation(0));
        Ok(())
    }

    #[test]
    fn a_connection_to_a_named_unix_socket_is_one() -> io::Result<()> {
        let folder = std::env::temp_dir().join(format!("sever-{}", std::process::id()));
        let listener = UnixListener::bind(&folder)?;
        let near = UnixStream::connect(&folder)?;
        let (mut far, _) = listener.accept()?;
        std::fs::remove_file(&folder)?;
        assert!(is_conversation(near.as_raw_fd()) && is_conversation(far.as_raw_fd()));
        assert!(sever(near.as_raw_fd()));
        assert_eq!(far.read(&mut [0])?, 0);
        Ok(())
    }
}
