//! Marks responses that may be stale: the journal cannot be written, or the cluster of the request has failed, so the
//! state is that of the last commit.

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::{self, Next};
use axum::response::Response;
use forewarn_control::ClusterId;

use crate::control_handle::ControlHandle;

/// The header of a response that may be stale.
pub const STALE: HeaderName = HeaderName::from_static("forewarn-stale");

/// The cluster that a request reads or changes. The handler sets it; requests to the server as a whole have none.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestCluster(Arc<OnceLock<ClusterId>>);

impl RequestCluster {
    pub(crate) fn set(&self, cluster: ClusterId) {
        // A request has one cluster.
        self.0.get_or_init(|| cluster);
    }
}

/// Marks the responses of a router.
pub(crate) fn mark_stale(router: Router, control: &ControlHandle) -> Router {
    router.layer(middleware::from_fn_with_state(control.clone(), mark))
}

async fn mark(State(control): State<ControlHandle>, mut request: Request, next: Next) -> Response {
    let cluster = RequestCluster::default();
    request.extensions_mut().insert(cluster.clone());
    let mut response = next.run(request).await;
    let has_failed = || cluster.0.get().is_some_and(|id| control.of(*id).failure().is_some());
    if control.write_error().is_some() || has_failed() {
        response.headers_mut().insert(STALE, HeaderValue::from_static("true"));
    }
    response
}
