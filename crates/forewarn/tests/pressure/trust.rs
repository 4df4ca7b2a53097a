//! A client of Azure that believes the server's own authority.

use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::attack::connect;
use crate::place::Place;

pub(crate) struct Trusting {
    at: SocketAddr,
    config: Arc<ClientConfig>,
}

impl Trusting {
    pub(crate) fn new(place: &Place, at: SocketAddr) -> Self {
        let authority = fs::read(place.path("state/forewarn/tls/ca.pem")).unwrap();
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&authority) {
            roots.add(certificate.unwrap()).unwrap();
        }
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap();
        let config = Arc::new(config.with_root_certificates(roots).with_no_client_auth());
        Self { at, config }
    }

    /// A connection with its handshake done, on which those bytes were sent.
    pub(crate) fn connect(&self, bytes: &str) -> StreamOwned<ClientConnection, TcpStream> {
        let name = ServerName::try_from("localhost").unwrap();
        let session = ClientConnection::new(Arc::clone(&self.config), name).unwrap();
        let mut stream = StreamOwned::new(session, connect(self.at));
        stream.write_all(bytes.as_bytes()).unwrap();
        stream.flush().unwrap();
        stream
    }
}
