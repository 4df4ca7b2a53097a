//! The routes of the trail: what was asked for and what has happened, and what that means.

use forewarn_catalogue::Role;
use forewarn_wire::operator::schema::{EventId, MachineName, Name};
use forewarn_wire::operator::{AuditPage, EventExplanation, MachineExplanation};

use super::fault::Kind::{Ambiguous, NotFound, Unavailable};
use super::route::{Link, Needs, Route, Subject};
use super::{audit, explain};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(
            "/v1/events/{id}/explanation",
            "explainEvent",
            "Why there is an event, who asked for it, who blocks, what happens next; also of one that is over",
            explain::event,
        )
        .about(Subject::Trail)
        .of_cluster()
        .part::<EventId>("id")
        .json::<EventExplanation>()
        .may_be(&[Unavailable])
        .link(Link::to("listAudit", "All that the trail has of it.").with("event", "$response.body#/id")),
        Route::get(
            "/v1/machines/{name}/explanation",
            "explainMachine",
            "What has happened to a machine, who asked for it, and what is coming; also of one that is gone",
            explain::machine,
        )
        .about(Subject::Trail)
        .of_cluster()
        .part::<MachineName>("name")
        .query::<explain::History>()
        .json::<MachineExplanation>()
        .may_be(&[Ambiguous, Unavailable])
        .link(Link::to("listAudit", "All that the trail has of it.").with("machine", "$response.body#/name")),
        Route::get(
            "/v1/machines/{tenant}/{name}/explanation",
            "explainMachineOfTenant",
            "The same of a machine of a tenant",
            explain::machine_of,
        )
        .about(Subject::Trail)
        .of_cluster()
        .part::<Name>("tenant")
        .part::<Name>("name")
        .query::<explain::History>()
        .json::<MachineExplanation>()
        .may_be(&[Unavailable])
        .link(Link::to("listAudit", "All that the trail has of it.").with("machine", "$response.body#/name")),
        Route::get(
            "/v1/audit",
            "listAudit",
            "The trail: who asked for what, and what has happened",
            audit::list,
        )
        .about(Subject::Trail)
        .query::<audit::Filter>()
        .json::<AuditPage>()
        .may_be(&[NotFound, Ambiguous, Unavailable])
        .link(Link::to("listAudit", "What follows, the newest first.").with("before", "$response.body#/next")),
        Route::get(
            "/v1/audit/export",
            "exportAudit",
            "The whole trail, as `forewarn audit verify` reads it",
            audit::export,
        )
        .about(Subject::Trail)
        .needs(Needs::OfServer(Role::Viewer))
        .query::<audit::Part>()
        .other(audit::NDJSON, "One entry a line, the oldest first; if it breaks off, it is not whole.")
        .may_be(&[Unavailable]),
    ]
}
