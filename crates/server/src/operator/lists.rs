//! Handlers of lists, page by page.

use std::sync::Arc;

use axum::extract::Query;
use forewarn_control::schema;
use forewarn_control::{
    EventView, HostView, MachineView, RolloutView, TenantView, find_host, find_tenant, rollout_view,
    tenant_view,
};
use forewarn_imds::Status;
use forewarn_lifecycle::{
    Cluster, Event, EventKind, Health, HostId, MachineId, MaintenanceId, RolloutId, TenantId, Zone,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::context::OperatorRequest;
use super::page::{Cursor, Page, PageResponse};
use super::problem::ApiProblem;
use super::reads::{event_with_delays, host_with_reason, view};
use forewarn_control::Permit;

type PageResult<T> = Result<PageResponse<T>, ApiProblem>;

/// Filter of hosts.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
pub(super) struct HostFilter {
    /// Hosts in this zone.
    zone: Option<u16>,
    /// Hosts with this health.
    health: Option<HealthWord>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum HealthWord {
    Healthy,
    Degraded,
    Failed,
}

pub(super) async fn hosts(
    request: OperatorRequest,
    Query(HostFilter { zone, health }): Query<HostFilter>,
    page: Page,
) -> PageResult<HostView> {
    let (zone, health) = (zone.map(Zone), health.map(Health::from));
    let manual = request.control.has_manual_host_work();
    let list = move |state: &crate::snapshot::State<'_>| {
        let hosts = state.cluster.hosts_from(HostId(page.first_number(u32::MAX)));
        let wanted = hosts.filter(|(_, host)| {
            zone.is_none_or(|zone| host.zone == Some(zone))
                && health.is_none_or(|health| host.health == health)
        });
        page.fill(wanted.filter_map(|(id, _)| Some((cursor(id.0), host_with_reason(state, id, manual)?))))
    };
    Ok(request.control.look(list)?)
}

/// Filter of machines.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct MachineFilter {
    /// Of this tenant.
    #[schemars(with = "Option<schema::Name>")]
    tenant: Option<String>,
    /// Machines on this host, including those that are moving to it or from it.
    #[schemars(with = "Option<schema::Name>")]
    host: Option<String>,
}

pub(super) async fn machines(
    request: OperatorRequest,
    Query(MachineFilter { tenant, host }): Query<MachineFilter>,
    page: Page,
) -> PageResult<MachineView> {
    let permit = Arc::clone(&request.permit);
    let list = move |state: &crate::snapshot::State<'_>| {
        let cluster = state.cluster;
        let tenant = tenant.map(|name| known_tenant(cluster, &permit, &name)).transpose()?;
        let sees =
            |id: MachineId| cluster.machine(id).is_some_and(|machine| permit.sees(cluster, machine.tenant));
        let known = |name: &String| permit.check_host(cluster, name);
        host.as_ref().map_or(Ok(()), known)?;
        let host = host.map(|name| find_host(cluster, &name)).transpose()?;
        let of_tenant = tenant.and_then(|id| cluster.tenant(id)).map(forewarn_lifecycle::Tenant::machines);
        let of_host = host.and_then(|id| cluster.host(id)).map(forewarn_lifecycle::Host::machines);
        let shown = |id: MachineId| Some((cursor(id.0), view(state, id).filter(|_| sees(id))?));
        Ok::<_, ApiProblem>(match (of_tenant, of_host) {
            (Some(of_tenant), Some(of_host)) => {
                let both = of_host.iter().filter(|id| of_tenant.contains(id));
                page.fill(both.copied().filter_map(shown))
            }
            (Some(few), None) | (None, Some(few)) => page.fill(few.iter().copied().filter_map(shown)),
            (None, None) => {
                let all = cluster.machines_from(MachineId(page.first_number(u32::MAX)));
                page.fill(all.filter_map(|(id, _)| shown(id)))
            }
        })
    };
    request.control.look(list)?.map_err(|problem| request.hide_names(problem))
}

pub(super) async fn tenants(request: OperatorRequest, page: Page) -> PageResult<TenantView> {
    let permit = Arc::clone(&request.permit);
    let list = move |state: &crate::snapshot::State<'_>| {
        let tenants = state.cluster.tenants_from(TenantId(page.first_number(u32::MAX)));
        let seen = tenants.filter(|(id, _)| permit.sees(state.cluster, *id));
        page.fill(seen.filter_map(|(id, _)| Some((cursor(id.0), tenant_view(state.cluster, id)?))))
    };
    Ok(request.control.look(list)?)
}

/// Filter of events.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct EventFilter {
    /// Of this tenant.
    #[schemars(with = "Option<schema::Name>")]
    tenant: Option<String>,
    /// Events of this type, as in a document.
    #[schemars(schema_with = "kind_schema")]
    kind: Option<EventKind>,
    /// Events with this status, as in a document.
    status: Option<StatusWord>,
}

/// Inlined: parameters have no named schemas.
fn kind_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": EventKind::ALL.map(EventKind::as_str) })
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[schemars(inline)]
enum StatusWord {
    Scheduled,
    Started,
}

pub(super) async fn events(
    request: OperatorRequest,
    Query(EventFilter { tenant, kind, status }): Query<EventFilter>,
    page: Page,
) -> PageResult<EventView> {
    let status = status.map(Status::from);
    let permit = Arc::clone(&request.permit);
    let list = move |state: &crate::snapshot::State<'_>| {
        let is_wanted = |(tenant, event): &(TenantId, &Event)| {
            permit.sees(state.cluster, *tenant)
                && kind.is_none_or(|kind| event.announcement.kind == kind)
                && status.is_none_or(|status| Status::of(&event.phase) == status)
        };
        let placed = |(id, event): (TenantId, &Event)| {
            (event_cursor(event.maintenance, id), event_with_delays(state, &permit, id, event))
        };
        let Some(name) = tenant else {
            let first = MaintenanceId(u64::try_from(page.first().0 >> u32::BITS).unwrap_or(u64::MAX));
            let events = state.cluster.maintenances_from(first).flat_map(|work| {
                let mut announcements: Vec<_> =
                    work.plan.parts.iter().filter_map(|part| part.announcement.as_ref()).collect();
                announcements.sort_by_key(|one| state.cluster.event(one.id).map(|(tenant, _)| tenant));
                announcements.into_iter().filter_map(|one| state.cluster.event(one.id))
            });
            return Ok(page.fill(events.filter(is_wanted).map(placed)));
        };
        let id = known_tenant(state.cluster, &permit, &name)?;
        let events = state.cluster.tenant(id).map(forewarn_lifecycle::Tenant::events).unwrap_or_default();
        Ok::<_, ApiProblem>(page.fill(events.iter().map(|event| (id, event)).filter(is_wanted).map(placed)))
    };
    request.control.look(list)?.map_err(|problem| request.hide_names(problem))
}

/// Filter of rollouts.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
pub(super) struct RolloutFilter {
    /// Include ended rollouts that are still remembered.
    #[serde(default)]
    ended: bool,
}

pub(super) async fn rollouts(
    request: OperatorRequest,
    Query(RolloutFilter { ended }): Query<RolloutFilter>,
    page: Page,
) -> PageResult<RolloutView> {
    let list = move |state: &crate::snapshot::State<'_>| {
        let first = RolloutId(page.first_number(u64::MAX));
        let over = state.cluster.ended_rollouts().map(|(id, _)| id).filter(|id| ended && *id >= first);
        let mut all: Vec<_> = over.chain(state.cluster.rollouts_from(first).map(|(id, _)| id)).collect();
        all.sort_unstable();
        let shown = |id: RolloutId| Some((cursor(id.0), rollout_view(state.cluster, state.now, id)?));
        page.fill(all.into_iter().filter_map(shown))
    };
    Ok(request.control.look(list)?)
}

/// Finds a tenant in the scope of the permit.
fn known_tenant(cluster: &Cluster, permit: &Permit, name: &str) -> Result<TenantId, ApiProblem> {
    Ok(permit.check_tenant(cluster, find_tenant(cluster, name)?)?)
}

fn cursor(number: impl Into<u128>) -> Cursor {
    Cursor(number.into())
}

/// Cursor of an event: by maintenance, then by tenant.
fn event_cursor(work: MaintenanceId, tenant: TenantId) -> Cursor {
    Cursor(u128::from(work.0) << u32::BITS | u128::from(tenant.0))
}

impl From<HealthWord> for Health {
    fn from(word: HealthWord) -> Self {
        match word {
            HealthWord::Healthy => Self::Healthy,
            HealthWord::Degraded => Self::Degraded,
            HealthWord::Failed => Self::Failed,
        }
    }
}

impl From<StatusWord> for Status {
    fn from(word: StatusWord) -> Self {
        match word {
            StatusWord::Scheduled => Self::Scheduled,
            StatusWord::Started => Self::Started,
        }
    }
}
