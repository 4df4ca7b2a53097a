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
    /// The realm cannot be joined.
    #[error("cannot join the realm: {}", with_hint(.0.as_ref()))]
    Realm(Box<dyn std::error::Error + Send + Sync>),
    /// The default cluster of a realm has no owner.
    #[error(
        "no server of the realm has become the owner of the default cluster\n  hint: the log of the servers says why"
    )]
    NoOwner,
    /// A server in a realm has no data directory.
    #[error("a server in a realm needs a data directory\n  hint: data_dir = \"/var/lib/forewarn\"")]
    NoRealmDirectory,
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
    /// The first token cannot be written to its file.
    #[error(
        "cannot write the first token: {path}: {1}\n  hint: let the user of the server write there, or set \
         api.first_token_file to another file",
        path = .0.display()
    )]
    TokenFile(PathBuf, std::io::Error),
    /// The file for the first token has another content.
    #[error(
        "the file of the first token has another content: {path}\n  hint: move it away, or set api.first_token_file to \
         another file",
        path = .0.display()
    )]
    TokenFileTaken(PathBuf),
    /// Other users can read the file with the first token.
    #[error(
        "other users can read the first token: {path}\n  hint: remove the file; the next start writes another token",
        path = .0.display()
    )]
    TokenFileExposed(PathBuf),
    /// No file for the first token is known.
    #[error("no file for the first token\n  hint: set api.first_token_file, or data_dir")]
    NoTokenFile,
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
            | Self::Realm(_)
            | Self::NoOwner
            | Self::NoRealmDirectory
            | Self::Refused(_)
            | Self::LoadingMark(..)
            | Self::Door(_)
            | Self::Api(..)
            | Self::ExtensionListener { .. }
            | Self::Extension(_)
            | Self::Token(_)
            | Self::TokenFile(..)
            | Self::TokenFileTaken(_)
            | Self::TokenFileExposed(_)
            | Self::NoTokenFile
            | Self::Tls(_)
            | Self::Threads(_) => None,
        }
    }
}

/// The text of an error with its hint, or with one that fits most errors.
fn with_hint(error: &dyn std::error::Error) -> String {
    let text = error.to_string();
    if text.contains("\n  hint: ") {
        return text;
    }
    let hint = "etcd must answer on one of engine.endpoints; data_dir must be empty or belong to this server";
    format!("{text}\n  hint: {hint}")
}
