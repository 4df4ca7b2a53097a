//! Listeners of the operator API: a Unix socket, a TCP address, or both.
//!
//! Each listener authenticates in its own way: a socket is for its owner, an address needs a token. An operator who
//! has lost every token still has the socket.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use forewarn_control::shared::{Role, Scope};
use forewarn_lifecycle::Name;
use forewarn_metadata::{ListenAddress, ListenError, SocketFile};
use tokio::task::JoinHandle;

use crate::clients::{Clients, ListenerContext, RefusalFormat, Socket};
use crate::control_handle::ControlHandle;
use crate::operator::{Access, PROBLEM_REFUSALS, Secret, hash};
use crate::scheme::Scheme;
use crate::start_error::StartError;
use crate::tls::{Source, Tls, TlsError};
use forewarn_control::request::{Administration, RequestContext};

/// A listener of the operator API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApiListener {
    /// A TCP address without authentication. Port 0 chooses a free port.
    Open(SocketAddr),
    /// A TCP address with tokens. Port 0 chooses a free port.
    Tokens(SocketAddr),
    /// A TCP address with tokens and TLS.
    Tls(SocketAddr, Source),
    /// A Unix domain socket, for its owner only.
    Unix(PathBuf),
}

/// A listener that serves.
#[derive(Debug)]
pub(crate) struct RunningListener {
    pub(crate) serving: JoinHandle<()>,
    pub(crate) url: String,
    /// Deleted when the service stops.
    _socket: Option<SocketFile>,
}

/// Mode of the socket: only the owner of the server may use it.
const API_SOCKET_MODE: u32 = 0o600;

impl ApiListener {
    /// Requests that the listener admits.
    pub(crate) fn access(&self) -> Access {
        match self {
            Self::Open(_) => Access::Open("anyone"),
            Self::Unix(_) => Access::Open("socket"),
            Self::Tokens(_) | Self::Tls(..) => Access::Tokens,
        }
    }

    /// Loads its certificates. None without TLS.
    pub(crate) fn certificates(&self) -> Result<Option<Arc<Tls>>, TlsError> {
        self.certificate_source().map(|source| Tls::open(source.clone())).transpose()
    }

    /// The source of its certificates. None without TLS.
    pub(crate) fn certificate_source(&self) -> Option<&Source> {
        match self {
            Self::Tls(_, source) => Some(source),
            Self::Open(_) | Self::Tokens(_) | Self::Unix(_) => None,
        }
    }

    pub(crate) fn open(
        &self,
        tls: Option<&Arc<Tls>>,
        router: axum::Router,
        context: ListenerContext,
    ) -> Result<RunningListener, StartError> {
        match self {
            Self::Open(address) | Self::Tokens(address) | Self::Tls(address, _) => {
                let bound = BoundListener::at(*address);
                let bound = bound.map_err(|source| StartError::Api(address.to_string(), source))?;
                Ok(bound.open("api", PROBLEM_REFUSALS, tls, router, context))
            }
            Self::Unix(path) => {
                let failed = |source| StartError::Api(path.display().to_string(), source);
                let listen = |source| ListenError::Listen {
                    address: ListenAddress::Unix { path: path.clone(), mode: API_SOCKET_MODE },
                    source,
                };
                let (listener, file) = SocketFile::create(path, API_SOCKET_MODE, listen)?;
                listener.set_nonblocking(true).map_err(failed)?;
                let listener = tokio::net::UnixListener::from_std(listener).map_err(failed)?;
                let clients =
                    Clients::new("socket", PROBLEM_REFUSALS, Socket::Unix(listener), router, context);
                let serving = tokio::spawn(clients.run());
                Ok(RunningListener { serving, url: format!("unix:{}", path.display()), _socket: Some(file) })
            }
        }
    }

    pub(crate) fn scheme(&self) -> Scheme {
        match self {
            Self::Open(_) | Self::Tokens(_) | Self::Unix(_) => Scheme::Http,
            Self::Tls(..) => Scheme::Https,
        }
    }
}

/// A bound TCP address that accepts no connections yet.
pub(crate) struct BoundListener {
    listener: tokio::net::TcpListener,
    pub(crate) address: SocketAddr,
}

impl BoundListener {
    /// Binds an address. Port 0 chooses a free port.
    pub(crate) fn at(address: SocketAddr) -> std::io::Result<Self> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        Ok(Self { address: listener.local_addr()?, listener })
    }

    /// Starts to serve, with TLS if certificates are given.
    pub(crate) fn open(
        self,
        name: &'static str,
        refusals: RefusalFormat,
        tls: Option<&Arc<Tls>>,
        router: axum::Router,
        context: ListenerContext,
    ) -> RunningListener {
        let Self { listener, address } = self;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let socket = Socket::Tcp(listener, tls.cloned());
        let serving = tokio::spawn(Clients::new(name, refusals, socket, router, context).run());
        RunningListener { serving, url: format!("{scheme}://{address}"), _socket: None }
    }
}

/// Issues a token for all clusters and tenants that does not expire. Its text is returned and not stored.
///
/// # Errors
/// Returns an error if there are no random numbers, the name is taken, or the journal cannot be written.
pub async fn issue_token(control: &ControlHandle, name: Name, role: Role) -> Result<String, StartError> {
    let number = control.shared().next_token();
    let text = Secret::new().map_err(StartError::Token)?.text(number);
    issue_text(control, number, name, role, &text).await?;
    Ok(text)
}

/// Issues a token with this number and text.
pub(crate) async fn issue_text(
    control: &ControlHandle,
    number: u32,
    name: Name,
    role: Role,
    text: &str,
) -> Result<(), StartError> {
    let (scope, hash) = (Scope::default(), hash(text));
    let issue = Administration::IssueToken { number, name, role, scope, hash, expires: None };
    control.administer(issue, RequestContext::default()).await?;
    Ok(())
}
