//! Listeners: opens the sockets of a listen address.
//!
//! A TCP address may be opened several times, one socket per thread: the kernel spreads connections among them, and no
//! thread waits for another. A Unix socket belongs to one machine and is opened once.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::sync::Arc;

use socket2::{Domain, Protocol, Socket, Type};

use crate::listen_address::{ListenAddress, ListenError};
use crate::settings::Identity;
use crate::socket_file::SocketFile;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 1_024;

/// A listening socket, and the way in which it identifies callers.
#[derive(Debug)]
pub struct Listener {
    pub(crate) socket: BoundSocket,
    pub(crate) identity: Arc<Identity>,
}

#[derive(Debug)]
pub(crate) enum BoundSocket {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
}

impl ListenAddress {
    /// Opens one socket per thread; a Unix socket is always one.
    ///
    /// # Errors
    /// Fails if the operating system refuses, the address is in use, or callers could not be identified.
    pub fn open(&self, identity: Identity, threads: usize) -> Result<Vec<Listener>, ListenError> {
        let identity = Arc::new(identity);
        let listen = |source| ListenError::Listen { address: self.clone(), source };
        let sockets = match self {
            Self::Tcp(address) => open_tcp(*address, None, threads).map_err(listen)?,
            Self::Interface { name, address } => open_tcp(*address, Some(name), threads).map_err(listen)?,
            Self::Unix { path, .. } if matches!(*identity, Identity::Address { .. }) => {
                return Err(ListenError::NoAddresses { path: path.clone() });
            }
            Self::Unix { path, mode } => {
                let (listener, file) = SocketFile::create(path, *mode, listen)?;
                vec![BoundSocket::Unix(listener, file)]
            }
        };
        let listener = |socket| Listener { socket, identity: Arc::clone(&identity) };
        Ok(sockets.into_iter().map(listener).collect())
    }
}

impl Listener {
    /// Address with the port that was assigned; `None` for a Unix socket.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.socket {
            BoundSocket::Tcp(listener) => listener.local_addr().ok(),
            BoundSocket::Unix(..) => None,
        }
    }
}

fn open_tcp(address: SocketAddr, interface: Option<&str>, threads: usize) -> io::Result<Vec<BoundSocket>> {
    if threads > 1 && address.port() != 0 {
        // Sockets with a shared port would also share it with another server. Binding without sharing detects that.
        bind(address, interface, PortSharing::Alone)?;
    }
    let sharing = if threads > 1 { PortSharing::Port } else { PortSharing::Alone };
    let first = listen(address, interface, sharing)?;
    // With port 0 the first socket gets a free port, which the others share.
    let address = first.local_addr()?;
    let others = (1..threads).map(|_| listen(address, interface, sharing));
    let sockets = std::iter::once(Ok(first)).chain(others);
    sockets.map(|socket| socket.map(BoundSocket::Tcp)).collect()
}

/// Port sharing between sockets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PortSharing {
    Alone,
    Port,
}

fn listen(address: SocketAddr, interface: Option<&str>, sharing: PortSharing) -> io::Result<TcpListener> {
    let socket = bind(address, interface, sharing)?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

fn bind(address: SocketAddr, interface: Option<&str>, sharing: PortSharing) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_reuse_address(true)?;
    if sharing == PortSharing::Port {
        socket.set_reuse_port(true)?;
    }
    // Accepted connections inherit the option.
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
    use forewarn_types::Name;

    fn by_address() -> Identity {
        Identity::Address { cluster: Name::new("default").expect("a name") }
    }

    fn open(address: &str, threads: usize) -> Result<Vec<Listener>, ListenError> {
        ListenAddress::Tcp(address.parse().expect("an address")).open(by_address(), threads)
    }

    #[test]
    fn one_port_is_found_for_all_threads() {
        let listeners = open("127.0.0.1:0", 3).expect("a free port");
        let addresses: Vec<_> = listeners.iter().map(Listener::address).collect();
        assert_eq!(addresses.len(), 3);
        assert!(addresses[0].is_some_and(|address| address.port() != 0));
        assert!(addresses.iter().all(|address| *address == addresses[0]));
    }

    /// promise: X2
    #[test]
    fn a_port_is_not_shared_with_another_server() {
        for (first, second) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
            let listeners = open("127.0.0.1:0", first).expect("a free port");
            let taken = listeners[0].address().expect("an address").to_string();
            let error = open(&taken, second).expect_err("the port is in use");
            assert_eq!(error.to_string(), format!("cannot listen: {taken}"));
        }
    }

    #[test]
    fn accepted_connections_have_nodelay() {
        let listeners = open("127.0.0.1:0", 1).expect("a free port");
        let BoundSocket::Tcp(listener) = &listeners[0].socket else { panic!("a TCP listener") };
        listener.set_nonblocking(false).expect("an open socket");
        let _caller = std::net::TcpStream::connect(listener.local_addr().expect("an address"));
        let (stream, _) = listener.accept().expect("a connection");
        assert!(stream.nodelay().expect("an open socket"));
    }

    #[test]
    fn a_missing_interface_is_reported() {
        let address = "127.0.0.1:0".parse().expect("an address");
        let address_to_open = ListenAddress::Interface { name: "no-such-cable".to_owned(), address };
        let error =
            address_to_open.open(Identity::Machine("m".to_owned()), 1).expect_err("no such interface");
        assert_eq!(error.to_string(), "cannot listen: 127.0.0.1:0 on no-such-cable");
    }

    /// promise: M3
    #[test]
    fn callers_of_a_unix_socket_need_another_identity_than_an_address() {
        let address_to_open = ListenAddress::Unix { path: "s".into(), mode: 0o660 };
        let error = address_to_open.open(by_address(), 1).expect_err("callers cannot be identified");
        assert!(error.to_string().starts_with("callers of a Unix socket have no address: s\n  hint: "));
    }
}
