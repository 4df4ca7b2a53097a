//! Reasons why a server does not start.

use std::net::SocketAddr;

use forewarn_control::{BadFleet, ControlError, FleetPlace};
use forewarn_metadata::OpenError;

use crate::extension::ExtensionError;
use crate::tls::TlsError;

/// Reason why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The journal cannot be opened.
    #[error(transparent)]
    Store(#[from] forewarn_store::OpenError),
    /// The fleet is none.
    #[error("the fleet cannot be")]
    Fleet(#[from] BadFleet),
    /// The rules refuse the fleet.
    #[error("the fleet is refused")]
    Refused(#[from] ControlError),
    /// The rules refuse one entry of the fleet.
    #[error("the fleet is refused")]
    RefusedEntry(FleetPlace, #[source] ControlError),
    /// Machines cannot come in.
    #[error(transparent)]
    Door(#[from] OpenError),
    /// Operators cannot come in.
    #[error("cannot listen for operators: {0}")]
    Api(String, #[source] std::io::Error),
    /// The address of an extension cannot be listened on.
    #[error("cannot listen for {clients}: {address}")]
    ExtensionListener {
        /// Clients of the extension.
        clients: &'static str,
        /// The address.
        address: SocketAddr,
        /// The reason.
        #[source]
        source: std::io::Error,
    },
    /// An extension cannot be served.
    #[error(transparent)]
    Extension(ExtensionError),
    /// The first token of operators cannot be made.
    #[error("cannot make a token for operators")]
    Token(#[source] std::io::Error),
    /// Certificates cannot be used.
    #[error("nobody can come in with TLS")]
    Tls(#[from] TlsError),
    /// There are not enough threads or file descriptors.
    #[error("cannot start the threads of the metadata endpoint")]
    Threads(#[source] std::io::Error),
}

impl StartError {
    /// Position of the entry of the fleet that is the reason.
    #[must_use]
    pub fn entry(&self) -> Option<&FleetPlace> {
        match self {
            Self::Fleet(BadFleet::Entry { place, .. }) | Self::RefusedEntry(place, _) => Some(place),
            Self::Fleet(BadFleet::TooLong | BadFleet::Malformed(_))
            | Self::Store(_)
            | Self::Refused(_)
            | Self::Door(_)
            | Self::Api(..)
            | Self::ExtensionListener { .. }
            | Self::Extension(_)
            | Self::Token(_)
            | Self::Tls(_)
            | Self::Threads(_) => None,
        }
    }
}
