//! The doors of operators: a Unix socket, a TCP address, or both.
//!
//! Each door has a rule of its own for who may come in: a socket is for its owner, an address for whoever has a token. Who
//! has lost every token still has the socket.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use forewarn_control::shared::{Role, Scope};
use forewarn_lifecycle::Name;
use forewarn_metadata::{Door, OpenError, SocketFile};
use tokio::task::JoinHandle;

use crate::clients::{Clients, ListenerContext, RefusalFormat, Socket};
use crate::control_handle::ControlHandle;
use crate::extension::Scheme;
use crate::operator::{Access, PROBLEM_REFUSALS, Secret, hash};
use crate::start_error::StartError;
use crate::tls::{Source, Tls, TlsError};
use forewarn_control::ControlError;
use forewarn_control::request::{Administration, RequestContext};

/// Where operators come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApiDoor {
    /// A TCP address, for whoever can connect. Port 0 is one that is free.
    Open(SocketAddr),
    /// A TCP address, for whoever has a token. Port 0 is one that is free.
    Locked(SocketAddr),
    /// The same, with TLS.
    Tls(SocketAddr, Source),
    /// A Unix-domain socket, for its owner alone.
    Unix(PathBuf),
}

/// A door that is open.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) serving: JoinHandle<()>,
    pub(crate) url: String,
    /// Removed with the service.
    _socket: Option<SocketFile>,
}

/// What the token is called that a new server makes for whoever sets it up.
const FIRST_TOKEN: &str = "first";

/// Only the owner of the server may use its socket.
const API_SOCKET_MODE: u32 = 0o600;

impl ApiDoor {
    /// Who may come in.
    pub(crate) fn access(&self) -> Access {
        match self {
            Self::Open(_) => Access::Open("anyone"),
            Self::Unix(_) => Access::Open("socket"),
            Self::Locked(_) | Self::Tls(..) => Access::Tokens,
        }
    }

    /// The certificates that it shows.
    pub(crate) fn certificates(&self) -> Result<Option<Arc<Tls>>, TlsError> {
        match self {
            Self::Tls(_, source) => Tls::open(source.clone()).map(Some),
            Self::Open(_) | Self::Locked(_) | Self::Unix(_) => Ok(None),
        }
    }

    /// Lets operators in.
    pub(crate) fn open(
        &self,
        tls: Option<&Arc<Tls>>,
        router: axum::Router,
        context: ListenerContext,
    ) -> Result<Opened, StartError> {
        match self {
            Self::Open(address) | Self::Locked(address) | Self::Tls(address, _) => {
                let bound = Bound::at(*address);
                let bound = bound.map_err(|source| StartError::Api(address.to_string(), source))?;
                Ok(bound.open("api", PROBLEM_REFUSALS, tls, router, context))
            }
            Self::Unix(path) => {
                let failed = |source| StartError::Api(path.display().to_string(), source);
                let listen = |source| OpenError::Listen {
                    door: Door::Unix { path: path.clone(), mode: API_SOCKET_MODE },
                    source,
                };
                let (listener, file) = SocketFile::create(path, API_SOCKET_MODE, listen)?;
                listener.set_nonblocking(true).map_err(failed)?;
                let listener = tokio::net::UnixListener::from_std(listener).map_err(failed)?;
                let clients =
                    Clients::new("socket", PROBLEM_REFUSALS, Socket::Unix(listener), router, context);
                let serving = tokio::spawn(clients.run());
                Ok(Opened { serving, url: format!("unix:{}", path.display()), _socket: Some(file) })
            }
        }
    }

    /// Scheme of its URL.
    pub(crate) fn scheme(&self) -> Scheme {
        match self {
            Self::Open(_) | Self::Locked(_) | Self::Unix(_) => Scheme::Http,
            Self::Tls(..) => Scheme::Https,
        }
    }
}

/// An address that is taken, and where nobody is let in yet.
pub(crate) struct Bound {
    listener: tokio::net::TcpListener,
    /// Where it is.
    pub(crate) address: SocketAddr,
}

impl Bound {
    /// Takes an address. Port 0 is one that is free.
    pub(crate) fn at(address: SocketAddr) -> std::io::Result<Self> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        Ok(Self { address: listener.local_addr()?, listener })
    }

    /// Lets clients in, with those certificates or in clear.
    pub(crate) fn open(
        self,
        name: &'static str,
        refusals: RefusalFormat,
        tls: Option<&Arc<Tls>>,
        router: axum::Router,
        context: ListenerContext,
    ) -> Opened {
        let Self { listener, address } = self;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let socket = Socket::Tcp(listener, tls.cloned());
        let serving = tokio::spawn(Clients::new(name, refusals, socket, router, context).run());
        Opened { serving, url: format!("{scheme}://{address}"), _socket: None }
    }
}

/// A token for whoever sets the server up, if there is no other way in.
pub(crate) async fn first_token(
    engine: &ControlHandle,
    doors: &[ApiDoor],
) -> Result<Option<String>, StartError> {
    let is_locked = doors.iter().all(|door| door.access() == Access::Tokens);
    if !is_locked || engine.shared().tokens().next().is_some() {
        return Ok(None);
    }
    let name = Name::new(FIRST_TOKEN).map_err(|_| StartError::Refused(ControlError::Unavailable))?;
    issue_token(engine, name, Role::Admin).await.map(Some)
}

/// Issues a token for all clusters and tenants that does not expire. Its text is returned, and not kept.
///
/// # Errors
/// When there are no random numbers, the name is taken, or nothing can be written.
pub async fn issue_token(engine: &ControlHandle, name: Name, role: Role) -> Result<String, StartError> {
    let number = engine.shared().next_token();
    let text = Secret::new().map_err(StartError::Token)?.text(number);
    let (scope, hash) = (Scope::default(), hash(&text));
    let issue = Administration::IssueToken { number, name, role, scope, hash, expires: None };
    engine.administer(issue, RequestContext::default()).await?;
    Ok(text)
}
