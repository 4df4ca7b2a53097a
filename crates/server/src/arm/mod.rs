//! Azure Resource Manager: so that `az` and the SDKs drive the fleet.
//!
//! ```text
//!   https listener ─┐
//!                   ├─▶ gate (who) ─▶ Call (what) ─▶ serve: by the segments of the path ─▶ handlers
//!   operator door ──┘                                      │
//!                                                          └─▶ Engine::arrange: commands, rows and an operation in one commit
//! ```
//!
//! Shapes and rules of bodies are [`forewarn_wire::arm`]; here are the routes, and what is asked of the engine.

mod call;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use forewarn_wire::arm::ArmError;

use crate::engine::Engine;
pub(crate) use call::{Call, Scheme};

/// What every handler needs.
#[derive(Clone, Debug)]
pub(crate) struct Arm {
    pub(crate) engine: Engine,
    /// How clients reach the door through which this is seen.
    pub(crate) scheme: Scheme,
}

/// Everything that clients of Azure ask for, behind one door. Whoever asks has come through a gate.
pub(crate) fn router(arm: Arm) -> Router {
    Router::new().fallback(answer).with_state(arm)
}

async fn answer(State(arm): State<Arm>, request: Request) -> Response {
    let asked = request.headers().get("x-ms-client-request-id").cloned();
    let answered = match Call::read(request, arm.scheme).await {
        Ok(call) => serve(&arm, call).await,
        Err(refused) => Err(refused),
    };
    let mut response = answered.unwrap_or_else(|refused| show(&refused));
    let id = HeaderValue::from_str(&request_id()).unwrap_or_else(|_| HeaderValue::from_static(""));
    let headers = response.headers_mut();
    headers.insert("x-ms-request-id", id.clone());
    headers.insert("x-ms-correlation-request-id", id);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Some(asked) = asked {
        headers.insert("x-ms-client-request-id", asked);
    }
    response
}

/// Finds who answers a request.
pub(crate) async fn serve(_arm: &Arm, call: Call) -> Result<Response, ArmError> {
    Err(nothing_here(&call))
}

/// Nothing answers to that path.
pub(crate) fn nothing_here(call: &Call) -> ArmError {
    let message = format!("No resource or action is at '{} /{}'.", call.method, call.path.join("/"));
    ArmError::new(404, "NotFound", message)
}

/// A refusal as clients read it.
pub(crate) fn show(refused: &ArmError) -> Response {
    let status = StatusCode::from_u16(refused.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, Json(refused.body())).into_response();
    if status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if status == StatusCode::NO_CONTENT {
        *response.body_mut() = Body::empty();
    }
    response
}

/// A number by which this request could be called.
fn request_id() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("00000000-0000-0000-{:04x}-{:012x}", number >> 48, number & 0xffff_ffff_ffff)
}
