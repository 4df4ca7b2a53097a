//! What is answered to which request.

use std::net::IpAddr;

use http_body_util::Full;
use hyper::body::{Body, Bytes};
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};

use super::Desk;
use crate::peers::{self, ASKER, Key, NONCE, Nonce, PROOF};

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json; charset=utf-8";
const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Answer = Response<Full<Bytes>>;

/// Mark of an answer to a request that has proven to come from a peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProvenPeer;

impl<M: Fn() -> String> Desk<M> {
    /// Answers a request that comes from that address, to that address of this machine.
    pub(super) fn answer<B: Body>(&self, request: &Request<B>, from: IpAddr, here: Option<IpAddr>) -> Answer {
        let path = request.uri().path();
        let is_known =
            matches!(path, "/healthz" | "/readyz" | "/ready" | "/metrics" | "/status" | peers::PATH);
        if !is_known {
            return say(StatusCode::NOT_FOUND, "there is nothing here\n");
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut answer = say(StatusCode::METHOD_NOT_ALLOWED, "this can only be read\n");
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return answer;
        }
        if !request.body().is_end_stream() {
            return say(StatusCode::PAYLOAD_TOO_LARGE, "nobody wants a body here\n");
        }
        let shown = self.board.borrow().clone();
        match path {
            "/healthz" => say(StatusCode::OK, "ok\n"),
            "/readyz" if shown.ready => say(StatusCode::OK, "ready\n"),
            "/readyz" => say(StatusCode::SERVICE_UNAVAILABLE, "not ready\n"),
            "/ready" if shown.drained => say(StatusCode::SERVICE_UNAVAILABLE, "draining\n"),
            "/ready" => say(StatusCode::OK, "serving\n"),
            "/metrics" => tell(StatusCode::OK, METRICS, (self.metrics)()),
            "/status" if is_of_this_machine(request.headers(), from, here) => {
                // A status has nothing in it that cannot be written.
                tell(StatusCode::OK, JSON, serde_json::to_vec(&*shown.status).unwrap_or_default())
            }
            "/status" => say(StatusCode::FORBIDDEN, "only this machine is told\n"),
            _ => self.word(request.headers(), &shown.word),
        }
    }

    /// How this machine stands, for a peer that has the key.
    fn word(&self, headers: &HeaderMap, word: &forewarn_agent_core::PeerWord) -> Answer {
        let Some(key) = &self.key else {
            return say(StatusCode::NOT_FOUND, "this agent has no key, and so no peers\n");
        };
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let nonce = text(NONCE).and_then(Nonce::parse);
        let asker = headers.get(ASKER).map(HeaderValue::as_bytes).filter(|name| peers::is_asker(name));
        let (Some(nonce), Some(asker), Some(proof)) = (nonce, asker, text(PROOF)) else {
            return say(StatusCode::FORBIDDEN, "only peers are told\n");
        };
        if !key.is_ask(&nonce, asker, proof) {
            return say(StatusCode::FORBIDDEN, "only peers are told\n");
        }
        let mut answer = Self::proven_word(key, &nonce, word);
        answer.extensions_mut().insert(ProvenPeer);
        answer
    }

    fn proven_word(key: &Key, nonce: &Nonce, word: &forewarn_agent_core::PeerWord) -> Answer {
        if word.name.is_empty() {
            return say(
                StatusCode::SERVICE_UNAVAILABLE,
                "this machine does not know yet what it is called\n",
            );
        }
        // A word has nothing in it that cannot be written.
        let body = serde_json::to_vec(word).unwrap_or_default();
        let proof = HeaderValue::from_str(&key.prove_word(nonce, &body));
        let mut answer = tell(StatusCode::OK, JSON, body);
        if let Ok(proof) = proof {
            answer.headers_mut().insert(HeaderName::from_static(PROOF), proof);
        }
        answer
    }
}

/// Whether somebody on this machine asks, and no web page by a name that it has pointed here.
///
/// Whoever asks an address of this machine from the same address is on it.
fn is_of_this_machine(headers: &HeaderMap, from: IpAddr, here: Option<IpAddr>) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        Some(_) | None => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    (from.to_canonical().is_loopback() || here == Some(from))
        && (name == "localhost" || name.parse::<IpAddr>().is_ok())
}

fn say(status: StatusCode, text: &'static str) -> Answer {
    tell(status, TEXT, text)
}

fn tell(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}
