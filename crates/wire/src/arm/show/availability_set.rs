//! Availability sets.

use forewarn_lifecycle::{Machine, TenantId};
use serde_json::{Value, json};

use super::edit::{at, fill, put};
use super::notice::put_policy;
use super::{Kept, Sight, resource};
use crate::arm::ResourceId;
use crate::operator::{FAULT_DOMAINS, UPDATE_DOMAINS};

const KIND: &str = "Microsoft.Compute/availabilitySets";

/// An availability set; `members` are its machines.
#[must_use]
pub fn show_availability_set(
    sight: &Sight<'_>,
    kept: &Kept<'_>,
    tenant: TenantId,
    members: &[ResourceId],
) -> Value {
    let mut shown = resource(sight, kept, KIND);
    fill(&mut shown, "/sku/name", "Classic");
    if let Some(tenant) = sight.cluster.tenant(tenant) {
        let machines: Vec<_> = tenant.machines().iter().filter_map(|id| sight.cluster.machine(*id)).collect();
        put_domains(&mut shown, &machines);
        put_policy(&mut shown, tenant.policy);
    }
    let members: Vec<_> = members.iter().map(|id| json!({ "id": id.to_string() })).collect();
    put(&mut shown, "/properties/virtualMachines", members);
    shown
}

/// At least as many as are used.
fn put_domains(shown: &mut Value, machines: &[&Machine]) {
    let most = |domain: fn(&Machine) -> u16| machines.iter().map(|one| u64::from(domain(one)) + 1).max();
    for (path, usual, used) in [
        ("/properties/platformUpdateDomainCount", UPDATE_DOMAINS, most(|machine| machine.update_domain.0)),
        ("/properties/platformFaultDomainCount", FAULT_DOMAINS, most(|machine| machine.fault_domain.0)),
    ] {
        let said = at(shown, path).and_then(Value::as_u64).unwrap_or(usual.into());
        put(shown, path, said.max(used.unwrap_or(0)));
    }
}

/// The body of an availability set that no client has sent.
#[must_use]
pub fn plain_availability_set(sight: &Sight<'_>, tenant: TenantId) -> Value {
    let machines = sight.cluster.tenant(tenant).map_or(&[][..], |tenant| tenant.machines());
    let location = machines.first().map_or(sight.site.location.as_str(), |id| sight.location(*id));
    json!({ "location": location, "sku": { "name": "Aligned" } })
}
