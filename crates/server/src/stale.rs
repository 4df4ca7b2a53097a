//! Marks responses that may be stale: the journal cannot be written, so the state is that of the last commit.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::{self, Next};
use axum::response::Response;

use crate::control_handle::ControlHandle;

/// The header of a response that may be stale.
pub const STALE: HeaderName = HeaderName::from_static("forewarn-stale");

/// Marks the responses of a router.
pub(crate) fn mark_stale(router: Router, control: &ControlHandle) -> Router {
    router.layer(middleware::from_fn_with_state(control.clone(), mark))
}

async fn mark(State(control): State<ControlHandle>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    if control.write_error().is_some() {
        response.headers_mut().insert(STALE, HeaderValue::from_static("true"));
    }
    response
}
