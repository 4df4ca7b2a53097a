//! Routes of the listener: one message each.
//!
//! A status below 500, and 503, mean that nothing was carried out.

use std::sync::Arc;

use forewarn_types::Name;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::audit_search::AuditSearch;
use crate::bodies::{AnswerBody, UnreadBody, decode, encode, encode_apart, read_body};
use crate::handler::{PeerHandler, RequestAnswer};
use crate::limits::{
    HEARTBEAT_BYTES_MAX, ListenerLimits, REQUEST_BYTES_MAX, SEARCH_BYTES_MAX, SMALL_BYTES_MAX,
};
use crate::message::{
    AUDIT, AuditQuery, HEARTBEAT, HELLO, Heartbeat, Hello, IncomingRequest, MOVED, MovedStream, REQUEST,
    RejectedMessage, SEARCH,
};

/// The state of a connection: its handler, and both servers.
#[derive(Debug)]
pub(crate) struct Routes<H> {
    pub(crate) handler: Arc<H>,
    pub(crate) limits: ListenerLimits,
    /// Name of this server.
    pub(crate) server: Name,
    /// Name of the caller, from its certificate.
    pub(crate) caller: Name,
}

type Answer = Response<AnswerBody>;

/// A message that is not carried out, or not in time.
struct Rejection {
    status: StatusCode,
    reason: String,
}

impl<H: PeerHandler> Routes<H> {
    /// Answers one message.
    pub(crate) async fn answer(&self, message: Request<Incoming>) -> Answer {
        let (head, body) = message.into_parts();
        let answered = match (head.uri.path(), &head.method) {
            (HELLO, &Method::GET) => json(StatusCode::OK, &Hello { server: self.server.clone() }),
            (HEARTBEAT, &Method::POST) => self.heartbeat(body).await,
            (REQUEST, &Method::POST) => self.request(body).await,
            (MOVED, &Method::POST) => self.moved(body).await,
            (AUDIT, &Method::GET) => self.audit(head.uri.query().unwrap_or_default()).await,
            (SEARCH, &Method::POST) => self.search(body).await,
            (HELLO | HEARTBEAT | REQUEST | MOVED | AUDIT | SEARCH, _) => {
                Err(Rejection::new(StatusCode::METHOD_NOT_ALLOWED, "another method is needed"))
            }
            (_, _) => Err(Rejection::new(StatusCode::NOT_FOUND, "no such message")),
        };
        answered.unwrap_or_else(Rejection::answer)
    }

    async fn heartbeat(&self, body: Incoming) -> Result<Answer, Rejection> {
        let heartbeat: Heartbeat = self.read(body, HEARTBEAT_BYTES_MAX).await?;
        if heartbeat.from != self.caller {
            let reason = format!("a heartbeat of {} from server {}", heartbeat.from, self.caller);
            return Err(Rejection::new(StatusCode::FORBIDDEN, reason));
        }
        let answered = timeout(self.limits.handler, self.handler.heartbeat(&self.caller, heartbeat)).await;
        json(StatusCode::OK, &answered.map_err(|_| Rejection::too_late())?)
    }

    async fn request(&self, body: Incoming) -> Result<Answer, Rejection> {
        let request: IncomingRequest = self.read(body, REQUEST_BYTES_MAX).await?;
        let request = request
            .received()
            .ok_or_else(|| Rejection::new(StatusCode::LOOP_DETECTED, "the request was forwarded already"))?;
        let (handler, caller) = (Arc::clone(&self.handler), self.caller.clone());
        // The handler goes on if the caller hangs up.
        let deciding = tokio::spawn(async move { handler.request(&caller, request).await });
        let decided = timeout(self.limits.handler, deciding).await.map_err(|_| Rejection::too_late())?;
        match decided
            .map_err(|_| Rejection::new(StatusCode::INTERNAL_SERVER_ERROR, "the handler has failed"))?
        {
            RequestAnswer::Decided(decision) => json_bytes(StatusCode::OK, encode_apart(decision).await),
            RequestAnswer::NotOwner(not_owner) => json(StatusCode::MISDIRECTED_REQUEST, &not_owner),
            RequestAnswer::Unavailable(reason) => {
                Err(Rejection::new(StatusCode::SERVICE_UNAVAILABLE, reason.to_string()))
            }
        }
    }

    async fn moved(&self, body: Incoming) -> Result<Answer, Rejection> {
        let moved: MovedStream = self.read(body, SMALL_BYTES_MAX).await?;
        let noted = timeout(self.limits.handler, self.handler.moved(&self.caller, moved)).await;
        noted.map_err(|_| Rejection::too_late())?;
        Ok(answer(StatusCode::NO_CONTENT, Bytes::new()))
    }

    async fn audit(&self, query: &str) -> Result<Answer, Rejection> {
        let query = AuditQuery::parse(query)
            .ok_or_else(|| Rejection::new(StatusCode::BAD_REQUEST, "not a query of audit entries"))?;
        let begun = timeout(self.limits.handler, self.handler.audit(&self.caller, query)).await;
        let begun = begun.map_err(|_| Rejection::too_late())?;
        let chunks =
            begun.map_err(|reason| Rejection::new(StatusCode::SERVICE_UNAVAILABLE, reason.to_string()))?;
        Ok(Response::new(AnswerBody::lines(chunks, self.limits.piece)))
    }

    async fn search(&self, body: Incoming) -> Result<Answer, Rejection> {
        let search: AuditSearch = self.read(body, SEARCH_BYTES_MAX).await?;
        let found = timeout(self.limits.handler, self.handler.search(&self.caller, search)).await;
        let found = found.map_err(|_| Rejection::too_late())?;
        let found =
            found.map_err(|reason| Rejection::new(StatusCode::SERVICE_UNAVAILABLE, reason.to_string()))?;
        json_bytes(StatusCode::OK, encode_apart(found).await)
    }

    async fn read<T: DeserializeOwned + Send + 'static>(
        &self,
        body: Incoming,
        bytes_max: usize,
    ) -> Result<T, Rejection> {
        let bytes = read_body(body, bytes_max, self.limits.body).await.map_err(|unread| match unread {
            UnreadBody::TooLarge => {
                Rejection::new(StatusCode::PAYLOAD_TOO_LARGE, format!("more than {bytes_max} bytes"))
            }
            UnreadBody::TimedOut => Rejection::new(StatusCode::REQUEST_TIMEOUT, "the body takes too long"),
            UnreadBody::BrokenOff(reason) => Rejection::new(StatusCode::BAD_REQUEST, reason),
        })?;
        decode(bytes).await.map_err(|reason| Rejection::new(StatusCode::BAD_REQUEST, reason))
    }
}

impl Rejection {
    fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        Self { status, reason: reason.into() }
    }

    /// The handler took too long: it may still carry the message out.
    fn too_late() -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, "the answer takes too long")
    }

    fn answer(self) -> Answer {
        let body = encode(&RejectedMessage { reason: self.reason });
        answer(self.status, body.unwrap_or_default())
    }
}

fn json(status: StatusCode, value: &impl Serialize) -> Result<Answer, Rejection> {
    json_bytes(status, encode(value))
}

fn json_bytes(status: StatusCode, encoded: Result<Bytes, String>) -> Result<Answer, Rejection> {
    let encoded = encoded.map_err(|reason| Rejection::new(StatusCode::INTERNAL_SERVER_ERROR, reason))?;
    Ok(answer(status, encoded))
}

fn answer(status: StatusCode, body: Bytes) -> Answer {
    let mut response = Response::new(AnswerBody::Whole(Full::new(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
