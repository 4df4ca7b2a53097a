//! Routes of events, commands, unfinished work, the live audit log, and rollouts.

use forewarn_control::schema::EventId;
use forewarn_control::shared::Role;
use forewarn_control::{EventView, Items, NamedCommand, Outcome, RolloutEntry, RolloutView, Unfinished};
use forewarn_explain::PreviewView;
use serde_json::json;

use super::super::page::Paging;
use super::super::problem::ProblemKind::{Ambiguous, NotFound, Refused, Unavailable};
use super::super::required_permit::RequiredPermit;
use super::super::route::{FIRST_WORK, Link, Route, RouteTag};
use super::super::{audit_stream, lists, reads, writes};

#[allow(clippy::too_many_lines, reason = "one entry for each route")]
pub(super) fn work() -> Vec<Route> {
    let of = |command: &str| json!({ "command": command, "event": first!("id") });
    let approve = json!({ "command": "approve", "tenant": first!("tenant"), "events": [first!("id")] });
    let made = "$response.body#/events/0/id";
    let begun = "$response.body#/rollouts/0";
    let begun_is = |command: &str| json!({ "command": command, "rollout": begun });
    vec![
        Route::get(
            "/v1/events",
            "listEvents",
            "List active events with cause, approval and progress",
            lists::events,
        )
        .tag(RouteTag::Work)
            .of_cluster()
        .query::<lists::EventFilter>()
        .query::<Paging>()
        .json::<Items<EventView>>()
        .may_fail_with(&[NotFound, Unavailable])
        .link(Link::next_page("listEvents"))
        .link(Link::to("getEvent", "One item of the list.").with("id", first!("id")))
        .link(Link::to("explainEvent", "Explanation of the first event.").with("id", first!("id")))
        .link(Link::to("sendCommand", "Approve the first event.").sending(approve))
        .link(Link::to("sendCommand", "Cancel the first event.").sending(of("cancel")))
        .link(Link::to("sendCommand", "Start the first event at once.").sending(of("force_start"))),
        Route::get("/v1/events/{id}", "getEvent", "Get an event", reads::event)
            .tag(RouteTag::Work)
            .of_cluster()
            .path_parameter::<EventId>("id")
            .json::<EventView>()
            .tagged()
            .may_fail_with(&[Unavailable])
            .link(Link::to("explainEvent", "Explanation of the event.").with("id", "$response.body#/id"))
            .link(Link::to("getTenant", "Its tenant.").with("name", "$response.body#/tenant")),
        Route::post::<NamedCommand, _, _>("/v1/commands", "sendCommand", "Run one command", writes::command)
            .tag(RouteTag::Work)
            .of_cluster()
            .announcing()
            .json::<Outcome>()
            .may_fail_with(&[NotFound, Refused, Ambiguous, Unavailable])
            .link(Link::to("getEvent", "The announced event.").with("id", made))
            .link(Link::to("explainEvent", "Explanation of the announced event.").with("id", made))
            .link(Link::to("getUnfinished", "Wait for the work.").with("work", FIRST_WORK))
            .link(Link::to("getRollout", "The started rollout.").with("id", begun))
            .link(Link::to("sendCommand", "Pause the rollout.").sending(begun_is("pause_rollout")))
            .link(Link::to("sendCommand", "Cancel the rollout.").sending(begun_is("cancel_rollout")))
            .link(Link::to("getHost", "The admitted host.").with("name", "$request.body#/name"))
            .link(Link::to("getTenant", "The admitted tenant.").with("name", "$request.body#/name")),
        Route::get(
            "/v1/unfinished",
            "getUnfinished",
            "Get unfinished work and the outcome of finished work; waits up to `wait` until none is left",
            reads::unfinished,
        )
        .tag(RouteTag::Work)
            .of_cluster()
        .query::<reads::UnfinishedQuery>()
        .json::<Unfinished>()
        .may_fail_with(&[Unavailable]),
        Route::get("/v1/watch", "watch", "Stream audit entries as they are written", audit_stream::watch)
            .tag(RouteTag::Work)
            .of_cluster()
            .query::<audit_stream::WatchFilter>()
            .other(
                "text/event-stream",
                "Server-sent events without end. The `data` of each is an audit entry, an `AuditEntry` as JSON, with \
                 an opaque `id`; or, without an id, `{\"kind\":\"missed\",\"text\":…}`, where entries have been \
                 deleted. A client that reconnects with `Last-Event-ID` receives each other entry once.",
            )
            .resumed()
            .may_fail_with(&[NotFound, Unavailable]),
    ]
}

pub(super) fn rollouts() -> Vec<Route> {
    let id = "$response.body#/id";
    let of = |command: &str, rollout: &str| json!({ "command": command, "rollout": rollout });
    let on_other_terms = json!({ "command": "change_rollout", "rollout": id, "terms": { "at_once": 1 } });
    vec![
        Route::get(
            "/v1/rollouts",
            "listRollouts",
            "List rollouts with terms, progress, reason for waiting and failures",
            lists::rollouts,
        )
        .requires(RequiredPermit::Cluster(Role::Viewer))
        .tag(RouteTag::Work)
        .of_cluster()
        .query::<lists::RolloutFilter>()
        .query::<Paging>()
        .json::<Items<RolloutView>>()
        .may_fail_with(&[Unavailable])
        .link(Link::next_page("listRollouts"))
        .link(Link::to("getRollout", "One item of the list.").with("id", first!("id")))
        .link(Link::to("sendCommand", "Pause the first rollout.").sending(of("pause_rollout", first!("id"))))
        .link(
            Link::to("sendCommand", "Resume the first rollout.").sending(of("resume_rollout", first!("id"))),
        )
        .link(
            Link::to("sendCommand", "Cancel the first rollout.").sending(of("cancel_rollout", first!("id"))),
        ),
        Route::get("/v1/rollouts/{id}", "getRollout", "Get a rollout, running or ended", reads::rollout)
            .requires(RequiredPermit::Cluster(Role::Viewer))
            .tag(RouteTag::Work)
            .of_cluster()
            .path_parameter::<u64>("id")
            .json::<RolloutView>()
            .tagged()
            .may_fail_with(&[NotFound, Unavailable])
            .link(Link::to("sendCommand", "Pause the rollout.").sending(of("pause_rollout", id)))
            .link(Link::to("sendCommand", "Resume the rollout.").sending(of("resume_rollout", id)))
            .link(Link::to("sendCommand", "Change its terms.").sending(on_other_terms)),
        Route::post::<RolloutEntry, _, _>(
            "/v1/rollouts/preview",
            "previewRollout",
            "Simulate a rollout on a copy of the cluster, once without approvals and once with all approvals",
            reads::preview,
        )
        .changing_nothing()
        .requires(RequiredPermit::Cluster(Role::Viewer))
        .tag(RouteTag::Work)
        .of_cluster()
        .json::<PreviewView>()
        .may_fail_with(&[NotFound, Refused, Unavailable]),
    ]
}
