//! The client: endpoints, and the order in which they are used.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use forewarn_url::{Scheme, Url};
use tonic::client::Grpc;

use crate::channel::Channel;
use crate::connection::ConnectionUse;
use crate::endpoint::Endpoint;
use crate::error::{Doubt, EtcdError, Obstacle};
use crate::login::TokenCell;
use crate::messages::ResponseHeader;
use crate::settings::{EtcdLimits, EtcdSettings, SettingsError};
use crate::tls::TlsFiles;

/// A client of an etcd cluster. Clones share connections, the token and the endpoint in use.
///
/// A call is made on one endpoint. If it times out, its connection breaks, or the member cannot serve it, the following
/// calls of all clones are made on the next endpoint. No call is repeated.
#[derive(Clone, Debug)]
pub struct EtcdClient {
    shared: Arc<SharedState>,
    /// Time limit of a call.
    limit: Duration,
}

/// The state that clones share.
#[derive(Debug)]
struct SharedState {
    endpoints: Vec<Arc<Endpoint>>,
    /// Index of the endpoint in use.
    current: AtomicUsize,
    token: Option<TokenCell>,
    limits: EtcdLimits,
}

/// State of the store and of the cluster when a request was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Id of the cluster.
    pub cluster_id: u64,
    /// Id of the member that has answered.
    pub member_id: u64,
    /// Revision of the store.
    pub revision: i64,
    /// Term of raft.
    pub raft_term: u64,
}

/// An endpoint that a call is made on.
#[derive(Clone, Debug)]
pub(crate) struct ChosenEndpoint {
    number: usize,
    endpoint: Arc<Endpoint>,
}

impl EtcdClient {
    /// A client with these settings. Does not connect yet.
    ///
    /// # Errors
    /// Fails if the settings are invalid, or certificates cannot be read.
    pub fn new(settings: EtcdSettings) -> Result<Self, SettingsError> {
        settings.check()?;
        let files = TlsFiles::new(settings.authorities, settings.certificate);
        if settings.endpoints.iter().any(|url| url.scheme() == Scheme::Https) {
            files.read()?;
        }
        let limits = settings.limits;
        let endpoint = |url| Arc::new(Endpoint::new(url, files.clone(), limits));
        let endpoints = settings.endpoints.into_iter().map(endpoint).collect();
        let token = settings.login.map(TokenCell::new);
        let shared = SharedState { endpoints, current: AtomicUsize::new(0), token, limits };
        Ok(Self { shared: Arc::new(shared), limit: limits.call })
    }

    /// The same client with another time limit of each call.
    #[must_use]
    pub fn within(&self, limit: Duration) -> Self {
        Self { shared: Arc::clone(&self.shared), limit }
    }

    /// URLs of the endpoints, in the order of the settings.
    pub fn endpoints(&self) -> impl ExactSizeIterator<Item = &Url> {
        self.shared.endpoints.iter().map(|endpoint| endpoint.url())
    }

    /// Index of the endpoint that the next call is made on.
    #[must_use]
    pub fn current_endpoint(&self) -> usize {
        self.shared.current.load(Ordering::Relaxed)
    }

    pub(crate) fn limits(&self) -> &EtcdLimits {
        &self.shared.limits
    }

    /// The endpoint in use.
    pub(crate) fn chosen(&self) -> ChosenEndpoint {
        let number = self.current_endpoint();
        ChosenEndpoint { number, endpoint: Arc::clone(&self.shared.endpoints[number]) }
    }

    /// An endpoint by its index; the last one, if there are fewer.
    pub(crate) fn chosen_at(&self, number: usize) -> ChosenEndpoint {
        let number = number.min(self.shared.endpoints.len() - 1);
        ChosenEndpoint { number, endpoint: Arc::clone(&self.shared.endpoints[number]) }
    }

    /// Goes on to the next endpoint, unless another call has already done so.
    pub(crate) fn leave(&self, chosen: &ChosenEndpoint) {
        let next = (chosen.number + 1) % self.shared.endpoints.len();
        let order = Ordering::Relaxed;
        // If it fails, another call was faster.
        self.shared.current.compare_exchange(chosen.number, next, order, order).ok();
    }

    pub(crate) fn token_cell(&self) -> Option<&TokenCell> {
        self.shared.token.as_ref()
    }

    pub(crate) fn limit(&self) -> Duration {
        self.limit
    }
}

impl ChosenEndpoint {
    /// The name of the endpoint in errors.
    pub(crate) fn name(&self) -> String {
        self.endpoint.name()
    }

    /// The client of gRPC on a connection.
    pub(crate) fn grpc(&self, connection: &ConnectionUse) -> Grpc<Channel> {
        self.endpoint.grpc(connection.channel())
    }

    /// Has the open connection examined.
    pub(crate) fn suspect(&self) {
        self.endpoint.suspect();
    }

    /// Connects if needed, and registers a call or a watch.
    pub(crate) async fn enter(&self) -> Result<ConnectionUse, EtcdError> {
        let connected = self.endpoint.connect().await;
        let connection =
            connected.map_err(|message| EtcdError::not_sent(self.name(), Obstacle::Unreachable, &message))?;
        Ok(connection.enter())
    }
}

impl Header {
    /// The header of an answer.
    pub(crate) fn of(header: Option<ResponseHeader>, chosen: &ChosenEndpoint) -> Result<Self, EtcdError> {
        let missing = || EtcdError::unknown(chosen.name(), Doubt::InvalidAnswer, "answer without a header");
        let ResponseHeader { cluster_id, member_id, revision, raft_term } = header.ok_or_else(missing)?;
        Ok(Self { cluster_id, member_id, revision, raft_term })
    }
}
