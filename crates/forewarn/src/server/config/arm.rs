//! `[arm]`: the TLS listener for Azure clients.

use std::path::Path;

use anyhow::{Result, bail};
use forewarn_azure::http::{ArmPlan, Credentials};
use forewarn_server::ClientLimits;
use forewarn_types::TcpAddress;
use serde::Deserialize;

use super::clients::ClientTable;
use super::hosts;
use super::tls::{TLS_DIRECTORY, TlsTable};
use crate::state_directory;

/// The default Azure directory of identity tokens.
pub(in super::super) const DIRECTORY: &str = "f0e4a14d-0000-4000-8000-000000000000";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ArmTable {
    listen: TcpAddress,
    #[serde(default)]
    host_names: Vec<String>,
    /// None for a self-signed certificate.
    tls: Option<TlsTable>,
    #[serde(default)]
    connection: ClientTable,
}

impl ArmTable {
    /// Limits of the listener.
    pub(super) fn limits(&self) -> Result<ClientLimits> {
        self.connection.limits("arm.connection")
    }

    /// The listener. Tokens name `directory`. Keys are stored below `data_dir`; a server in memory stores its CA in the
    /// state directory of the user, and its issued tokens become invalid at a restart.
    pub(super) fn plan(&self, data_dir: Option<&Path>, directory: Option<&str>) -> Result<ArmPlan> {
        let default = TlsTable::default_self_signed();
        let tls = self.tls.as_ref().unwrap_or(&default);
        let user = if data_dir.is_none() && !tls.has_files() { state_directory::directory() } else { None };
        if data_dir.is_none() && user.is_none() && !tls.has_files() {
            bail!(
                "no directory for the CA of arm: neither data_dir nor a home directory\n  \
                 hint: set data_dir, or arm.tls with certificate and key"
            );
        }
        let TcpAddress(listen) = self.listen;
        let source = tls.source("arm.tls", data_dir.or(user.as_deref()), listen.ip(), &self.host_names)?;
        Ok(ArmPlan {
            listen: Some((listen, source)),
            hosts: hosts(&self.host_names, "add the name to arm.host_names"),
            credentials: Credentials::Tokens,
            key_dir: data_dir.map(|data_dir| data_dir.join(TLS_DIRECTORY)),
            directory: directory.unwrap_or(DIRECTORY).to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forewarn_server::tls::Source;

    fn plan(text: &str, data_dir: Option<&str>) -> Result<ArmPlan> {
        toml::from_str::<ArmTable>(text).unwrap().plan(data_dir.map(Path::new), None)
    }

    #[test]
    fn a_certificate_is_self_signed_or_from_files() {
        let own = plan("listen = '10.0.0.1:1340'\nhost_names = ['a.b']", Some("/data")).unwrap();
        assert_eq!(
            (own.credentials, own.key_dir.as_deref()),
            (Credentials::Tokens, Some(Path::new("/data/tls")))
        );
        let Some((_, Source::SelfSigned { directory, names, address })) = own.listen else { panic!() };
        assert_eq!((directory.as_path(), names.join(" ")), (Path::new("/data/tls"), "a.b".to_owned()));
        assert_eq!(address, Some("10.0.0.1".parse().unwrap()));
        let files = plan("listen = '10.0.0.1:1340'\ntls = { certificate = 'c', key = 'k' }", None).unwrap();
        assert!(matches!(files.listen, Some((_, Source::Files { .. }))) && files.key_dir.is_none());
        let half = plan("listen = '10.0.0.1:1340'\ntls = { certificate = 'c' }", Some("/data"));
        assert!(half.unwrap_err().to_string().contains("self_signed: arm.tls\n  hint: "));
        assert!(toml::from_str::<ArmTable>("host_names = []").is_err(), "listen is required");
    }
}
