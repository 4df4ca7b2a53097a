//! The client for one other server.

use std::sync::Arc;

use forewarn_control::request::Request;
use hyper::StatusCode;
use hyper::body::Bytes;

use crate::audit_lines::AuditLines;
use crate::audit_search::{AuditSearch, FoundEntries};
use crate::bodies::{decode, encode, read_body};
use crate::connection::{OutgoingMessage, SendFailure, WholeAnswer};
use crate::error::PeerError;
use crate::forwarding::ForwardOutcome;
use crate::identity::PeerIdentity;
use crate::limits::{PeerLimits, REQUEST_BYTES_MAX, SEARCH_BYTES_MAX, SMALL_BYTES_MAX};
use crate::message::{
    AuditQuery, MOVED, MovedStream, NotOwner, OutgoingRequest, OwnerDecision, REQUEST, RejectedMessage,
    SEARCH, SeenNumbers,
};
use crate::peer::Peer;
use crate::pool::ConnectionPool;

/// A client for one other server, except for heartbeats, which have a connection of their own.
#[derive(Debug)]
pub struct PeerClient {
    pool: ConnectionPool,
    /// Connections for queries of the audit log.
    searches: ConnectionPool,
}

impl PeerClient {
    /// A client. It connects when it is used.
    #[must_use]
    pub fn new(peer: Peer, identity: Arc<PeerIdentity>, limits: PeerLimits) -> Self {
        let search_limits = PeerLimits { answer: limits.search, in_flight: limits.searches, ..limits };
        let searches = ConnectionPool::new(peer.clone(), Arc::clone(&identity), search_limits);
        Self { pool: ConnectionPool::new(peer, identity, limits), searches }
    }

    /// The other server.
    #[must_use]
    pub fn peer(&self) -> &Peer {
        self.pool.peer()
    }

    /// Closes connections that are not in use.
    pub fn disconnect(&self) {
        self.pool.disconnect();
        self.searches.disconnect();
    }

    /// Forwards a request to the server, which is believed to own its stream in that term. It answers once it has the
    /// batches that this server has seen. Dropping the future gives the answer up: the request may be carried out.
    pub async fn forward(&self, term: u64, seen: SeenNumbers, request: &Arc<Request>) -> ForwardOutcome {
        let body = match encode_request(term, seen, request).await {
            Ok(body) => body,
            Err(error) => return ForwardOutcome::NotSent(error),
        };
        match self.pool.exchange(&OutgoingMessage::post(REQUEST, body), REQUEST_BYTES_MAX).await {
            Ok(answer) => outcome(answer).await,
            Err(SendFailure::NotSent(error)) => ForwardOutcome::NotSent(error),
            Err(SendFailure::Unknown(error)) => ForwardOutcome::Unknown(error),
        }
    }

    /// Tells the server that a stream has another owner.
    ///
    /// # Errors
    /// Fails if the server has not confirmed it.
    pub async fn moved(&self, moved: &MovedStream) -> Result<(), PeerError> {
        let body = encode(moved).map_err(PeerError::InvalidAnswer)?;
        let answer = self.pool.exchange(&OutgoingMessage::post(MOVED, body), SMALL_BYTES_MAX).await;
        let answer = answer.map_err(SendFailure::into_error)?;
        if answer.status == StatusCode::NO_CONTENT.as_u16() { Ok(()) } else { Err(rejection(answer).await) }
    }

    /// Begins to read old audit entries of the server, on a connection of its own.
    ///
    /// # Errors
    /// Fails if the server cannot be reached, or has no entries to give now.
    pub async fn audit(&self, query: &AuditQuery) -> Result<AuditLines, PeerError> {
        let limits = self.pool.limits();
        let mut connection = self.pool.open().await?;
        let response = connection.send(&OutgoingMessage::get(query.target()), limits.answer).await;
        let response = response.map_err(SendFailure::into_error)?;
        let status = response.status();
        if status == StatusCode::OK {
            return Ok(AuditLines::new(connection, response.into_body(), limits.piece));
        }
        let body = read_body(response.into_body(), SMALL_BYTES_MAX, limits.answer).await;
        let body = body.map_err(|unread| unread.into_error(SMALL_BYTES_MAX, limits.answer))?;
        Err(rejection(WholeAnswer { status: status.as_u16(), body }).await)
    }

    /// Searches the audit log of the server.
    ///
    /// # Errors
    /// Fails if the server cannot be reached, cannot read its log now, or does not answer in time.
    pub async fn search(&self, search: &AuditSearch) -> Result<FoundEntries, PeerError> {
        let body = encode(search).map_err(PeerError::InvalidAnswer)?;
        if body.len() > SEARCH_BYTES_MAX {
            return Err(PeerError::TooLarge { bytes: body.len(), max: SEARCH_BYTES_MAX });
        }
        let answer = self.searches.exchange(&OutgoingMessage::post(SEARCH, body), REQUEST_BYTES_MAX).await;
        let answer = answer.map_err(SendFailure::into_error)?;
        if answer.status != StatusCode::OK.as_u16() {
            return Err(rejection(answer).await);
        }
        decode(answer.body).await.map_err(PeerError::InvalidAnswer)
    }
}

async fn encode_request(term: u64, seen: SeenNumbers, request: &Arc<Request>) -> Result<Bytes, PeerError> {
    let encode_on = move |request: &Request| encode(&OutgoingRequest::new(term, &seen, request));
    let encoded = if is_large(request) {
        let request = Arc::clone(request);
        let encoding = tokio::task::spawn_blocking(move || encode_on(&request));
        encoding.await.unwrap_or_else(|error| Err(error.to_string()))
    } else {
        encode_on(request)
    };
    let body = encoded.map_err(PeerError::InvalidAnswer)?;
    if body.len() > REQUEST_BYTES_MAX {
        return Err(PeerError::TooLarge { bytes: body.len(), max: REQUEST_BYTES_MAX });
    }
    Ok(body)
}

/// Returns true if writing the request as JSON takes long: heartbeats must not wait for it.
fn is_large(request: &Request) -> bool {
    match request {
        Request::Cluster(_, request) => request.is_large(),
        Request::Shared(_) => false,
    }
}

/// The outcome of a request with an answer. Only an answer that says so means that nothing has changed.
async fn outcome(answer: WholeAnswer) -> ForwardOutcome {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let invalid = |reason| ForwardOutcome::Unknown(PeerError::InvalidAnswer(reason));
    match status {
        StatusCode::OK => {
            let decided = decode::<Box<OwnerDecision>>(answer.body).await;
            decided.map_or_else(invalid, ForwardOutcome::Answered)
        }
        StatusCode::MISDIRECTED_REQUEST => {
            let decoded = decode::<NotOwner>(answer.body).await;
            decoded.map_or_else(invalid, ForwardOutcome::NotOwner)
        }
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::LOOP_DETECTED => {
            ForwardOutcome::NotSent(rejection(answer).await)
        }
        status if status.is_client_error() => ForwardOutcome::NotSent(rejection(answer).await),
        _ => ForwardOutcome::Unknown(rejection(answer).await),
    }
}

async fn rejection(answer: WholeAnswer) -> PeerError {
    let decoded = decode::<RejectedMessage>(answer.body).await;
    let reason = decoded.map_or_else(|_| "no reason is given".to_owned(), |rejected| rejected.reason);
    PeerError::Rejected { status: answer.status, reason }
}
