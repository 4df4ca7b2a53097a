//! Extensions: HTTP APIs besides the operator API, which the program that starts the server provides.

use std::error::Error;
use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use forewarn_url::OwnHosts;

use crate::clients::RefusalFormat;
use crate::control_handle::ControlHandle;
use crate::operator::{Access, HostNames};
use crate::scheme::Scheme;
use crate::tls::{Source, Tls};

/// An HTTP API to be served besides the operator API.
#[derive(Debug)]
pub struct HttpExtension {
    /// Name of its listener in metrics and in the log.
    pub name: &'static str,
    /// Its clients, for the message "cannot listen for CLIENTS".
    pub clients: &'static str,
    /// Address of a listener with TLS, and the source of its certificate. Without it, only operator listeners serve
    /// the API.
    pub listen: Option<(SocketAddr, Source)>,
    /// Host names that requests to its listener may have.
    pub hosts: OwnHosts,
    /// Format of the responses to clients that its listener rejects.
    pub refusals: RefusalFormat,
    pub api: Box<dyn ExtensionApi>,
}

/// Settings of an extension that may change while the server runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtensionSettings {
    /// Host names that requests to its listener may have.
    pub hosts: OwnHosts,
    /// Source of the certificate of its listener; the certificate is read again.
    pub certificates: Option<Source>,
}

/// An API that is not open yet.
pub trait ExtensionApi: Debug + Send {
    /// Prepares the API. The journal is open, and the address of its own listener is bound. `secret` is a random secret
    /// that all servers of a realm share; there is none outside of a realm.
    ///
    /// # Errors
    /// Returns an error if the API cannot be served; the server does not start then.
    fn open(
        self: Box<Self>,
        listener: Option<TlsListener>,
        secret: Option<&[u8]>,
    ) -> Result<ExtensionRoutesRef, ExtensionError>;
}

/// Routes of an extension.
pub trait ExtensionRoutes: Debug + Send + Sync {
    /// Returns true if a path on an operator listener belongs to the extension.
    fn owns(&self, path: &str) -> bool;

    /// The router for the requests of one listener. It authenticates them, and rejects those with a foreign host name.
    fn router(&self, control: &ControlHandle, mount: ExtensionMount) -> Router;
}

/// Shared routes of an extension.
pub type ExtensionRoutesRef = Arc<dyn ExtensionRoutes>;

/// Failure of an extension to open.
pub type ExtensionError = Box<dyn Error + Send + Sync>;

/// The bound listener of an extension.
#[derive(Clone, Debug)]
pub struct TlsListener {
    pub port: u16,
    pub tls: Arc<Tls>,
}

/// The listener through which requests reach an extension.
#[derive(Clone, Debug)]
pub enum ExtensionMount {
    /// The extension's own, with TLS.
    Own {
        /// Host names that requests may have.
        host_names: HostNames,
    },
    /// A listener of operators.
    Operators {
        /// Scheme of its URL.
        scheme: Scheme,
        /// Requests that it admits.
        access: Access,
        /// Host names that requests may have.
        host_names: HostNames,
    },
}
