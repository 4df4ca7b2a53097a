//! Responses of the HTTP listener.

use std::net::IpAddr;

use forewarn_types::EventId;
use http_body_util::Full;
use hyper::body::{Body, Bytes};
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};

use super::RequestHandler;
use crate::peers::{self, Key, NONCE, Nonce, PEER, PROOF};
use crate::status::RetriedHook;

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json; charset=utf-8";
const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type WebResponse = Response<Full<Bytes>>;

/// The path of retries; an id of an event may follow.
const RETRY: &str = "/retry";

/// The header of a request for a retry. A web page cannot send it to another host.
const CLIENT: &str = "forewarn-agent";

/// Marks a response to an authenticated peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProvenPeer;

impl<M: Fn() -> String> RequestHandler<M> {
    /// Responds to a request from the address `from`, received on the address `here`.
    pub(super) async fn respond<B: Body>(
        &self,
        request: &Request<B>,
        from: IpAddr,
        here: Option<IpAddr>,
    ) -> WebResponse {
        match request.uri().path().strip_prefix(RETRY) {
            Some(event) if event.is_empty() || event.starts_with('/') => {
                self.retry(request, from, here, event.trim_start_matches('/')).await
            }
            Some(_) | None => self.respond_from_board(request, from, here),
        }
    }

    /// Has the agent run failed hooks again: of one event, or of all.
    async fn retry<B: Body>(
        &self,
        request: &Request<B>,
        from: IpAddr,
        here: Option<IpAddr>,
        event: &str,
    ) -> WebResponse {
        if *request.method() != Method::POST {
            return not_allowed("POST", "only POST is allowed\n");
        }
        if !request.body().is_end_stream() {
            return text_response(StatusCode::PAYLOAD_TOO_LARGE, "request bodies are not accepted\n");
        }
        if !is_local(request.headers(), from, here) || !request.headers().contains_key(CLIENT) {
            return text_response(
                StatusCode::FORBIDDEN,
                "only available to forewarn-agent on this machine\n",
            );
        }
        let id = EventId::parse(event);
        if id.is_none() && !event.is_empty() {
            return text_response(StatusCode::BAD_REQUEST, "not an event id\n");
        }
        let Some(tasks) = self.board.retry(id).await else {
            return text_response(StatusCode::SERVICE_UNAVAILABLE, "the agent is stopping\n");
        };
        let hooks: Vec<_> = tasks.into_iter().map(RetriedHook::from).collect();
        // The list always serialises.
        build_response(StatusCode::OK, JSON, serde_json::to_vec(&hooks).unwrap_or_default())
    }

    /// Responds with published state.
    pub(super) fn respond_from_board<B: Body>(
        &self,
        request: &Request<B>,
        from: IpAddr,
        here: Option<IpAddr>,
    ) -> WebResponse {
        let path = request.uri().path();
        let is_known =
            matches!(path, "/healthz" | "/readyz" | "/ready" | "/metrics" | "/status" | peers::PATH);
        if !is_known {
            return text_response(StatusCode::NOT_FOUND, "not found\n");
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return not_allowed("GET, HEAD", "only GET and HEAD are allowed\n");
        }
        if !request.body().is_end_stream() {
            return text_response(StatusCode::PAYLOAD_TOO_LARGE, "request bodies are not accepted\n");
        }
        let published = self.board.published.borrow().clone();
        match path {
            "/healthz" => text_response(StatusCode::OK, "ok\n"),
            "/readyz" if published.ready => text_response(StatusCode::OK, "ready\n"),
            "/readyz" => text_response(StatusCode::SERVICE_UNAVAILABLE, "not ready\n"),
            "/ready" if published.drained => text_response(StatusCode::SERVICE_UNAVAILABLE, "draining\n"),
            "/ready" => text_response(StatusCode::OK, "serving\n"),
            "/metrics" => build_response(StatusCode::OK, METRICS, (self.metrics)()),
            "/status" if is_local(request.headers(), from, here) => {
                // The status always serialises.
                build_response(
                    StatusCode::OK,
                    JSON,
                    serde_json::to_vec(&*published.status).unwrap_or_default(),
                )
            }
            "/status" => text_response(StatusCode::FORBIDDEN, "only available on this machine\n"),
            _ => self.peer_status(request.headers(), &published.peer_status),
        }
    }

    /// The status of this machine, for a peer that has the key.
    fn peer_status(&self, headers: &HeaderMap, peer_status: &forewarn_agent_core::PeerStatus) -> WebResponse {
        let Some(key) = &self.key else {
            return text_response(StatusCode::NOT_FOUND, "this agent has no peer key\n");
        };
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let nonce = text(NONCE).and_then(Nonce::parse);
        let peer = headers.get(PEER).map(HeaderValue::as_bytes).filter(|name| peers::is_peer_name(name));
        let (Some(nonce), Some(peer), Some(proof)) = (nonce, peer, text(PROOF)) else {
            return text_response(StatusCode::FORBIDDEN, "only available to peers\n");
        };
        if !key.is_request(&nonce, peer, proof) {
            return text_response(StatusCode::FORBIDDEN, "only available to peers\n");
        }
        let mut response = Self::signed_status(key, &nonce, peer_status);
        response.extensions_mut().insert(ProvenPeer);
        response
    }

    fn signed_status(key: &Key, nonce: &Nonce, peer_status: &forewarn_agent_core::PeerStatus) -> WebResponse {
        if peer_status.name.is_empty() {
            return text_response(StatusCode::SERVICE_UNAVAILABLE, "the machine name is not known yet\n");
        }
        // The report always serialises.
        let body = serde_json::to_vec(peer_status).unwrap_or_default();
        let proof = HeaderValue::from_str(&key.prove_response(nonce, &body));
        let mut response = build_response(StatusCode::OK, JSON, body);
        if let Ok(proof) = proof {
            response.headers_mut().insert(HeaderName::from_static(PROOF), proof);
        }
        response
    }
}

/// True for a local caller, except a web page whose host name resolves to this machine.
///
/// A caller whose address is the requested address is local.
fn is_local(headers: &HeaderMap, from: IpAddr, here: Option<IpAddr>) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        Some(_) | None => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    (from.to_canonical().is_loopback() || here == Some(from))
        && (name == "localhost" || name.parse::<IpAddr>().is_ok())
}

fn not_allowed(allowed: &'static str, text: &'static str) -> WebResponse {
    let mut response = text_response(StatusCode::METHOD_NOT_ALLOWED, text);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

fn text_response(status: StatusCode, text: &'static str) -> WebResponse {
    build_response(status, TEXT, text)
}

fn build_response(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> WebResponse {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
