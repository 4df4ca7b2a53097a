//! The operator API: what people and their tools ask for, as JSON under `/v1`.
//!
//! Handlers are thin: read, ask the engine, answer. What can be asked for, and what is shown, is
//! [`forewarn_control`]; what is refused is a problem document (RFC 9457).
//!
//! ```text
//!   table ──▶ router: gate (who) ──▶ guard (parameters, headers) ──▶ handler
//!         ├─▶ /v1/openapi.json, for programs
//!         └─▶ docs/reference/operator-api.md, for people; a test compares
//! ```

mod access;
mod audience;
mod audit;
mod backup;
mod behaviour;
mod body;
mod explain;
mod fault;
mod fleet;
mod gate;
mod guard;
mod header;
mod health;
mod lists;
mod metrics;
mod needs;
mod openapi;
mod page;
mod reads;
mod rejection;
mod route;
mod scalesets;
mod schemas;
mod table;
mod table_access;
mod tagged;
#[cfg(test)]
mod tests;
mod token;
#[cfg(test)]
mod trail_tests;
mod visit;
mod watching;
mod webhooks;
mod while_valid;
mod wording;
mod writes;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use forewarn_control::ServerView;
use tokio::sync::watch;

use crate::clients::{ConnectionRefusal, RefusalFormat};
use crate::control_handle::ControlHandle;
use crate::stale::mark_stale;
use crate::telemetry::Telemetry;
use crate::webhooks::Post;
use fault::{Fault, Kind};
use gate::Gate;
pub use gate::{ForeignRequest, HostNames, authenticate_connection, bearer, foreign};
use metrics::Metrics;
use needs::Needs;
use route::Route;
pub use token::{NotAdmitted, find as find_token};
pub(crate) use token::{Secret, hash};

/// What every handler needs.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    engine: ControlHandle,
    about: Arc<ServerView>,
    telemetry: Arc<Telemetry>,
    metrics: Metrics,
    webhooks: Arc<Post>,
    data_dir: Option<PathBuf>,
    /// Who may use the door through which this is seen.
    access: Access,
    /// The document for programs, once somebody has asked for it.
    openapi: Arc<OnceLock<Bytes>>,
    stop: watch::Receiver<bool>,
}

/// Requests that a listener admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// All of them. The audit log names their sender so: `anyone`, `socket`.
    Open(&'static str),
    /// Those with a token.
    Tokens,
}

impl Api {
    /// The OpenAPI document of this listener.
    fn openapi(&self) -> Bytes {
        let write = || openapi::document(&table::routes(), &self.access).to_string().into();
        self.openapi.get_or_init(write).clone()
    }
}

/// What every door of operators shares.
pub(crate) fn api(
    engine: ControlHandle,
    about: ServerView,
    telemetry: Arc<Telemetry>,
    webhooks: Arc<Post>,
    data_dir: Option<PathBuf>,
    stop: watch::Receiver<bool>,
) -> Api {
    let metrics = telemetry.register(Metrics::new);
    let (access, openapi) = (Access::Tokens, Arc::default());
    Api { engine, about: Arc::new(about), telemetry, metrics, webhooks, data_dir, access, openapi, stop }
}

/// The operator API behind one listener.
pub(crate) fn router(api: Api, access: Access, names: HostNames) -> Router {
    let routes = table::routes();
    let api = Api { access, openapi: Arc::default(), ..api };
    let free = routes.iter().filter(|route| route.needs == Needs::Nothing).map(|route| route.path).collect();
    let gate = Arc::new(Gate { access, names, free, engine: api.engine.clone() });
    let add = |router: Router<Api>, (path, handler)| router.route(path, handler);
    let router = routes.into_iter().map(Route::guarded).fold(Router::new(), add);
    let engine = api.engine.clone();
    let router = router
        .fallback(async || Fault::not_found("nothing is here\n  hint: the operator API is under /v1"))
        .method_not_allowed_fallback(async || Fault::method())
        .layer(axum::middleware::from_fn_with_state(api.engine.clone(), name_failure))
        .layer(axum::middleware::from_fn_with_state(gate, gate::check))
        .with_state(api);
    mark_stale(router, &engine)
}

/// Names the reason in every response that says that nothing can be written now.
async fn name_failure(State(engine): State<ControlHandle>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    match engine.trouble().filter(|_| response.status() == StatusCode::SERVICE_UNAVAILABLE) {
        Some(reason) => Fault::unavailable(reason).into_response(),
        None => response,
    }
}

/// Refusals of listeners as problem documents (RFC 9457).
pub(crate) const PROBLEM_REFUSALS: RefusalFormat =
    RefusalFormat { content_type: "application/problem+json", body: problem_text };

/// The problem document of a refusal that no handler has seen, as JSON.
fn problem_text(refusal: ConnectionRefusal) -> String {
    let fault = match refusal {
        ConnectionRefusal::Busy => Fault::new(
            Kind::Busy,
            "the server has too many connections\n  hint: try again; a connection that has shown a token keeps its place",
        ),
        ConnectionRefusal::TooSlow => Fault::new(Kind::TooSlow, "the request did not arrive in time"),
    };
    fault.text()
}
