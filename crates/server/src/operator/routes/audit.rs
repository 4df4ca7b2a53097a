//! Routes of explanations and the audit log.

use forewarn_control::AuditPage;
use forewarn_control::schema::{EventId, MachineName, Name};
use forewarn_control::shared::Role;
use forewarn_explain::{EventExplanation, MachineExplanation, ScaleSetExplanation};

use super::super::problem::ProblemKind::{Ambiguous, NotFound, Unavailable};
use super::super::required_permit::RequiredPermit;
use super::super::route::{Link, Route, RouteTag};
use super::super::{audit, explain};

pub(super) fn explanations() -> Vec<Route> {
    vec![
        Route::get(
            "/v1/events/{id}/explanation",
            "explainEvent",
            "Explain an event: cause, requester, blockers, next step; also after it has completed",
            explain::event,
        )
        .tag(RouteTag::Audit)
        .of_cluster()
        .path_parameter::<EventId>("id")
        .json::<EventExplanation>()
        .may_fail_with(&[Unavailable])
        .link(Link::to("listAudit", "Its audit entries.").with("event", "$response.body#/id")),
        Route::get(
            "/v1/machines/{name}/explanation",
            "explainMachine",
            "Explain a machine: history, requesters, upcoming events; also after its deletion",
            explain::machine,
        )
        .tag(RouteTag::Audit)
        .of_cluster()
        .path_parameter::<MachineName>("name")
        .query::<explain::HistoryQuery>()
        .json::<MachineExplanation>()
        .may_fail_with(&[Ambiguous, Unavailable])
        .link(Link::to("listAudit", "Its audit entries.").with("machine", "$response.body#/name")),
        Route::get(
            "/v1/machines/{tenant}/{name}/explanation",
            "explainMachineOfTenant",
            "Explain a machine by tenant and name",
            explain::machine_of,
        )
        .tag(RouteTag::Audit)
        .of_cluster()
        .path_parameter::<Name>("tenant")
        .path_parameter::<Name>("name")
        .query::<explain::HistoryQuery>()
        .json::<MachineExplanation>()
        .may_fail_with(&[Unavailable])
        .link(Link::to("listAudit", "Its audit entries.").with("machine", "$response.body#/name")),
        Route::get(
            "/v1/scalesets/{name}/explanation",
            "explainScaleSet",
            "Explain a scale set: termination notice of its instances and anomalies; also if its creation was rejected",
            explain::scale_set,
        )
        .tag(RouteTag::Audit)
        .of_cluster()
        .path_parameter::<Name>("name")
        .json::<ScaleSetExplanation>()
        .may_fail_with(&[Unavailable])
        .link(Link::to("explainEvent", "Upcoming event.").with("id", "$response.body#/coming/0/event")),
    ]
}

pub(super) fn audit_log() -> Vec<Route> {
    vec![
        Route::get("/v1/audit", "listAudit", "List audit entries: requests and what happened", audit::list)
            .tag(RouteTag::Audit)
            .query::<audit::AuditFilter>()
            .json::<AuditPage>()
            .may_fail_with(&[NotFound, Ambiguous, Unavailable])
            .link(Link::to("listAudit", "Next page, newest first.").with("before", "$response.body#/next"))
            .link(in_cluster_of_entry(
                Link::to("explainEvent", "Event of the first entry.").with("id", first!("events/0")),
            ))
            .link(in_cluster_of_entry(
                Link::to("getRollout", "Rollout of the first entry.").with("id", first!("rollout")),
            ))
            .link(in_cluster_of_entry(
                Link::to("getHost", "Host of the first entry.").with("name", first!("hosts/0")),
            ))
            .link(in_cluster_of_entry(
                Link::to("getTenant", "Tenant of the first entry.").with("name", first!("tenants/0")),
            )),
        Route::get(
            "/v1/audit/export",
            "exportAudit",
            "Export the audit log, of all clusters or of one, in the format of `forewarn audit verify`",
            audit::export,
        )
        .tag(RouteTag::Audit)
        .requires(RequiredPermit::Cluster(Role::Viewer))
        .query::<audit::ExportQuery>()
        .other(
            audit::NDJSON,
            "One `AuditEntry` per line, oldest first. The export is incomplete if the connection breaks.",
        )
        .may_fail_with(&[NotFound, Unavailable]),
    ]
}

/// Follows a link in the cluster of the first audit entry.
fn in_cluster_of_entry(link: Link) -> Link {
    link.with("cluster", first!("cluster"))
}
