//! The operator API: what people and their tools ask for, as JSON under `/v1`.
//!
//! Handlers are thin: read, ask the engine, answer. What can be asked for, and what is shown, is
//! [`forewarn_wire::operator`]; what is refused is a problem document (RFC 9457).
//!
//! ```text
//!   GET  /v1/{hosts,machines,tenants,events,rollouts}[/NAME]   what there is
//!   GET  /v1/tenants/NAME/document                             what its machines would read, without enrolling it
//!   POST /v1/commands                                          one command by name
//!   POST /v1/rollouts/preview                                  what a rollout would do
//!   GET, POST /v1/fleet                                        all of it, declaratively
//!   GET, POST /v1/clock                                        the time
//!   GET  /v1/unfinished                                        whether something is over, or until it is
//!   GET  /v1/watch                                             what happens, as it happens
//!   GET  /v1/backup                                            a copy of the journal
//!   GET  /v1/server, /healthz, /readyz, /metrics               the server itself
//! ```

mod backup;
mod fault;
mod fleet;
mod gate;
mod health;
mod key;
mod metrics;
mod reads;
mod rejection;
mod watching;
mod wording;
mod writes;

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::get;
use forewarn_wire::operator::{FLEET_BYTES_MAX, ServerView};
use tokio::sync::watch;

use crate::engine::Engine;
use crate::telemetry::Telemetry;
use fault::Fault;
pub use key::KeyHash;
use metrics::Metrics;

/// Bytes in the body of a request that is not a fleet.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// What every handler needs.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    engine: Engine,
    about: Arc<ServerView>,
    telemetry: Arc<Telemetry>,
    metrics: Metrics,
    data_dir: Option<PathBuf>,
    stop: watch::Receiver<bool>,
}

/// Who may use the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Whoever can connect.
    Open,
    /// Whoever has the key.
    Key(KeyHash),
}

/// The operator API of an engine.
pub fn router(
    engine: Engine,
    about: ServerView,
    telemetry: Arc<Telemetry>,
    data_dir: Option<PathBuf>,
    access: Access,
    stop: watch::Receiver<bool>,
) -> Router {
    let metrics = telemetry.register(Metrics::new);
    let api = Api { engine, about: Arc::new(about), telemetry, metrics, data_dir, stop };
    let access = Arc::new(access);
    let v1 = Router::new()
        .route("/hosts", get(reads::hosts))
        .route("/hosts/{name}", get(reads::host))
        .route("/machines", get(reads::machines))
        .route("/machines/{name}", get(reads::machine))
        .route("/machines/{tenant}/{name}", get(reads::machine_of))
        .route("/tenants", get(reads::tenants))
        .route("/tenants/{name}", get(reads::tenant))
        .route("/tenants/{name}/document", get(reads::document))
        .route("/events", get(reads::events))
        .route("/events/{id}", get(reads::event))
        .route("/rollouts", get(reads::rollouts))
        .route("/rollouts/preview", axum::routing::post(reads::preview))
        .route("/rollouts/{id}", get(reads::rollout))
        .route("/clock", get(reads::clock).post(writes::clock))
        .route("/unfinished", get(reads::unfinished))
        .route("/server", get(reads::server))
        .route("/watch", get(watching::watch))
        .route("/backup", get(backup::backup))
        .route("/commands", axum::routing::post(writes::command))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX));
    let fleet = Router::new()
        .route("/fleet", get(fleet::show).post(fleet::apply))
        .layer(DefaultBodyLimit::max(FLEET_BYTES_MAX));
    Router::new()
        .nest("/v1", v1.merge(fleet))
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(metrics::metrics))
        .fallback(async || Fault::not_found("nothing is here\n  hint: the operator API is under /v1"))
        .method_not_allowed_fallback(async || Fault::method())
        .layer(axum::middleware::from_fn_with_state(access, gate::check))
        .with_state(api)
}
