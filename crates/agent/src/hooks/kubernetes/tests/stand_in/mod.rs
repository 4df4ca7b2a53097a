//! A stand-in for the Kubernetes API server: nodes, pods, evictions and permissions, over TLS.
//!
//! Fidelity: real `kubectl` (1.32) accepts it as an API server: `get`, `cordon`, `uncordon`, `drain --dry-run` and
//! `drain`, with a budget that rejects evictions at first, behave as against a cluster. The tests in `kubectl.rs` repeat
//! that on a machine with `kubectl`. As in the real one:
//! - every change gives an object a new `resourceVersion`, and a no-op does not; a patch with an outdated version is
//!   rejected with 409;
//! - `application/merge-patch+json` (RFC 7386) and `application/strategic-merge-patch+json` (lists of conditions by
//!   `type`, of taints by `key`) are distinguished, other types are rejected with 415; `status` is changed only through
//!   `/status`, and nothing else is changed there;
//! - lists take `fieldSelector=spec.nodeName=…`, `labelSelector` for an existing label, `limit` and `continue`;
//! - an eviction sets `deletionTimestamp` and the pod stays for a while; an eviction that violates a budget is rejected
//!   with 429, one that two budgets match with 500, one for another `uid` with 409;
//! - errors are objects of the kind `Status` with the original messages; a missing token is 401, one without permission
//!   403.
//!
//! Not covered: controllers (no taint for a cordoned node, no replacement for an evicted pod), watches, admission,
//! protobuf. The termination of a pod takes a number of reads rather than seconds.

mod objects;
mod routes;

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{CertificateParams, KeyPair};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

pub(super) use self::objects::{Budget, Cluster};

/// A token that may do everything an agent does.
pub(super) const TOKEN: &str = "agent-token";

/// A token that may look, and nothing else.
pub(super) const VIEWER: &str = "viewer-token";

/// An API server, and the files by which an agent knows it.
pub(super) struct StandIn {
    cluster: Arc<Mutex<Cluster>>,
    pub(super) address: std::net::SocketAddr,
    pub(super) folder: tempfile::TempDir,
}

#[derive(Clone, Debug)]
pub(super) struct RecordedRequest {
    pub(super) method: String,
    pub(super) target: String,
    pub(super) body: Value,
    pub(super) token: Option<String>,
    pub(super) content_type: String,
}

impl StandIn {
    /// An API server with a certificate of its own, in whose cluster there is nothing yet.
    pub(super) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate =
            CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().self_signed(&key).unwrap();
        std::fs::write(folder.path().join("ca.crt"), certificate.pem()).unwrap();
        std::fs::write(folder.path().join("token"), format!("{TOKEN}\n")).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let cluster = Arc::new(Mutex::new(Cluster::default()));
        let (acceptor, shared) = (TlsAcceptor::from(Arc::new(config)), Arc::clone(&cluster));
        tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { return };
                let (acceptor, cluster) = (acceptor.clone(), Arc::clone(&shared));
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service = service_fn(move |request| serve(request, Arc::clone(&cluster)));
                    let builder = hyper::server::conn::http1::Builder::new();
                    // A caller that hangs up has its reasons.
                    builder.serve_connection(TokioIo::new(stream), service).await.ok();
                });
            }
        });
        Self { cluster, address, folder }
    }

    pub(super) fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    pub(super) fn ca_file(&self) -> PathBuf {
        self.folder.path().join("ca.crt")
    }

    pub(super) fn token_file(&self) -> PathBuf {
        self.folder.path().join("token")
    }

    /// The objects of the cluster.
    pub(super) fn cluster(&self) -> MutexGuard<'_, Cluster> {
        self.cluster.lock().unwrap()
    }
}

async fn serve(
    request: hyper::Request<Incoming>,
    cluster: Arc<Mutex<Cluster>>,
) -> Result<hyper::Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, 1024 * 1024)
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes)
        .unwrap_or_default();
    let text = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let request = RecordedRequest {
        method: head.method.to_string(),
        target: head.uri.to_string(),
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
        token: text("authorization").strip_prefix("Bearer ").map(str::to_owned),
        content_type: text("content-type").split(';').next().unwrap_or_default().to_owned(),
    };
    let (status, respond) = routes::respond(&mut cluster.lock().unwrap(), &request);
    let response = hyper::Response::builder().status(status).header("content-type", "application/json");
    Ok(response.body(Full::new(Bytes::from(respond.to_string()))).unwrap())
}
