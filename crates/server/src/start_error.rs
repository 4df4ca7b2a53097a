//! Reasons why a server does not start.

use std::net::SocketAddr;
use std::path::PathBuf;

use forewarn_control::{ControlError, FleetFileError, FleetPosition, FleetRejection};
use forewarn_metadata::ListenError;

use crate::extension::ExtensionError;
use crate::tls::TlsError;

/// Reason why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The journal cannot be opened.
    #[error(transparent)]
    Store(#[from] forewarn_store::OpenError),
    /// The fleet is malformed or contradicts itself.
    #[error("invalid fleet file")]
    Fleet(#[from] FleetFileError),
    /// The rules reject the fleet.
    #[error("fleet rejected")]
    Refused(#[from] ControlError),
    /// The rules reject one entry of the fleet.
    #[error("fleet rejected")]
    RefusedEntry(FleetPosition, #[source] ControlError),
    /// The mark of a fleet that is being loaded cannot be written.
    #[error("cannot write to the data directory: {0}")]
    LoadingMark(PathBuf, #[source] std::io::Error),
    /// A metadata listener cannot be opened.
    #[error(transparent)]
    Door(#[from] ListenError),
    /// An API listener cannot be opened.
    #[error("cannot listen for operators: {0}")]
    Api(String, #[source] std::io::Error),
    /// The address of an extension cannot be listened on.
    #[error("cannot listen for {clients}: {address}")]
    ExtensionListener {
        /// Clients of the extension.
        clients: &'static str,
        address: SocketAddr,
        #[source]
        source: std::io::Error,
    },
    /// An extension cannot be served.
    #[error(transparent)]
    Extension(ExtensionError),
    /// The first token cannot be issued.
    #[error("cannot issue a token for operators")]
    Token(#[source] std::io::Error),
    /// Certificates cannot be loaded.
    #[error("cannot load the TLS certificate")]
    Tls(#[from] TlsError),
    /// Threads cannot be started.
    #[error("cannot start the threads of the metadata endpoint")]
    Threads(#[source] std::io::Error),
}

impl From<FleetRejection> for StartError {
    fn from(rejection: FleetRejection) -> Self {
        match rejection {
            FleetRejection::File(error) => Self::Fleet(error),
            FleetRejection::Entry { place, error } => Self::RefusedEntry(place, error),
        }
    }
}

impl StartError {
    /// Position of the entry of the fleet that is the reason.
    #[must_use]
    pub fn entry(&self) -> Option<&FleetPosition> {
        match self {
            Self::Fleet(FleetFileError::Entry { place, .. }) | Self::RefusedEntry(place, _) => Some(place),
            Self::Fleet(FleetFileError::Malformed(_))
            | Self::Store(_)
            | Self::Refused(_)
            | Self::LoadingMark(..)
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
