//! Names of resources: validation and uniqueness.
//!
//! Machines, availability sets and scale sets have the same names in the rules as for clients. A name is unique in a
//! cluster, across resource groups and regardless of case.

use forewarn_lifecycle::{Cluster, Name, Orchestration, Shape, TenantId};

use super::error::ArmError;
use forewarn_control::resource_id::ResourceId;

/// Maximum characters of the names of machines and scale sets, and of availability sets.
const MACHINE_CHARS_MAX: usize = 64;
const AVAILABILITY_SET_CHARS_MAX: usize = 80;

/// Kind of resource that needs a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameOwner {
    Machine,
    ScaleSet,
    AvailabilitySet,
}

impl NameOwner {
    fn chars_max(self) -> usize {
        match self {
            Self::Machine | Self::ScaleSet => MACHINE_CHARS_MAX,
            Self::AvailabilitySet => AVAILABILITY_SET_CHARS_MAX,
        }
    }
}

/// Checks that a new name is valid and unused.
pub(super) fn check_new_name(cluster: &Cluster, name: &str, named: NameOwner) -> Result<(), ArmError> {
    let chars_max = named.chars_max();
    let ends_well = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    if name.len() > chars_max || !ends_well || Name::new(name).is_err() {
        let message = format!(
            "Resource name {name} is invalid. The name can be up to {chars_max} characters long. It must begin with a \
             letter or a digit, and it must end with a letter, a digit or with '_'. The name may contain letters, digits, \
             '.', '-' and '_'."
        );
        return Err(ArmError::new(400, "InvalidResourceName", message).at("name"));
    }
    match taken_by(cluster, name, named) {
        Some(owner) => {
            let message = format!(
                "The name '{name}' is taken by {owner}. Names of virtual machines, availability sets and scale sets are \
                 unique in a cluster, whatever their resource group: choose another one."
            );
            Err(ArmError::new(409, "Conflict", message).at("name"))
        }
        None => Ok(()),
    }
}

/// Describes the owner of a name.
fn taken_by(cluster: &Cluster, name: &str, named: NameOwner) -> Option<String> {
    if let Some((_, tenant)) = cluster.tenants_named_in_any_case(name).next() {
        return Some(match tenant.shape {
            Shape::StandaloneMachine => "a virtual machine".to_owned(),
            Shape::CloudService => "a cloud service".to_owned(),
            Shape::AvailabilitySet => "an availability set".to_owned(),
            Shape::PlacementGroup(_) => "a scale set".to_owned(),
        });
    }
    if named != NameOwner::Machine {
        return None;
    }
    if let Some((_, machine)) = cluster.machines_named_in_any_case(name).next() {
        let tenant = cluster.tenant(machine.tenant)?;
        return Some(format!("a virtual machine of '{}'", tenant.name));
    }
    instance_of(cluster, name).map(|set| format!("future instances of the scale set '{set}'"))
}

/// The flexible scale set whose instances may get the name.
fn instance_of<'a>(cluster: &'a Cluster, name: &str) -> Option<&'a Name> {
    let (set, _) = name.rsplit_once('_')?;
    let set = cluster.scale_set(cluster.scale_set_named(set)?)?;
    let number = Name::restored(name).ok()?.instance_number(&set.name);
    (number.is_some() && set.orchestration == Orchestration::Flexible).then_some(&set.name)
}

/// The tenant of a resource id, in any case.
pub(super) fn tenant_of(cluster: &Cluster, id: &ResourceId) -> Option<TenantId> {
    let exact = cluster.tenant_named(id.name());
    exact.or_else(|| cluster.tenants_named_in_any_case(id.name()).next().map(|(id, _)| id))
}

/// Error for a reference to a resource that does not exist.
pub(super) fn no_such_resource(id: &ResourceId) -> ArmError {
    let message = format!(
        "The Resource '{}/{}' under resource group '{}' was not found. For more details please go to \
         https://aka.ms/ARMResourceNotFoundFix",
        id.kind(),
        id.name(),
        id.group.name
    );
    ArmError::new(404, "ResourceNotFound", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use forewarn_testkit::TestCluster;
    use serde_json::json;

    #[test]
    fn names_are_those_that_azure_lets_pass() {
        let fleet = TestCluster::new(0);
        let check = |name: &str, named| check_new_name(&fleet.rules, name, named);
        let long = "a".repeat(64);
        for name in ["web", "0", "a.b-c_d", "web_", &long] {
            assert_eq!(check(name, NameOwner::Machine), Ok(()), "{name}");
        }
        for name in ["", "_web", "-a", ".", "a.", "a-", "a b", "a/b", "é", &format!("{long}a")] {
            let error = check(name, NameOwner::ScaleSet).unwrap_err();
            assert_eq!((error.status, error.code.as_ref()), (400, "InvalidResourceName"), "{name}");
        }
        assert_eq!(check(&"a".repeat(80), NameOwner::AvailabilitySet), Ok(()));
    }

    /// promise: Z6
    #[test]
    fn a_name_belongs_to_one() {
        let mut fleet = TestCluster::new(2);
        fleet.create(&json!({ "instances": 1, "orchestration": "flexible" }));
        fleet.run_json(&json!({ "command": "admit_vm", "name": "solo", "host": "h1" }));
        fleet.run_json(&json!({ "command": "admit_availability_set", "name": "db" }));
        let member = json!({ "name": "db1", "host": "h1" });
        fleet.run_json(&json!({ "command": "admit_machine", "tenant": "db", "machine": member }));
        let check = |name: &str, named| check_new_name(&fleet.rules, name, named);
        for (name, named, owner) in [
            ("SOLO", NameOwner::ScaleSet, "a virtual machine"),
            ("db", NameOwner::Machine, "an availability set"),
            ("Web", NameOwner::AvailabilitySet, "a scale set"),
            ("DB1", NameOwner::Machine, "a virtual machine of 'db'"),
            ("web_dd6d6b41", NameOwner::Machine, "a virtual machine of 'web'"),
            ("web_c1bd6afc", NameOwner::Machine, "future instances of the scale set 'web'"),
            ("web_7", NameOwner::Machine, "future instances of the scale set 'web'"),
        ] {
            let error = check(name, named).unwrap_err();
            assert_eq!((error.status, error.code.as_ref()), (409, "Conflict"), "{name}");
            assert!(error.message.starts_with(&format!("The name '{name}' is taken by {owner}.")), "{error}");
        }
        assert_eq!(check("db1", NameOwner::ScaleSet), Ok(()), "members do not share names with sets");
        assert_eq!(check("web_x", NameOwner::Machine), Ok(()));
    }

    #[test]
    fn a_reference_is_found_in_any_spelling() {
        let mut fleet = TestCluster::new(0);
        fleet.run_json(&json!({ "command": "admit_availability_set", "name": "db" }));
        let id = |name: &str| {
            let text = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/availabilitySets/";
            ResourceId::parse(&format!("{text}{name}")).unwrap()
        };
        assert!(tenant_of(&fleet.rules, &id("db")).is_some());
        assert_eq!(tenant_of(&fleet.rules, &id("DB")), tenant_of(&fleet.rules, &id("db")));
        assert_eq!(tenant_of(&fleet.rules, &id("x")), None);
        assert_eq!(
            no_such_resource(&id("x")).message,
            "The Resource 'Microsoft.Compute/availabilitySets/x' under resource group 'g' was not found. For more details \
             please go to https://aka.ms/ARMResourceNotFoundFix"
        );
    }
}
