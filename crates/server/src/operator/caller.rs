//! The caller of a request: who it is, and what it may do.

use axum::Json;
use forewarn_control::shared::{Scope, SharedState};
use forewarn_control::{CallerView, ClusterId, Permit};

use super::access::role_word;
use super::context::OperatorRequest;

/// The caller of the request.
pub(super) async fn caller(request: OperatorRequest) -> Json<CallerView> {
    Json(caller_view(&request.permit, &request.control.shared()))
}

/// The holder of a permit.
pub(super) fn caller_view(permit: &Permit, shared: &SharedState) -> CallerView {
    let Scope { clusters, tenants } = &permit.scope;
    let cluster_name = |id: &ClusterId| shared.cluster_name(*id).map(ToString::to_string);
    CallerView {
        by: permit.by.clone(),
        role: role_word(permit.role),
        clusters: (!clusters.is_all()).then(|| clusters.named().filter_map(cluster_name).collect()),
        tenants: (!tenants.is_all()).then(|| tenants.named().map(ToString::to_string).collect()),
    }
}
