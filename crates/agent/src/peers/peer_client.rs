//! Requests the status of one peer, with a timeout of two seconds.
//!
//! A failing peer is logged once, not on every poll.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use forewarn_agent_core::{PeerReport, PeerStatus, PeersToPoll};
use forewarn_cli_support::visible::flat;
use forewarn_client::Endpoint;
use forewarn_client::http::{self, HeaderName, HeaderValue, HttpClient, Limits, Request, Trust, Url};

use super::PATH;
use super::addresses::PeerAddresses;
use super::discovery::PeerDiscovery;
use super::finder::{Peer, PeerFinder};
use super::proof::{Key, NONCE, Nonce, PEER, PROOF};

/// Limits of the time and the size of a response.
const LIMITS: Limits =
    Limits { connect: Duration::from_secs(2), answer: Duration::from_secs(2), body_bytes: 256 * 1024 };

/// Limits of the events in a report, and of the bytes of an id or a name.
const EVENTS_MAX: usize = 1000;
const TEXT_BYTES_MAX: usize = 1024;

/// Limit of the logged reason of an unavailable peer.
const REASON_CHARS_MAX: usize = 200;

/// A client of all peers.
#[derive(Clone, Debug)]
pub(crate) struct PeerClient(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    finder: PeerFinder,
    key: Key,
    /// The last logged error of each peer.
    logged: Mutex<BTreeMap<String, String>>,
    /// Names of peers that were found by address only.
    names: Mutex<BTreeMap<String, String>>,
}

/// The reason why a peer has not reported its status.
#[derive(Debug, thiserror::Error)]
enum PeerError {
    #[error("invalid peer address: {0}")]
    Url(#[from] forewarn_client::http::BadUrl),
    #[error("{0}")]
    Http(#[from] forewarn_client::http::HttpError),
    #[error("the peer returned 403\n  hint: check that both have the same key")]
    Forbidden,
    #[error("the peer is alive but returned 503: {0}")]
    Unavailable(String),
    #[error("the peer returned {0}\n  hint: check that it is an agent and has a key")]
    Status(u16),
    #[error("the response has no valid proof\n  hint: check that both have the same key")]
    Proof,
    #[error("invalid response")]
    Form,
    #[error("the peer has another name: {0:?}")]
    Name(String),
    #[error("cannot send a request: {0}")]
    Local(&'static str),
}

impl PeerClient {
    /// Creates a client that sends requests as `me`.
    pub(crate) fn new(
        discovery: PeerDiscovery,
        key: Key,
        me: impl Into<String>,
        endpoint: Endpoint,
        addresses: PeerAddresses,
    ) -> Self {
        let finder = PeerFinder::new(discovery, me.into(), endpoint, addresses);
        Self(Arc::new(Inner { finder, key, logged: Mutex::default(), names: Mutex::default() }))
    }

    /// Finds the peers to poll, within two seconds.
    pub(super) async fn find(&self, peers_to_poll: &PeersToPoll) -> Vec<Peer> {
        let peers = self.0.finder.find(peers_to_poll).await;
        self.0.names().retain(|address, _| peers.iter().any(|peer| peer.address == *address));
        peers
    }

    /// Polls a peer, within two seconds. `None` if the name of the peer is not known.
    pub(super) async fn poll(&self, peer: &Peer) -> Option<PeerReport> {
        let result = self.0.poll(peer).await;
        self.0.log_change(peer, result.as_ref().err());
        let known = || peer.name.clone().or_else(|| self.0.names().get(&peer.address).cloned());
        let report = match result {
            Ok(status) => {
                if peer.name.is_none() {
                    self.0.names().insert(peer.address.clone(), status.name.clone());
                }
                PeerReport::Status(status)
            }
            // The peer is alive and its status is unknown. This response needs no proof: an attacker that forges it
            // only makes this machine wait.
            Err(
                PeerError::Unavailable(_)
                | PeerError::Form
                | PeerError::Http(http::HttpError::BodyTooLarge(_)),
            ) => PeerReport::Alive(known()?),
            Err(
                error @ (PeerError::Url(_)
                | PeerError::Http(
                    http::HttpError::TimedOut(_)
                    | http::HttpError::Unreachable(_)
                    | http::HttpError::InvalidResponse(_)
                    | http::HttpError::InvalidRequest(_),
                )
                | PeerError::Forbidden
                | PeerError::Status(_)
                | PeerError::Proof
                | PeerError::Name(_)
                | PeerError::Local(_)),
            ) => PeerReport::Failed { name: known()?, error: flat(&error.to_string()) },
        };
        // One of the addresses of a DNS name is this machine.
        let (PeerReport::Status(PeerStatus { name, .. })
        | PeerReport::Alive(name)
        | PeerReport::Failed { name, .. }) = &report;
        (name != self.0.finder.me()).then_some(report)
    }
}

impl Inner {
    async fn poll(&self, peer: &Peer) -> Result<PeerStatus, PeerError> {
        let url = Url::parse(&format!("http://{}{PATH}", peer.address))?;
        let nonce = Nonce::random().ok_or(PeerError::Local("no random numbers available"))?;
        let request = self.request(&nonce).ok_or(PeerError::Local("invalid machine name"))?;
        let response = HttpClient::new(url, Trust::system()).send(&request, LIMITS).await?;
        match response.status {
            200 => {}
            403 => return Err(PeerError::Forbidden),
            503 => return Err(PeerError::Unavailable(reason(&response.body))),
            status => return Err(PeerError::Status(status)),
        }
        let proof = response.header(PROOF).ok_or(PeerError::Proof)?;
        // The proof is checked before the body is parsed.
        if !self.key.is_response(&nonce, &response.body, proof) {
            return Err(PeerError::Proof);
        }
        let status = read(&response.body).ok_or(PeerError::Form)?;
        match &peer.name {
            Some(name) if *name != status.name => Err(PeerError::Name(status.name)),
            Some(_) | None => Ok(status),
        }
    }

    fn names(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn request(&self, nonce: &Nonce) -> Option<Request> {
        let me = self.finder.me();
        let proof = self.key.prove_request(nonce, me);
        let mut request = Request::get(PATH);
        let fields = [(PEER, me), (NONCE, nonce.as_str()), (PROOF, proof.as_str())];
        for (name, value) in fields {
            let value = HeaderValue::from_bytes(value.as_bytes()).ok()?;
            request.headers.insert(HeaderName::from_static(name), value);
        }
        Some(request)
    }

    /// Logs a change of the state of a peer.
    fn log_change(&self, peer: &Peer, error: Option<&PeerError>) {
        let name = peer.name.as_deref().unwrap_or(&peer.address);
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        match error.map(ToString::to_string) {
            Some(reason) if logged.get(name) != Some(&reason) => {
                let flat_reason = flat(&reason);
                tracing::warn!(peer = name, reason = flat_reason, "cannot get the status of a peer");
                logged.insert(name.to_owned(), reason);
            }
            Some(_) => {}
            None => {
                if logged.remove(name).is_some() {
                    tracing::info!(peer = name, "peer status received again");
                }
            }
        }
    }
}

/// The reason in an error response.
fn reason(body: &[u8]) -> String {
    let text = flat(&String::from_utf8_lossy(body));
    if text.is_empty() {
        "(no reason given)".to_owned()
    } else {
        text.chars().take(REASON_CHARS_MAX).collect()
    }
}

fn read(body: &[u8]) -> Option<PeerStatus> {
    let status: PeerStatus = serde_json::from_slice(body).ok()?;
    let fits = |text: &str| (1..=TEXT_BYTES_MAX).contains(&text.len());
    (fits(&status.name) && status.events.len() <= EVENTS_MAX && status.events.keys().all(|id| fits(id)))
        .then_some(status)
}
