//! Availability sets.

use forewarn_lifecycle::{Machine, TenantId};
use serde_json::{Value, json};

use super::edit::{fill, put};
use super::{ShowContext, StoredResource, resource};
use crate::kind::AVAILABILITY_SETS;
use crate::read::machine::{Domains, read_availability_set};
use crate::refresh::refresh_availability_set;
use forewarn_control::resource_id::ResourceId;

/// Domains of an availability set.
const UPDATE_DOMAINS_MAX: u16 = 20;
const FAULT_DOMAINS_MAX: u16 = 3;

/// An availability set; `members` are its machines.
#[must_use]
pub fn show_availability_set(
    context: &ShowContext<'_>,
    stored: &StoredResource<'_>,
    tenant: TenantId,
    members: &[ResourceId],
) -> Value {
    let mut shown = resource(context, stored, AVAILABILITY_SETS);
    fill(&mut shown, "sku.name", "Classic");
    refresh_availability_set(context.cluster, tenant, &mut shown);
    let machines = context.cluster.tenant(tenant).map_or(&[][..], |tenant| tenant.machines());
    let machines: Vec<_> = machines.iter().filter_map(|id| context.cluster.machine(*id)).collect();
    put_domains(&mut shown, &machines);
    let members: Vec<_> = members.iter().map(|id| json!({ "id": id.to_string() })).collect();
    put(&mut shown, "properties.virtualMachines", members);
    shown
}

/// At least the used domains, at most those that clients can name.
fn put_domains(shown: &mut Value, machines: &[&Machine]) {
    let Domains { update, fault } =
        read_availability_set(shown).map(|wanted| wanted.domains).unwrap_or_default();
    let most = |domain: fn(&Machine) -> u16| machines.iter().map(|one| domain(one).saturating_add(1)).max();
    let (updates, faults) = (most(|one| one.update_domain.0), most(|one| one.fault_domain.0));
    let count = |given: u16, used: Option<u16>, max: u16| given.max(used.unwrap_or(0)).min(max);
    put(shown, "properties.platformUpdateDomainCount", count(update, updates, UPDATE_DOMAINS_MAX));
    put(shown, "properties.platformFaultDomainCount", count(fault, faults, FAULT_DOMAINS_MAX));
}

/// The body of an availability set that no client has sent.
#[must_use]
pub fn plain_availability_set(context: &ShowContext<'_>, tenant: TenantId) -> Value {
    let machines = context.cluster.tenant(tenant).map_or(&[][..], |tenant| tenant.machines());
    let location = machines.first().map_or(context.site.location.as_str(), |id| context.location(*id));
    json!({ "location": location, "sku": { "name": "Aligned" } })
}
