//! Routes of hosts, machines, tenants, and the fleet as a whole.

use forewarn_control::schema::{MachineName, Name};
use forewarn_control::shared::Role;
use forewarn_control::{FLEET_BYTES_MAX, Fleet, FleetReport, HostView, Items, MachineView, TenantView};
use serde_json::json;

use super::super::page::Paging;
use super::super::problem::ProblemKind::{Ambiguous, NotFound, Refused, Unavailable};
use super::super::required_permit::RequiredPermit;
use super::super::route::{Link, Route, RouteTag};
use super::super::{fleet, lists, reads};

pub(super) fn hosts() -> Vec<Route> {
    let update = json!({ "command": "update_hosts", "hosts": [first!("name")] });
    let terms = json!({ "kind": "update", "hosts": [first!("name")] });
    let rollout = json!({ "command": "start_rollout", "kind": "migrate", "hosts": [first!("name")] });
    vec![
        Route::get("/v1/hosts", "listHosts", "List hosts with their health, machines and work", lists::hosts)
            .requires(RequiredPermit::Cluster(Role::Viewer))
            .tag(RouteTag::Fleet)
            .of_cluster()
            .query::<lists::HostFilter>()
            .query::<Paging>()
            .json::<Items<HostView>>()
            .may_fail_with(&[Unavailable])
            .link(Link::next_page("listHosts"))
            .link(Link::to("getHost", "One item of the list.").with("name", first!("name")))
            .link(Link::to("listMachines", "Machines of the first host.").with("host", first!("name")))
            .link(Link::to("sendCommand", "Update the first host.").sending(update))
            .link(Link::to("sendCommand", "Start a rollout over the first host.").sending(rollout))
            .link(Link::to("previewRollout", "Preview a rollout over the first host.").sending(terms)),
        Route::get("/v1/hosts/{name}", "getHost", "Get a host", reads::host)
            .requires(RequiredPermit::Cluster(Role::Viewer))
            .tag(RouteTag::Fleet)
            .of_cluster()
            .path_parameter::<Name>("name")
            .json::<HostView>()
            .tagged()
            .may_fail_with(&[Unavailable])
            .link(Link::to("listMachines", "Its machines.").with("host", "$response.body#/name")),
    ]
}

pub(super) fn machines() -> Vec<Route> {
    let restart = json!({ "command": "restart", "machine": "{$response.body#/items/0/tenant}/{$response.body#/items/0/name}" });
    vec![
        Route::get(
            "/v1/machines",
            "listMachines",
            "List machines with host, power state, boots, ephemeral disk and events",
            lists::machines,
        )
        .tag(RouteTag::Fleet)
        .of_cluster()
        .query::<lists::MachineFilter>()
        .query::<Paging>()
        .json::<Items<MachineView>>()
        .may_fail_with(&[NotFound, Unavailable])
        .link(Link::next_page("listMachines"))
        .link(machine_of(first!("tenant"), first!("name")))
        .link(explained(first!("tenant"), first!("name")))
        .link(Link::to("getHost", "Host of the first machine.").with("name", first!("host")))
        .link(Link::to("sendCommand", "Restart the first machine.").sending(restart)),
        Route::get("/v1/machines/{name}", "getMachine", "Get a machine by its unique name", reads::machine)
            .tag(RouteTag::Fleet)
            .of_cluster()
            .path_parameter::<MachineName>("name")
            .json::<MachineView>()
            .tagged()
            .may_fail_with(&[Ambiguous, Unavailable])
            .link(machine_of("$response.body#/tenant", "$response.body#/name"))
            .link(Link::to("explainMachine", "History of the machine.").with("name", "$response.body#/name"))
            .link(Link::to("getHost", "Its host.").with("name", "$response.body#/host")),
        Route::get(
            "/v1/machines/{tenant}/{name}",
            "getMachineOfTenant",
            "Get a machine by tenant and name",
            reads::machine_of,
        )
        .tag(RouteTag::Fleet)
        .of_cluster()
        .path_parameter::<Name>("tenant")
        .path_parameter::<Name>("name")
        .json::<MachineView>()
        .tagged()
        .may_fail_with(&[Unavailable])
        .link(machine_of("$response.body#/tenant", "$response.body#/name").changed())
        .link(explained("$response.body#/tenant", "$response.body#/name"))
        .link(Link::to("getTenant", "Its tenant.").with("name", "$response.body#/tenant"))
        .link(Link::to("getHost", "Its host.").with("name", "$response.body#/host")),
    ]
}

pub(super) fn tenants() -> Vec<Route> {
    vec![
        Route::get(
            "/v1/tenants",
            "listTenants",
            "List tenants with kind, enrolment, document incarnation and events",
            lists::tenants,
        )
        .tag(RouteTag::Fleet)
        .of_cluster()
        .query::<Paging>()
        .json::<Items<TenantView>>()
        .may_fail_with(&[Unavailable])
        .link(Link::next_page("listTenants"))
        .link(Link::to("getTenant", "One item of the list.").with("name", first!("name")))
        .link(Link::to("getDocument", "Document of the first tenant.").with("name", first!("name")))
        .link(Link::to("listEvents", "Events of the first tenant.").with("tenant", first!("name"))),
        Route::get("/v1/tenants/{name}", "getTenant", "Get a tenant", reads::tenant)
            .tag(RouteTag::Fleet)
            .of_cluster()
            .path_parameter::<Name>("name")
            .json::<TenantView>()
            .tagged()
            .may_fail_with(&[Unavailable])
            .link(Link::to("getPolicy", "Its policy.").with("name", "$response.body#/name"))
            .link(Link::to("listMachines", "Its machines.").with("tenant", "$response.body#/name"))
            .link(Link::to("listEvents", "Its events.").with("tenant", "$response.body#/name")),
        Route::get(
            "/v1/tenants/{name}/document",
            "getDocument",
            "Get the Scheduled Events document of a tenant, without enrolling it",
            reads::document,
        )
        .tag(RouteTag::Work)
        .of_cluster()
        .path_parameter::<Name>("name")
        .query::<reads::DocumentQuery>()
        .json::<reads::ScheduledEvents>()
        .may_fail_with(&[Unavailable]),
    ]
}

pub(super) fn fleet() -> Vec<Route> {
    vec![
        Route::get("/v1/fleet", "getFleet", "Get the whole fleet", fleet::show)
            .requires(RequiredPermit::Cluster(Role::Viewer))
            .tag(RouteTag::Fleet)
            .of_cluster()
            .json::<Fleet>()
            .tagged()
            .may_fail_with(&[Unavailable])
            .link(Link::to("getFleet", "Get it if it has changed.").changed()),
        Route::post::<Fleet, _, _>(
            "/v1/fleet",
            "applyFleet",
            "Change the fleet to match a fleet file",
            fleet::apply,
        )
        .requires(RequiredPermit::Cluster(Role::Admin))
        .tag(RouteTag::Fleet)
        .of_cluster()
        .query::<fleet::ApplyOptions>()
        .body_bytes_max(FLEET_BYTES_MAX)
        .json::<FleetReport>()
        .may_fail_with(&[NotFound, Refused, Ambiguous, Unavailable])
        .link(Link::to("getFleet", "Get the new state."))
        .link(Link::to("getHost", "First host of the fleet.").with("name", "$request.body#/host/0/name")),
    ]
}

fn machine_of(tenant: &'static str, name: &'static str) -> Link {
    Link::to("getMachineOfTenant", "By its full name.").with("tenant", tenant).with("name", name)
}

fn explained(tenant: &'static str, name: &'static str) -> Link {
    let link = Link::to("explainMachineOfTenant", "History of the machine.");
    link.with("tenant", tenant).with("name", name)
}
