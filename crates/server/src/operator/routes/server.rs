//! Routes of the clock and of the server itself.

use forewarn_control::shared::Role;
use forewarn_control::{CallerView, ClockChange, ClockView, ServerView};

use super::super::problem::ProblemKind::{Refused, Unavailable};
use super::super::required_permit::RequiredPermit;
use super::super::route::{Link, Route, RouteTag};
use super::super::saved_state::{self, SAVED_STATE_BYTES_MAX, SavedState};
use super::super::{backup, caller, health, index, metrics, openapi, reads, writes};
use crate::telemetry::Telemetry;

pub(super) fn clock() -> Vec<Route> {
    vec![
        Route::get("/v1/clock", "getClock", "Get the clock", reads::clock)
            .tag(RouteTag::Clock)
            .json::<ClockView>()
            .may_fail_with(&[Unavailable]),
        Route::post::<ClockChange, _, _>("/v1/clock", "setClock", "Set a virtual clock", writes::clock)
            .requires(RequiredPermit::Server(Role::Operator))
            .tag(RouteTag::Clock)
            .json::<ClockView>()
            .may_fail_with(&[Refused, Unavailable])
            .link(Link::to("getClock", "Get the clock."))
            .link(Link::to("listEvents", "Events at the new time.")),
    ]
}

pub(super) fn caller() -> Vec<Route> {
    vec![
        Route::get(
            "/v1/caller",
            "getCaller",
            "Get the caller of this request: name, role, clusters and tenants",
            caller::caller,
        )
        .json::<CallerView>(),
    ]
}

pub(super) fn server() -> Vec<Route> {
    vec![
        Route::get(
            index::PATH,
            "getIndex",
            "Get the index: version, documentation, and paths to read",
            index::index,
        )
        .json::<index::IndexView>(),
        Route::get(
            "/v1/backup",
            "getBackup",
            "Download a backup of the store, in the format of `forewarn store import`",
            backup::backup,
        )
        .requires(RequiredPermit::Server(Role::Admin))
        .other("application/octet-stream", "The backup. It is unusable if the connection breaks.")
        .may_fail_with(&[Refused, Unavailable]),
        Route::command(
            "/v1/reset",
            "resetServer",
            "Return a server for development to its initial fleet, clock and settings",
            saved_state::reset,
        )
        .requires(RequiredPermit::Server(Role::Admin))
        .json::<ClockView>()
        .may_fail_with(&[Refused, Unavailable]),
        Route::get(
            "/v1/state",
            "getState",
            "Save the whole state of a server for development",
            saved_state::save,
        )
        .requires(RequiredPermit::Server(Role::Admin))
        .json::<SavedState>()
        .may_fail_with(&[Refused, Unavailable]),
        Route::put::<SavedState, _, _>(
            "/v1/state",
            "setState",
            "Replace the whole state of a server for development by a saved one",
            saved_state::load,
        )
        .unconditional()
        .requires(RequiredPermit::Server(Role::Admin))
        .body_bytes_max(SAVED_STATE_BYTES_MAX)
        .json::<ClockView>()
        .may_fail_with(&[Refused, Unavailable]),
        Route::get(
            "/v1/server",
            "getServer",
            "Get version, mode and metadata endpoint addresses",
            reads::server,
        )
        .json::<ServerView>(),
        Route::get("/v1/openapi.json", "getOpenApi", "Get the OpenAPI document", openapi::show)
            .requires(RequiredPermit::None)
            .json::<serde_json::Map<String, serde_json::Value>>(),
        Route::get("/healthz", "getHealth", "Liveness check", health::healthz)
            .requires(RequiredPermit::None)
            .other("text/plain", "The process is alive."),
        Route::get("/readyz", "getReadiness", "Readiness check", health::readyz)
            .requires(RequiredPermit::None)
            .other("text/plain", "The server is ready.")
            .may_fail_with(&[Unavailable]),
        Route::get("/metrics", "getMetrics", "Get metrics in the OpenMetrics format", metrics::metrics)
            .requires(RequiredPermit::Server(Role::Viewer))
            .other(Telemetry::CONTENT_TYPE, "Metrics."),
    ]
}
