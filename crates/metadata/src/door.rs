//! Doors: the addresses and files on which the endpoint listens, and the reasons why one cannot be opened.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// An address or a file on which the endpoint listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Door {
    /// A TCP address. Port 0 is one that is free.
    Tcp(SocketAddr),
    /// A TCP address, for callers on one network interface only.
    Interface {
        /// The interface, such as the end of a machine's cable.
        name: String,
        /// The address.
        address: SocketAddr,
    },
    /// A Unix-domain socket.
    Unix {
        /// Its file, which is there for as long as the listener.
        path: PathBuf,
        /// The mode of that file, such as `0o660`: a process that may write to it may call.
        mode: u32,
    },
}

/// Reason why a door cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The operating system refuses.
    #[error("cannot listen: {door}")]
    Listen {
        /// The door.
        door: Door,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Something lies there that is not a socket, and is not removed for one.
    #[error("not a socket: {}\n  hint: move it away, or choose another path", .path.display())]
    NotASocket {
        /// The file.
        path: PathBuf,
    },
    /// Another program listens there.
    #[error("another program listens: {}\n  hint: stop it, or choose another path", .path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// Callers of a Unix socket cannot be told apart.
    #[error("callers of a Unix socket have no address: {}\n  hint: name the machine it belongs to", .path.display())]
    NoAddresses {
        /// The file.
        path: PathBuf,
    },
}

impl fmt::Display for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Interface { name, address } => write!(f, "{address} on {name}"),
            Self::Unix { path, .. } => path.display().fmt(f),
        }
    }
}
