//! The operator API: JSON under `/v1`, for operators and their tools.
//!
//! Handlers are thin: they decode a request, call the control handle and encode the result. Commands and views are
//! those of [`forewarn_control`]; errors are problem documents (RFC 9457).
//!
//! ```text
//!   routes ──▶ router: authenticate ──▶ validate (parameters, headers) ──▶ handler
//!          ├─▶ /v1/openapi.json
//!          └─▶ docs/reference/operator-api.md; a test compares
//! ```

mod access;
mod audit;
mod audit_cursor;
mod audit_log;
mod audit_pages;
mod audit_stream;
#[cfg(test)]
mod audit_tests;
mod authenticate;
mod backup;
mod body;
mod caller;
mod context;
mod dashboard;
mod decode_errors;
mod explain;
#[cfg(test)]
mod failed_cluster_tests;
mod faults;
mod fleet;
mod header;
mod health;
mod index;
mod lists;
mod machine_sets;
mod metrics;
mod openapi;
mod page;
mod problem;
mod reads;
mod realm;
#[cfg(test)]
mod realm_audit_tests;
mod rejection;
mod required_permit;
mod route;
mod routes;
mod saved_state;
mod scalesets;
mod schemas;
mod seen_entries;
mod sessions;
mod settings;
mod stories;
mod stream_numbers;
mod tagged;
#[cfg(test)]
mod tests;
mod token;
mod validate;
mod visibility;
mod webhooks;
mod while_valid;
mod work_metrics;
mod writes;

pub use saved_state::SAVED_STATE_BYTES_MAX;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use forewarn_control::ServerView;
use tokio::sync::watch;

use crate::clients::{ConnectionRefusal, RefusalFormat};
use crate::control_handle::ControlHandle;
use crate::scheme::Scheme;
use crate::stale::mark_stale;
use crate::telemetry::Telemetry;
use crate::webhooks::WebhooksShared;
use audit_stream::{AuditFeed, StreamMetrics};
use authenticate::Authenticator;
pub use authenticate::{ForeignRequest, HostNames, bearer, foreign};
pub use dashboard::{OWN_PAGE_HEADER, cookie_value, is_own_page, session_cookie};
use metrics::Metrics;
use problem::{ApiProblem, ProblemKind};
use required_permit::RequiredPermit;
use route::Route;
use sessions::Sessions;
pub(crate) use token::{PresentedToken, Secret, hash};
pub use token::{TokenError, find as find_token};

/// State of every handler.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    control: ControlHandle,
    about: Arc<ServerView>,
    telemetry: Arc<Telemetry>,
    metrics: Metrics,
    webhooks: Arc<WebhooksShared>,
    feed: Arc<AuditFeed>,
    data_dir: Option<PathBuf>,
    /// Sessions of the dashboard.
    sessions: Arc<Sessions>,
    /// Requests that this listener admits.
    access: Access,
    /// Scheme of this listener's URL.
    scheme: Scheme,
    /// The OpenAPI document, generated on first request.
    openapi: Arc<OnceLock<Bytes>>,
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
    /// Distributes audit entries to streams until the server stops.
    pub(crate) fn run_feed(&self, stop: watch::Receiver<bool>) -> impl Future<Output = ()> + use<> {
        Arc::clone(&self.feed).run(stop)
    }

    /// The paths that can be read, each with the permit that it needs.
    #[allow(clippy::unused_self, reason = "handlers have the API, and the route table has the handlers")]
    fn readable_paths(&self) -> Vec<(&'static str, RequiredPermit)> {
        let readable = routes::routes().into_iter().filter(|route| route.method == Method::GET);
        readable.map(|route| (route.path, route.requires)).collect()
    }

    /// The OpenAPI document of this listener.
    fn openapi(&self) -> Bytes {
        let write = || openapi::document(&routes::routes(), &self.access).to_string().into();
        self.openapi.get_or_init(write).clone()
    }
}

/// State that all operator listeners share. Its feed of audit entries has to be run.
pub(crate) fn api(
    control: ControlHandle,
    about: ServerView,
    telemetry: Arc<Telemetry>,
    webhooks: Arc<WebhooksShared>,
    data_dir: Option<PathBuf>,
) -> Api {
    let metrics = telemetry.register(Metrics::new);
    let feed = AuditFeed::new(control.clone(), telemetry.register(StreamMetrics::new));
    let (access, scheme, openapi) = (Access::Tokens, Scheme::Http, Arc::default());
    let (about, sessions) = (Arc::new(about), Arc::default());
    Api { control, about, telemetry, metrics, webhooks, feed, data_dir, sessions, access, scheme, openapi }
}

/// The operator API and the dashboard, behind one listener.
pub(crate) fn router(api: Api, access: Access, scheme: Scheme, names: HostNames) -> Router {
    let routes = routes::routes();
    let api = Api { access, scheme, openapi: Arc::default(), ..api };
    let public_paths = routes
        .iter()
        .filter(|route| route.requires == RequiredPermit::None)
        .map(|route| route.path)
        .collect();
    let (control, sessions) = (api.control.clone(), Arc::clone(&api.sessions));
    let authenticator = Arc::new(Authenticator { access, names, public_paths, control, sessions });
    let add = |router: Router<Api>, (path, handler)| router.route(path, handler);
    let router = routes.into_iter().map(Route::validated).fold(Router::new(), add);
    let router = dashboard::session_routes(dashboard::routes(router));
    let control = api.control.clone();
    let router = router
        .fallback(async || ApiProblem::not_found("no such path\n  hint: the operator API is under /v1"))
        .method_not_allowed_fallback(async || ApiProblem::method())
        .layer(axum::middleware::from_fn_with_state(api.control.clone(), name_failure))
        .layer(axum::middleware::from_fn_with_state(authenticator, authenticate::check))
        .with_state(api);
    mark_stale(router, &control)
}

/// Adds the reason to every 503 response of a handler.
async fn name_failure(State(control): State<ControlHandle>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    match control.write_error().filter(|_| response.status() == StatusCode::SERVICE_UNAVAILABLE) {
        Some(reason) => ApiProblem::unavailable(reason).into_response(),
        None => response,
    }
}

/// Rejections by listeners, as problem documents (RFC 9457).
pub(crate) const PROBLEM_REFUSALS: RefusalFormat =
    RefusalFormat { content_type: "application/problem+json", body: problem_text };

/// The problem document of a rejected connection, as JSON.
fn problem_text(refusal: ConnectionRefusal) -> String {
    let problem = match refusal {
        ConnectionRefusal::Busy => ApiProblem::new(
            ProblemKind::Busy,
            "the server has too many connections\n  hint: try again; authenticated connections are not closed",
        ),
        ConnectionRefusal::TooSlow => ApiProblem::new(ProblemKind::TooSlow, "the request timed out"),
    };
    problem.text()
}
