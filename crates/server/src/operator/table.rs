//! All routes of the operator API.
//!
//! Whoever adds one writes it here, and nowhere else: see [`super::route`] for what is made of it.

use forewarn_control::schema::{EventId, MachineName, Name};
use forewarn_control::shared::Role;
use forewarn_control::{
    AuditPage, ClockOrder, ClockView, EventView, FLEET_BYTES_MAX, Fleet, FleetReport, HostView, Items,
    MachineView, NamedCommand, Outcome, RolloutEntry, RolloutView, ServerView, TenantView, Unfinished,
};
use forewarn_explain::{EventExplanation, MachineExplanation, PreviewView, ScaleSetExplanation};
use serde_json::json;

use super::fault::Kind::{Ambiguous, NotFound, Refused, Unavailable};
use super::needs::Needs;
use super::page::Paging;
use super::route::{FIRST_WORK, Link, Route, Subject};
use super::{
    audit, backup, explain, fleet, health, lists, metrics, openapi, reads, scalesets, table_access, watching,
    webhooks, writes,
};
use crate::telemetry::Telemetry;

/// Where the first thing of a page is.
macro_rules! first {
    ($member:literal) => {
        concat!("$response.body#/items/0/", $member)
    };
}

pub(super) fn routes() -> Vec<Route> {
    let cluster = [hosts(), machines(), tenants(), scalesets::routes(), work(), rollouts(), whole()];
    let server = [explanations(), trail(), server(), table_access::routes(), webhooks::routes()];
    cluster.into_iter().chain(server).flatten().collect()
}

fn hosts() -> Vec<Route> {
    let update = json!({ "command": "update_hosts", "hosts": [first!("name")] });
    let terms = json!({ "work": "update", "hosts": [first!("name")] });
    let rollout = json!({ "command": "start_rollout", "work": "migrate", "hosts": [first!("name")] });
    vec![
        Route::get("/v1/hosts", "listHosts", "Hosts: health, machines, work", lists::hosts)
            .needs(Needs::OfCluster(Role::Viewer))
            .about(Subject::Fleet)
            .of_cluster()
            .query::<lists::HostFilter>()
            .query::<Paging>()
            .json::<Items<HostView>>()
            .may_be(&[Unavailable])
            .link(Link::next_page("listHosts"))
            .link(Link::to("getHost", "One of them.").with("name", first!("name")))
            .link(Link::to("listMachines", "The machines of one.").with("host", first!("name")))
            .link(Link::to("sendCommand", "One of them is updated.").sending(update))
            .link(Link::to("sendCommand", "A rollout over it begins.").sending(rollout))
            .link(Link::to("previewRollout", "What a rollout over it would do.").sending(terms)),
        Route::get("/v1/hosts/{name}", "getHost", "A host", reads::host)
            .needs(Needs::OfCluster(Role::Viewer))
            .about(Subject::Fleet)
            .of_cluster()
            .part::<Name>("name")
            .json::<HostView>()
            .tagged()
            .may_be(&[Unavailable])
            .link(Link::to("listMachines", "Its machines.").with("host", "$response.body#/name")),
    ]
}

fn machines() -> Vec<Route> {
    let restart = json!({ "command": "restart", "machine": "{$response.body#/items/0/tenant}/{$response.body#/items/0/name}" });
    vec![
        Route::get(
            "/v1/machines",
            "listMachines",
            "Machines: host, power, boots, ephemeral disk, events",
            lists::machines,
        )
        .about(Subject::Fleet)
        .of_cluster()
        .query::<lists::MachineFilter>()
        .query::<Paging>()
        .json::<Items<MachineView>>()
        .may_be(&[NotFound, Unavailable])
        .link(Link::next_page("listMachines"))
        .link(machine_of(first!("tenant"), first!("name")))
        .link(explained(first!("tenant"), first!("name")))
        .link(Link::to("getHost", "The host of one.").with("name", first!("host")))
        .link(Link::to("sendCommand", "One of them is restarted.").sending(restart)),
        Route::get("/v1/machines/{name}", "getMachine", "A machine whose name is unique", reads::machine)
            .about(Subject::Fleet)
            .of_cluster()
            .part::<MachineName>("name")
            .json::<MachineView>()
            .tagged()
            .may_be(&[Ambiguous, Unavailable])
            .link(machine_of("$response.body#/tenant", "$response.body#/name"))
            .link(Link::to("explainMachine", "What has happened to it.").with("name", "$response.body#/name"))
            .link(Link::to("getHost", "Its host.").with("name", "$response.body#/host")),
        Route::get(
            "/v1/machines/{tenant}/{name}",
            "getMachineOfTenant",
            "A machine of a tenant",
            reads::machine_of,
        )
        .about(Subject::Fleet)
        .of_cluster()
        .part::<Name>("tenant")
        .part::<Name>("name")
        .json::<MachineView>()
        .tagged()
        .may_be(&[Unavailable])
        .link(machine_of("$response.body#/tenant", "$response.body#/name").changed())
        .link(explained("$response.body#/tenant", "$response.body#/name"))
        .link(Link::to("getTenant", "Its tenant.").with("name", "$response.body#/tenant"))
        .link(Link::to("getHost", "Its host.").with("name", "$response.body#/host")),
    ]
}

/// Who the machines belong to.
fn tenants() -> Vec<Route> {
    vec![
        Route::get(
            "/v1/tenants",
            "listTenants",
            "Tenants: kind, whether enrolled, incarnation, events",
            lists::tenants,
        )
        .about(Subject::Fleet)
        .of_cluster()
        .query::<Paging>()
        .json::<Items<TenantView>>()
        .may_be(&[Unavailable])
        .link(Link::next_page("listTenants"))
        .link(Link::to("getTenant", "One of them.").with("name", first!("name")))
        .link(Link::to("getDocument", "What one of them reads.").with("name", first!("name")))
        .link(Link::to("listEvents", "What one of them sees.").with("tenant", first!("name"))),
        Route::get("/v1/tenants/{name}", "getTenant", "A tenant", reads::tenant)
            .about(Subject::Fleet)
            .of_cluster()
            .part::<Name>("name")
            .json::<TenantView>()
            .tagged()
            .may_be(&[Unavailable])
            .link(Link::to("getPolicy", "Its policy.").with("name", "$response.body#/name"))
            .link(Link::to("listMachines", "Its machines.").with("tenant", "$response.body#/name"))
            .link(Link::to("listEvents", "What it sees.").with("tenant", "$response.body#/name")),
        Route::get(
            "/v1/tenants/{name}/document",
            "getDocument",
            "What the machines of a tenant would read; asking does not enrol it",
            reads::document,
        )
        .about(Subject::Work)
        .of_cluster()
        .part::<Name>("name")
        .query::<reads::Version>()
        .json::<reads::ScheduledEvents>()
        .may_be(&[Unavailable]),
    ]
}

/// What is done, and what is announced of it.
fn work() -> Vec<Route> {
    let of = |command: &str| json!({ "command": command, "event": first!("id") });
    let approve = json!({ "command": "approve", "tenant": first!("tenant"), "events": [first!("id")] });
    let made = "$response.body#/events/0/id";
    let begun = "$response.body#/rollouts/0";
    let begun_is = |command: &str| json!({ "command": command, "rollout": begun });
    vec![
        Route::get(
            "/v1/events",
            "listEvents",
            "Events that can be seen: why, who approved, what they wait for",
            lists::events,
        )
        .about(Subject::Work)
.of_cluster()
        .query::<lists::EventFilter>()
        .query::<Paging>()
        .json::<Items<EventView>>()
        .may_be(&[NotFound, Unavailable])
        .link(Link::next_page("listEvents"))
        .link(Link::to("getEvent", "One of them.").with("id", first!("id")))
        .link(Link::to("explainEvent", "Why there is one.").with("id", first!("id")))
        .link(Link::to("sendCommand", "One of them is approved.").sending(approve))
        .link(Link::to("sendCommand", "One of them is taken back.").sending(of("cancel")))
        .link(Link::to("sendCommand", "One of them starts at once.").sending(of("force_start"))),
        Route::get("/v1/events/{id}", "getEvent", "An event", reads::event)
            .about(Subject::Work)
.of_cluster()
            .part::<EventId>("id")
            .json::<EventView>()
            .tagged()
            .may_be(&[Unavailable])
            .link(Link::to("explainEvent", "Why there is such an event.").with("id", "$response.body#/id"))
            .link(Link::to("getTenant", "Whose it is.").with("name", "$response.body#/tenant")),
        Route::post::<NamedCommand, _, _>("/v1/commands", "sendCommand", "One command", writes::command)
            .about(Subject::Work)
.of_cluster()
            .json::<Outcome>()
            .may_be(&[NotFound, Refused, Ambiguous, Unavailable])
            .link(Link::to("getEvent", "What is announced.").with("id", made))
            .link(Link::to("explainEvent", "Why it is.").with("id", made))
            .link(Link::to("getUnfinished", "Whether it is over.").with("work", FIRST_WORK))
            .link(Link::to("getRollout", "The rollout that has begun.").with("id", begun))
            .link(Link::to("sendCommand", "It is paused.").sending(begun_is("pause_rollout")))
            .link(Link::to("sendCommand", "It is given up.").sending(begun_is("cancel_rollout")))
            .link(Link::to("getHost", "The host that has joined.").with("name", "$request.body#/name"))
            .link(Link::to("getTenant", "The tenant that has joined.").with("name", "$request.body#/name")),
        Route::get(
            "/v1/unfinished",
            "getUnfinished",
            "Which work is not over, and how the rest ended; answered when none is left, or after `wait`",
            reads::unfinished,
        )
        .about(Subject::Work)
.of_cluster()
        .query::<reads::Asked>()
        .json::<Unfinished>()
        .may_be(&[Unavailable]),
        Route::get("/v1/watch", "watch", "What happens, as it happens", watching::watch)
            .about(Subject::Work)
.of_cluster()
            .query::<watching::Filter>()
            .other(
                "text/event-stream",
                "Server-sent events without end. The `data` of each is an entry of the trail, a `AuditEntry` as JSON, with \
                 its number as `id`; or, without one, `{\"kind\":\"missed\",\"text\":…}`, where entries are not kept any \
                 more. Who comes back with `Last-Event-ID` is told everything since.",
            )
            .resumed()
            .may_be(&[NotFound, Unavailable]),
    ]
}

/// What it means, that was asked for and has happened.
fn explanations() -> Vec<Route> {
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
            "/v1/scalesets/{name}/explanation",
            "explainScaleSet",
            "What instances of a scale set are told of their deletion, and what is unusual; also of one that could not be made",
            explain::scale_set,
        )
        .about(Subject::Trail)
        .of_cluster()
        .part::<Name>("name")
        .json::<ScaleSetExplanation>()
        .may_be(&[Unavailable])
        .link(Link::to("explainEvent", "What is coming.").with("id", "$response.body#/coming/0/event")),
    ]
}

/// What was asked for and what has happened.
fn trail() -> Vec<Route> {
    vec![
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
        .link(Link::to("listAudit", "What follows, the newest first.").with("before", "$response.body#/next"))
        .link(told(Link::to("explainEvent", "The event of one.").with("id", first!("events/0"))))
        .link(told(Link::to("getRollout", "The rollout of one.").with("id", first!("rollout"))))
        .link(told(Link::to("getHost", "The host of one.").with("name", first!("hosts/0"))))
        .link(told(Link::to("getTenant", "The tenant of one.").with("name", first!("tenants/0")))),
        Route::get(
            "/v1/audit/export",
            "exportAudit",
            "The whole trail, as `forewarn audit verify` reads it",
            audit::export,
        )
        .about(Subject::Trail)
        .needs(Needs::OfServer(Role::Viewer))
        .query::<audit::Part>()
        .other(audit::NDJSON, "A `AuditEntry` a line, the oldest first; if it breaks off, it is not whole.")
        .may_be(&[Unavailable]),
    ]
}

/// Work over many hosts.
fn rollouts() -> Vec<Route> {
    let id = "$response.body#/id";
    let of = |command: &str, rollout: &str| json!({ "command": command, "rollout": rollout });
    let on_other_terms = json!({ "command": "change_rollout", "rollout": id, "terms": { "at_once": 1 } });
    vec![
        Route::get(
            "/v1/rollouts",
            "listRollouts",
            "Rollouts: terms, how far they are, what they wait for, what failed",
            lists::rollouts,
        )
        .needs(Needs::OfCluster(Role::Viewer))
        .about(Subject::Work)
        .of_cluster()
        .query::<lists::RolloutFilter>()
        .query::<Paging>()
        .json::<Items<RolloutView>>()
        .may_be(&[Unavailable])
        .link(Link::next_page("listRollouts"))
        .link(Link::to("getRollout", "One of them.").with("id", first!("id")))
        .link(Link::to("sendCommand", "One of them is paused.").sending(of("pause_rollout", first!("id"))))
        .link(Link::to("sendCommand", "One of them goes on.").sending(of("resume_rollout", first!("id"))))
        .link(
            Link::to("sendCommand", "One of them is given up.").sending(of("cancel_rollout", first!("id"))),
        ),
        Route::get("/v1/rollouts/{id}", "getRollout", "A rollout, be it over", reads::rollout)
            .needs(Needs::OfCluster(Role::Viewer))
            .about(Subject::Work)
            .of_cluster()
            .part::<u64>("id")
            .json::<RolloutView>()
            .tagged()
            .may_be(&[NotFound, Unavailable])
            .link(Link::to("sendCommand", "It is paused.").sending(of("pause_rollout", id)))
            .link(Link::to("sendCommand", "It goes on.").sending(of("resume_rollout", id)))
            .link(Link::to("sendCommand", "It has other terms.").sending(on_other_terms)),
        Route::post::<RolloutEntry, _, _>(
            "/v1/rollouts/preview",
            "previewRollout",
            "What a rollout would do, played on a copy: once when nobody approves, once when everybody does",
            reads::preview,
        )
        .changing_nothing()
        .needs(Needs::OfCluster(Role::Viewer))
        .about(Subject::Work)
        .of_cluster()
        .json::<PreviewView>()
        .may_be(&[NotFound, Refused, Unavailable]),
    ]
}

/// All of it at once: the fleet, and the time.
fn whole() -> Vec<Route> {
    vec![
        Route::get("/v1/fleet", "getFleet", "The fleet as a whole", fleet::show)
            .needs(Needs::OfCluster(Role::Viewer))
            .about(Subject::Fleet)
            .of_cluster()
            .json::<Fleet>()
            .tagged()
            .may_be(&[Unavailable])
            .link(Link::to("getFleet", "What it is by then.").changed()),
        Route::post::<Fleet, _, _>(
            "/v1/fleet",
            "applyFleet",
            "Makes the fleet what a file says",
            fleet::apply,
        )
        .needs(Needs::OfCluster(Role::Admin))
        .about(Subject::Fleet)
        .of_cluster()
        .query::<fleet::How>()
        .body_bytes_max(FLEET_BYTES_MAX)
        .json::<FleetReport>()
        .may_be(&[NotFound, Refused, Ambiguous, Unavailable])
        .link(Link::to("getFleet", "What it is now."))
        .link(Link::to("getHost", "A host of it.").with("name", "$request.body#/host/0/name")),
        Route::get("/v1/clock", "getClock", "The time", reads::clock)
            .about(Subject::Clock)
            .json::<ClockView>()
            .may_be(&[Unavailable]),
        Route::post::<ClockOrder, _, _>("/v1/clock", "setClock", "Drives a virtual clock", writes::clock)
            .needs(Needs::OfServer(Role::Operator))
            .about(Subject::Clock)
            .json::<ClockView>()
            .may_be(&[Refused, Unavailable])
            .link(Link::to("getClock", "What it shows."))
            .link(Link::to("listEvents", "What there is now.")),
    ]
}

/// The server itself.
fn server() -> Vec<Route> {
    vec![
        Route::get(
            "/v1/backup",
            "getBackup",
            "A copy of all that is kept, as `forewarn store import` reads it",
            backup::backup,
        )
        .needs(Needs::OfServer(Role::Admin))
        .other("application/octet-stream", "The copy; if it breaks off, it is none.")
        .may_be(&[Refused, Unavailable]),
        Route::get("/v1/server", "getServer", "Version, mode, where the metadata endpoint is", reads::server)
            .json::<ServerView>(),
        Route::get("/v1/openapi.json", "getOpenApi", "This API, for programs", openapi::show)
            .needs(Needs::Nothing)
            .json::<serde_json::Map<String, serde_json::Value>>(),
        Route::get("/healthz", "getHealth", "Whether the server lives", health::healthz)
            .needs(Needs::Nothing)
            .other("text/plain", "It does."),
        Route::get("/readyz", "getReadiness", "Whether it can be asked", health::readyz)
            .needs(Needs::Nothing)
            .other("text/plain", "It can.")
            .may_be(&[Unavailable]),
        Route::get("/metrics", "getMetrics", "What is counted, for Prometheus", metrics::metrics)
            .needs(Needs::OfServer(Role::Viewer))
            .other(Telemetry::CONTENT_TYPE, "What is counted."),
    ]
}

fn machine_of(tenant: &'static str, name: &'static str) -> Link {
    Link::to("getMachineOfTenant", "By its full name.").with("tenant", tenant).with("name", name)
}

fn explained(tenant: &'static str, name: &'static str) -> Link {
    let link = Link::to("explainMachineOfTenant", "What has happened to it.");
    link.with("tenant", tenant).with("name", name)
}

/// In the cluster that an entry of the trail is about.
fn told(link: Link) -> Link {
    link.with("cluster", first!("cluster"))
}
