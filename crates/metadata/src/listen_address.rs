//! Listen addresses of the endpoint, and the reasons why one cannot be opened.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// An address, an interface or a file on which the endpoint listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// A TCP address. Port 0 selects a free port.
    Tcp(SocketAddr),
    /// A TCP address, for callers on one network interface only.
    Interface {
        /// Network interface, such as the host side of a machine's virtual cable.
        name: String,
        address: SocketAddr,
    },
    Unix {
        /// Socket file; it exists for as long as the listener.
        path: PathBuf,
        /// Mode of that file, such as `0o660`: a process that may write to it may call.
        mode: u32,
    },
}

/// Reason why a listener cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error("cannot listen: {address}")]
    Listen { address: ListenAddress, source: io::Error },
    /// The path exists and is not a socket. It is not removed.
    #[error("not a socket: {}\n  hint: move it away, or choose another path", .path.display())]
    NotASocket { path: PathBuf },
    #[error("another program listens: {}\n  hint: stop it, or choose another path", .path.display())]
    InUse { path: PathBuf },
    /// Callers of a Unix socket have no address to identify them by.
    #[error("callers of a Unix socket have no address: {}\n  hint: name the machine it belongs to", .path.display())]
    NoAddresses { path: PathBuf },
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Interface { name, address } => write!(f, "{address} on {name}"),
            Self::Unix { path, .. } => path.display().fmt(f),
        }
    }
}
