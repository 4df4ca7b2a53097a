//! Listeners: opens the sockets of a door.
//!
//! A door on TCP may be opened several times, one socket for each thread: the kernel then spreads the connections among
//! them, and no thread ever waits for another. A Unix socket has no such thing, and needs none: it belongs to one machine.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::sync::Arc;

use socket2::{Domain, Protocol, Socket, Type};

use crate::door::{Door, OpenError};
use crate::settings::Identity;
use crate::socket_file::SocketFile;

/// Connections that wait to be taken.
const BACKLOG: i32 = 1_024;

/// A socket that listens, and how it is known there who calls.
#[derive(Debug)]
pub struct Listener {
    pub(crate) socket: Listening,
    pub(crate) identity: Arc<Identity>,
}

#[derive(Debug)]
pub(crate) enum Listening {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
}

impl Door {
    /// Opens it, with one socket for each of so many threads. A Unix socket is always one.
    ///
    /// # Errors
    /// When the operating system refuses, when something else is there already, or when nobody could ever be known.
    pub fn open(&self, identity: Identity, threads: usize) -> Result<Vec<Listener>, OpenError> {
        let identity = Arc::new(identity);
        let listen = |source| OpenError::Listen { door: self.clone(), source };
        let sockets = match self {
            Self::Tcp(address) => open_tcp(*address, None, threads).map_err(listen)?,
            Self::Interface { name, address } => open_tcp(*address, Some(name), threads).map_err(listen)?,
            Self::Unix { path, .. } if *identity == Identity::Address => {
                return Err(OpenError::NoAddresses { path: path.clone() });
            }
            Self::Unix { path, mode } => {
                let (listener, file) = SocketFile::create(path, *mode, listen)?;
                vec![Listening::Unix(listener, file)]
            }
        };
        let listener = |socket| Listener { socket, identity: Arc::clone(&identity) };
        Ok(sockets.into_iter().map(listener).collect())
    }
}

impl Listener {
    /// The address, with the port that was found to be free; none for a Unix socket.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.socket {
            Listening::Tcp(listener) => listener.local_addr().ok(),
            Listening::Unix(..) => None,
        }
    }
}

fn open_tcp(address: SocketAddr, interface: Option<&str>, threads: usize) -> io::Result<Vec<Listening>> {
    if threads > 1 && address.port() != 0 {
        // Sockets that share a port would share it with another server too; one that does not share finds out.
        bind(address, interface, Sharing::Alone)?;
    }
    let sharing = if threads > 1 { Sharing::Port } else { Sharing::Alone };
    let first = listen(address, interface, sharing)?;
    // Whoever asked for a free port got one: the others share it.
    let address = first.local_addr()?;
    let others = (1..threads).map(|_| listen(address, interface, sharing));
    let sockets = std::iter::once(Ok(first)).chain(others);
    sockets.map(|socket| socket.map(Listening::Tcp)).collect()
}

/// Whether other sockets may listen on the same port.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sharing {
    Alone,
    Port,
}

fn listen(address: SocketAddr, interface: Option<&str>, sharing: Sharing) -> io::Result<TcpListener> {
    let socket = bind(address, interface, sharing)?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

fn bind(address: SocketAddr, interface: Option<&str>, sharing: Sharing) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_reuse_address(true)?;
    if sharing == Sharing::Port {
        socket.set_reuse_port(true)?;
    }
    // Connections inherit it: none of them has to ask for it.
    socket.set_tcp_nodelay(true)?;
    if let Some(interface) = interface {
        bind_to_interface(&socket, interface)?;
    }
    socket.bind(&address.into())?;
    Ok(socket)
}

#[cfg(target_os = "linux")]
fn bind_to_interface(socket: &Socket, interface: &str) -> io::Result<()> {
    socket.bind_device(Some(interface.as_bytes()))
}

#[cfg(not(target_os = "linux"))]
fn bind_to_interface(_: &Socket, _: &str) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(address: &str, threads: usize) -> Result<Vec<Listener>, OpenError> {
        Door::Tcp(address.parse().expect("an address")).open(Identity::Address, threads)
    }

    #[test]
    fn one_port_is_found_for_all_threads() {
        let listeners = open("127.0.0.1:0", 3).expect("a free port");
        let addresses: Vec<_> = listeners.iter().map(Listener::address).collect();
        assert_eq!(addresses.len(), 3);
        assert!(addresses[0].is_some_and(|address| address.port() != 0));
        assert!(addresses.iter().all(|address| *address == addresses[0]));
    }

    #[test]
    fn a_port_is_not_shared_with_another_server() {
        for (first, second) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
            let listeners = open("127.0.0.1:0", first).expect("a free port");
            let taken = listeners[0].address().expect("an address").to_string();
            let problem = open(&taken, second).expect_err("somebody listens there");
            assert_eq!(problem.to_string(), format!("cannot listen: {taken}"));
        }
    }

    #[test]
    fn a_connection_sends_at_once_without_being_told() {
        let listeners = open("127.0.0.1:0", 1).expect("a free port");
        let Listening::Tcp(listener) = &listeners[0].socket else { panic!("a TCP listener") };
        listener.set_nonblocking(false).expect("an open socket");
        let _caller = std::net::TcpStream::connect(listener.local_addr().expect("an address"));
        let (stream, _) = listener.accept().expect("a connection");
        assert!(stream.nodelay().expect("an open socket"));
    }

    #[test]
    fn an_interface_that_is_not_there_is_told() {
        let address = "127.0.0.1:0".parse().expect("an address");
        let door = Door::Interface { name: "no-such-cable".to_owned(), address };
        let problem = door.open(Identity::Machine("m".to_owned()), 1).expect_err("no such interface");
        assert_eq!(problem.to_string(), "cannot listen: 127.0.0.1:0 on no-such-cable");
    }

    #[test]
    fn callers_of_a_unix_socket_need_another_identity_than_an_address() {
        let door = Door::Unix { path: "s".into(), mode: 0o660 };
        let problem = door.open(Identity::Address, 1).expect_err("nobody could be known");
        assert!(problem.to_string().starts_with("callers of a Unix socket have no address: s\n  hint: "));
    }
}
