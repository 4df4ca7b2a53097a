//! Parts of plans that several resource types share.

use forewarn_lifecycle::{Cluster, MachineId, Priority, TenantId, Zone};
use serde_json::Value;

use crate::body::at;
use crate::error::ArmError;
use crate::read::common::read_tags;
use crate::read::machine::Domains;
use crate::refusals::{allocation_failed, not_changeable};
use forewarn_control::{
    MachinePlacement, NamedCommand, PlacementConstraints, PolicyEntry, full_name, place_machine,
};

/// Places a single machine.
pub(crate) fn place(
    cluster: &Cluster,
    tenant: Option<TenantId>,
    zone: Option<Zone>,
    domains: Domains,
) -> Result<MachinePlacement, ArmError> {
    let Domains { update: update_domains, fault: fault_domains } = domains;
    let wanted = PlacementConstraints { tenant, zone, update_domains, fault_domains };
    place_machine(cluster, &wanted).ok_or_else(|| {
        let hint = "No host can take the virtual machine: it needs a healthy host without announced work";
        match (zone, tenant) {
            (Some(Zone(zone)), _) => no_room_in_zones(&format!("{hint} in zone {zone}.")),
            (None, Some(_)) => allocation_failed(&format!(
                "{hint}, and a host takes one update domain of an availability set."
            )),
            (None, None) => allocation_failed(&format!("{hint}.")),
        }
    })
}

/// Error: no host in the requested zones has room.
pub(crate) fn no_room_in_zones(why: &str) -> ArmError {
    ArmError::new(409, "ZonalAllocationFailed", format!("Allocation failed. {why}"))
}

/// Name of a placement's host.
pub(crate) fn host_name(cluster: &Cluster, place: MachinePlacement) -> String {
    cluster.host(place.host).map(|host| host.name.to_string()).unwrap_or_default()
}

/// Changes the tags of a machine, if the body has other ones.
pub(crate) fn describe(
    cluster: &Cluster,
    id: MachineId,
    before: &Value,
    body: &Value,
) -> Result<Option<NamedCommand>, ArmError> {
    if at(before, "tags") == at(body, "tags") {
        return Ok(None);
    }
    let tags = Some(read_tags(body)?.unwrap_or_default());
    Ok(Some(NamedCommand::Describe { machine: full_name(cluster, id), addresses: None, tags }))
}

/// Changes the policy of a tenant, if the body has another one.
pub(crate) fn change_policy(is: PolicyEntry, wanted: PolicyEntry, tenant: String) -> Option<NamedCommand> {
    (is != wanted).then_some(NamedCommand::ChangePolicy { tenant, policy: wanted })
}

/// Checks that priority and eviction policy do not change.
pub(crate) fn check_priority(is: Priority, wanted: Priority) -> Result<(), ArmError> {
    match (is, wanted) {
        (Priority::Regular, Priority::Spot(_)) | (Priority::Spot(_), Priority::Regular) => {
            Err(not_changeable("priority"))
        }
        (Priority::Spot(is), Priority::Spot(wanted)) if is != wanted => Err(not_changeable("evictionPolicy")),
        (Priority::Regular, Priority::Regular) | (Priority::Spot(_), Priority::Spot(_)) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forewarn_lifecycle::EvictionPolicy::{Deallocate, Delete};
    use forewarn_testkit::TestCluster;
    use serde_json::json;

    #[test]
    fn a_machine_without_a_place_says_what_it_needs() {
        let mut fleet = TestCluster::new(1);
        fleet.run_json(&json!({ "command": "admit_host", "name": "z2", "zone": 2 }));
        let place = |zone: Option<u16>| place(&fleet.rules, None, zone.map(Zone), Domains::default());
        assert_eq!(host_name(&fleet.rules, place(None).unwrap()), "h1");
        assert_eq!(host_name(&fleet.rules, place(Some(2)).unwrap()), "z2");
        let error = place(Some(1)).unwrap_err();
        assert_eq!((error.status, error.code.as_ref()), (409, "ZonalAllocationFailed"));
        assert!(error.message.ends_with("in zone 1."), "{error}");
        let error = super::place(&TestCluster::new(0).rules, None, None, Domains::default()).unwrap_err();
        assert_eq!((error.status, error.code.as_ref()), (409, "AllocationFailed"));
    }

    #[test]
    fn a_priority_stays() {
        let (spot, regular) = (Priority::Spot(Delete), Priority::Regular);
        assert_eq!(check_priority(spot, spot), Ok(()));
        assert_eq!(check_priority(regular, regular), Ok(()));
        for (is, wanted, target) in [
            (regular, spot, "priority"),
            (spot, regular, "priority"),
            (spot, Priority::Spot(Deallocate), "evictionPolicy"),
        ] {
            assert_eq!(check_priority(is, wanted).unwrap_err().target.as_deref(), Some(target));
        }
    }
}
