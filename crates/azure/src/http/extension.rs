//! Azure Resource Manager as an extension of a server: its listener, its login, and its routes.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use forewarn_server::tls::Source;
use forewarn_server::{
    ConnectionRefusal, ControlHandle, ExtensionApi, ExtensionError, ExtensionMount, ExtensionRoutes,
    ExtensionRoutesRef, HttpExtension, RefusalFormat, TlsListener,
};
use forewarn_url::OwnHosts;

use super::auth::ArmEndpoint;
use super::login::{Credentials, Login};
use super::public_routes::is_path;
use super::signing::Signer;
use crate::ArmError;

/// Name of the listener in metrics and in the log.
pub const LISTENER: &str = "arm";

/// Settings of Azure Resource Manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArmPlan {
    /// Address of the listener with TLS, and the source of its certificate. Without it, only operator listeners serve
    /// clients.
    pub listen: Option<(SocketAddr, Source)>,
    /// Host names with dots that requests to the listener may have.
    pub hosts: OwnHosts,
    /// Credentials that clients need.
    pub credentials: Credentials,
    /// Directory of the key that signs tokens; none: the key is lost with the process. The servers of a realm share a
    /// key.
    pub key_dir: Option<PathBuf>,
    /// Directory id (`tid`) in tokens.
    pub directory: String,
}

/// The key that signs tokens cannot be created or stored.
#[derive(Debug, thiserror::Error)]
#[error("cannot sign tokens for clients of Azure")]
struct SigningKeyError(#[source] std::io::Error);

impl ArmPlan {
    /// The extension for a server.
    #[must_use]
    pub fn extension(mut self) -> HttpExtension {
        HttpExtension {
            name: LISTENER,
            clients: "clients of Azure",
            listen: self.listen.take(),
            hosts: std::mem::take(&mut self.hosts),
            refusals: RefusalFormat {
                content_type: "application/json; charset=utf-8",
                body: connection_refusal_body,
            },
            api: Box::new(self),
        }
    }

    /// The login of all listeners. Tokens are signed with the key of the realm; outside of one, with the stored key, or a
    /// new one.
    pub(super) fn login(
        &self,
        listener: Option<TlsListener>,
        secret: Option<&[u8]>,
    ) -> std::io::Result<Login> {
        let signer = match (secret, &self.key_dir) {
            (Some(secret), _) => Signer::of_realm(secret),
            (None, Some(directory)) => Signer::kept_in(directory)?,
            (None, None) => Signer::forgetful()?,
        };
        Ok(Login { directory: self.directory.clone(), credentials: self.credentials, signer, listener })
    }
}

impl ExtensionApi for ArmPlan {
    fn open(
        self: Box<Self>,
        listener: Option<TlsListener>,
        secret: Option<&[u8]>,
    ) -> Result<ExtensionRoutesRef, ExtensionError> {
        Ok(Arc::new(ArmRoutes(Arc::new(self.login(listener, secret).map_err(SigningKeyError)?))))
    }
}

/// Routes of Azure Resource Manager.
#[derive(Debug)]
struct ArmRoutes(Arc<Login>);

impl ExtensionRoutes for ArmRoutes {
    fn owns(&self, path: &str) -> bool {
        is_path(path)
    }

    fn router(&self, control: &ControlHandle, mount: ExtensionMount) -> Router {
        ArmEndpoint::new(control, mount, &self.0).router()
    }
}

/// Body of the response to a client that the listener turns away.
fn connection_refusal_body(refusal: ConnectionRefusal) -> String {
    let (code, message) = match refusal {
        ConnectionRefusal::Busy => ("ServerBusy", "The server has too many connections. Try again later."),
        ConnectionRefusal::TooSlow => ("RequestTimeout", "The request did not arrive in time."),
    };
    ArmError::new(refusal.status(), code, message).body().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_is_turned_away_reads_an_arm_error() {
        for (refusal, code) in
            [(ConnectionRefusal::Busy, "ServerBusy"), (ConnectionRefusal::TooSlow, "RequestTimeout")]
        {
            let body: serde_json::Value = serde_json::from_str(&connection_refusal_body(refusal)).unwrap();
            assert_eq!(body["error"]["code"], code);
        }
    }
}
