//! The identity of this server: its credentials in use, replaced in place. Open connections keep theirs.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use forewarn_types::Name;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{ClientConfig, Error, RootCertStore, ServerConfig};

use crate::authority::RealmAuthority;
use crate::caller_verifier::CallerVerifier;
use crate::certified_name::{certified_name, check_server_name};
use crate::credentials::{CertificateError, CredentialFiles, Credentials};

/// Pause after credentials could not be renewed.
const RENEWAL_PAUSE: Duration = Duration::from_secs(60);

/// Protocol of connections.
const PROTOCOL: &[u8] = b"http/1.1";

type CredentialSource = dyn Fn(SystemTime) -> Result<Credentials, CertificateError> + Send + Sync;

/// The identity of this server: its name, and credentials from a source that is consulted again in time.
pub struct PeerIdentity {
    name: Name,
    source: Box<CredentialSource>,
    loaded: ArcSwap<LoadedCredentials>,
}

/// Configurations of new connections.
struct LoadedCredentials {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
    renew_at: Option<SystemTime>,
}

impl PeerIdentity {
    /// An identity whose credentials come from a function. It is called now, when credentials have to be renewed, and
    /// for [`PeerIdentity::reload`].
    ///
    /// # Errors
    /// Fails if there are no credentials, or they are not those of that server.
    pub fn new(
        name: Name,
        source: impl Fn(SystemTime) -> Result<Credentials, CertificateError> + Send + Sync + 'static,
    ) -> Result<Arc<Self>, CertificateError> {
        check_server_name(&name)?;
        let loaded = load(&name, source(SystemTime::now())?)?;
        Ok(Arc::new(Self { name, source: Box::new(source), loaded: ArcSwap::from_pointee(loaded) }))
    }

    /// An identity from the authority of the realm. Host names and addresses are those under which this server is
    /// reached.
    ///
    /// # Errors
    /// Fails if the server cannot have that name, or a host name is invalid.
    pub fn of_authority(
        authority: RealmAuthority,
        name: Name,
        hosts: Vec<String>,
    ) -> Result<Arc<Self>, CertificateError> {
        let server = name.clone();
        Self::new(name, move |now| authority.issue(&server, &hosts, now))
    }

    /// An identity from files of the operator, which are read now and for [`PeerIdentity::reload`].
    ///
    /// # Errors
    /// Fails if they cannot be read, or are not those of that server.
    pub fn of_files(name: Name, files: CredentialFiles) -> Result<Arc<Self>, CertificateError> {
        Self::new(name, move |_| files.read())
    }

    /// Name of this server.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Gets credentials again, for new connections.
    ///
    /// # Errors
    /// As [`PeerIdentity::new`]; then the old ones stay in use.
    pub fn reload(&self) -> Result<(), CertificateError> {
        let loaded = load(&self.name, (self.source)(SystemTime::now())?)?;
        self.loaded.store(Arc::new(loaded));
        Ok(())
    }

    /// Configuration of the next accepted connection.
    pub(crate) fn server_config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current().server)
    }

    /// Configuration of the next connection to another server.
    pub(crate) fn client_config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.current().client)
    }

    fn current(&self) -> Arc<LoadedCredentials> {
        let loaded = self.loaded.load_full();
        let now = SystemTime::now();
        if loaded.renew_at.is_none_or(|renew_at| now < renew_at) {
            return loaded;
        }
        if let Err(error) = self.reload() {
            tracing::warn!(%error, "cannot renew the certificate for other servers");
            let later = LoadedCredentials {
                server: Arc::clone(&loaded.server),
                client: Arc::clone(&loaded.client),
                renew_at: Some(now + RENEWAL_PAUSE),
            };
            self.loaded.store(Arc::new(later));
        }
        self.loaded.load_full()
    }
}

impl fmt::Debug for PeerIdentity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "PeerIdentity({})", self.name)
    }
}

fn load(name: &Name, credentials: Credentials) -> Result<LoadedCredentials, CertificateError> {
    let Credentials { authorities, chain, key, renew_at } = credentials;
    let found = chain.first().and_then(certified_name);
    if found.as_ref() != Some(name) {
        return Err(CertificateError::OtherServer { expected: name.clone(), found });
    }
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority).map_err(CertificateError::Unusable)?;
    }
    let roots = Arc::new(roots);
    let config = |error: Error| CertificateError::Unusable(error);
    let client = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(config)?
        .with_root_certificates(Arc::clone(&roots))
        .with_client_auth_cert(chain.clone(), key.clone_key())
        .map_err(config)?;
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider());
    let verifier = Arc::new(CallerVerifier(verifier.build().map_err(CertificateError::Authority)?));
    let server = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(config)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .map_err(config)?;
    Ok(LoadedCredentials { server: hardened(server), client: unresumed(client), renew_at })
}

/// A configuration without resumed sessions: every connection verifies certificates.
fn hardened(mut server: ServerConfig) -> Arc<ServerConfig> {
    server.session_storage = Arc::new(NoServerSessionStorage {});
    server.send_tls13_tickets = 0;
    server.alpn_protocols = vec![PROTOCOL.to_vec()];
    Arc::new(server)
}

/// The same for connections to other servers.
fn unresumed(mut client: ClientConfig) -> Arc<ClientConfig> {
    client.resumption = Resumption::disabled();
    client.alpn_protocols = vec![PROTOCOL.to_vec()];
    Arc::new(client)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}
