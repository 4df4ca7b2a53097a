//! `[arm]`: where clients of Azure come in, with TLS. Without it they do not.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Result, bail};
use forewarn_azure::http::{ArmPlan, Credentials};
use forewarn_server::ClientLimits;
use serde::Deserialize;

use super::clients::ClientTable;
use super::secure::{TLS_DIRECTORY, TlsTable};
use crate::state;

/// The directory that unsigned identity tokens name.
pub(in super::super) const DIRECTORY: &str = "f0e4a14d-0000-4000-8000-000000000000";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arm {
    listen: SocketAddr,
    #[serde(default)]
    host_names: Vec<String>,
    /// Where its certificate comes from; without it the server makes its own.
    tls: Option<TlsTable>,
    #[serde(default)]
    connection: ClientTable,
}

impl Arm {
    /// Limits of the listener.
    pub(super) fn limits(&self) -> Result<ClientLimits> {
        self.connection.limits("arm.connection")
    }

    /// How clients come in. Their tokens name `directory`. What has to be kept is below `data_dir`; a server that keeps nothing
    /// has its authority where its user keeps such things, and forgets whom it gave a token.
    pub(super) fn plan(&self, data_dir: Option<&Path>, directory: Option<&str>) -> Result<ArmPlan> {
        let own = TlsTable::own();
        let tls = self.tls.as_ref().unwrap_or(&own);
        let user = if data_dir.is_none() && !tls.has_files() { state::directory() } else { None };
        if data_dir.is_none() && user.is_none() && !tls.has_files() {
            bail!(
                "an authority has to be kept, and there is no home directory: arm\n  \
                 hint: data_dir, or arm.tls with certificate and key"
            );
        }
        let source =
            tls.source("arm.tls", data_dir.or(user.as_deref()), self.listen.ip(), &self.host_names)?;
        Ok(ArmPlan {
            listen: Some((self.listen, source)),
            host_names: self.host_names.clone(),
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
        toml::from_str::<Arm>(text).unwrap().plan(data_dir.map(Path::new), None)
    }

    #[test]
    fn a_certificate_is_made_unless_there_is_another() {
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
        assert!(toml::from_str::<Arm>("host_names = []").is_err(), "it has to be somewhere");
    }
}
