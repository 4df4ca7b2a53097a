//! Lookup of names.

use std::borrow::Cow;

use forewarn_lifecycle::{
    Cluster, Event, EventId, HostId, MachineId, Name, Orchestration, ScaleSet, ScaleSetId, TenantId,
};
use forewarn_types::FLEXIBLE_INSTANCES;
use serde::{Deserialize, Serialize};

/// A name that does not identify an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(deny_unknown_fields)]
pub enum LookupError {
    /// No object has the name.
    #[error("no such {what}: {name}{}", hint(similar.as_deref()))]
    Nothing {
        /// Kind of the object.
        what: Cow<'static, str>,
        name: String,
        /// A similar name, if there is one.
        #[serde(deserialize_with = "Option::deserialize")]
        similar: Option<String>,
    },
    /// Several machines have the name.
    #[error("several machines have this name: {name}\n  hint: write {}", tenants.join(" or "))]
    Several {
        name: String,
        /// The first unique names of these machines.
        tenants: Vec<String>,
    },
}

fn hint(similar: Option<&str>) -> String {
    similar.map(|name| format!("\n  hint: did you mean {name}?")).unwrap_or_default()
}

/// Unique names in the hint about an ambiguous name.
pub(crate) const SHOWN_MAX: usize = 3;

/// Names that are compared to find a similar one: a lookup that fails costs the same in every larger cluster.
const COMPARED_MAX: usize = 1_000;

/// Maximum edit distance of similar names.
const DISTANCE_MAX: usize = 2;

/// The host with a name.
///
/// # Errors
/// Fails if there is none.
pub fn find_host(cluster: &Cluster, name: &str) -> Result<HostId, LookupError> {
    let all = || cluster.hosts().map(|(_, host)| host.name.as_str());
    cluster.host_named(name).ok_or_else(|| nothing("host", name, all()))
}

/// The tenant with a name.
///
/// # Errors
/// Fails if there is none.
pub fn find_tenant(cluster: &Cluster, name: &str) -> Result<TenantId, LookupError> {
    let all = || cluster.tenants().map(|(_, tenant)| tenant.name.as_str());
    cluster.tenant_named(name).ok_or_else(|| nothing("tenant", name, all()))
}

/// The scale set with a name.
///
/// # Errors
/// Fails if there is none.
pub fn find_scale_set(cluster: &Cluster, name: &str) -> Result<ScaleSetId, LookupError> {
    let all = || cluster.tenants().map(|(_, tenant)| tenant.name.as_str());
    cluster.scale_set_named(name).ok_or_else(|| nothing("scale set", name, all()))
}

/// The machine with a name: `tenant/name`, or a name that only one machine has. A scale set stands for all its
/// placement groups: callers need not know the placement group of an instance. An instance of a flexible scale set is
/// also found by its number, as `web_5`. Machines of other names cost nothing.
///
/// # Errors
/// Fails if there is none, or several.
pub fn find_machine(cluster: &Cluster, name: &str) -> Result<MachineId, LookupError> {
    if let Some(machine) = machine_if_known(cluster, name) {
        return Ok(machine);
    }
    let all = || cluster.machines().map(|(_, machine)| machine.name.as_str());
    if let Some((tenant, machine)) = name.split_once('/') {
        let is_named = !tenant.is_empty() && !machine.is_empty();
        if is_named && cluster.scale_set_named(tenant).is_none() {
            find_tenant(cluster, tenant)?;
        }
        return Err(nothing("machine", name, all()));
    }
    let shown = cluster.machines_named(name).take(SHOWN_MAX);
    let tenants: Vec<_> = shown.map(|(id, _)| full_name(cluster, id)).collect();
    if tenants.is_empty() {
        return Err(nothing("machine", name, all()));
    }
    Err(LookupError::Several { name: name.to_owned(), tenants })
}

/// The machine with a name, as [`find_machine`] finds it. A name that is not found costs nothing more.
#[must_use]
pub fn machine_if_known(cluster: &Cluster, name: &str) -> Option<MachineId> {
    let Some((tenant, machine)) = name.split_once('/') else {
        let mut named = cluster.machines_named(name);
        let Some((id, _)) = named.next() else {
            let set = cluster.scale_set_named(name.rsplit_once('_')?.0)?;
            return numbered_instance(cluster, cluster.scale_set(set)?, name);
        };
        return named.next().is_none().then_some(id);
    };
    match cluster.scale_set_named(tenant).and_then(|id| cluster.scale_set(id)) {
        Some(set) => {
            instance_named(cluster, set, machine).or_else(|| numbered_instance(cluster, set, machine))
        }
        None => cluster.machine_named(cluster.tenant_named(tenant)?, machine),
    }
}

fn instance_named(cluster: &Cluster, set: &ScaleSet, name: &str) -> Option<MachineId> {
    set.groups.iter().find_map(|group| cluster.machine_named(*group, name))
}

/// The instance of a flexible scale set that `web_5` stands for: its name does not show its number.
fn numbered_instance(cluster: &Cluster, set: &ScaleSet, name: &str) -> Option<MachineId> {
    let number = Name::restored(name).ok()?.instance_number(&set.name)?;
    match set.orchestration {
        Orchestration::Flexible if number < FLEXIBLE_INSTANCES => {
            instance_named(cluster, set, set.instance_name(number).as_str())
        }
        Orchestration::Flexible | Orchestration::Uniform => None,
    }
}

/// The visible event with an id.
///
/// # Errors
/// Fails if there is none.
pub fn find_event<'a>(cluster: &'a Cluster, id: &str) -> Result<(TenantId, &'a Event), LookupError> {
    let event = EventId::parse(id).and_then(|id| cluster.event(id));
    event.ok_or_else(|| nothing("event", id, std::iter::empty()))
}

/// Unique name of a machine: `tenant/name`.
#[must_use]
pub fn full_name(cluster: &Cluster, id: MachineId) -> String {
    let machine = cluster.machine(id);
    let tenant = machine.and_then(|machine| cluster.tenant(machine.tenant));
    match (tenant, machine) {
        (Some(tenant), Some(machine)) => format!("{}/{}", tenant.name, machine.name),
        (None, _) | (_, None) => format!("machine {id}"),
    }
}

pub(crate) fn nothing<'a>(what: &'static str, name: &str, all: impl Iterator<Item = &'a str>) -> LookupError {
    let bare = name.rsplit('/').next().unwrap_or(name);
    LookupError::Nothing {
        what: what.into(),
        name: name.to_owned(),
        similar: similar(bare, all).map(str::to_owned),
    }
}

/// The name that is similar to `name`, if any is.
#[must_use]
pub fn similar<'a>(name: &str, all: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = all.into_iter().take(COMPARED_MAX).map(|other| (distance(name, other), other));
    // Names without a common letter are not similar, however short.
    let is_near = |&(distance, other): &(usize, &str)| {
        distance <= DISTANCE_MAX && distance < name.len().min(other.len())
    };
    near.filter(is_near).min().map(|(_, other)| other)
}

/// Edit distance of two texts; `usize::MAX` if it is large.
fn distance(one: &str, other: &str) -> usize {
    if one.len().abs_diff(other.len()) > DISTANCE_MAX {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, left) in one.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in other.bytes().enumerate() {
            let changed = diagonal + usize::from(left != right);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_gets_a_suggestion() {
        assert_eq!(distance("web_0", "web_0"), 0);
        assert_eq!(distance("web-0", "web_0"), 1);
        assert_eq!(distance("wbe_0", "web_0"), 2);
        assert_eq!(distance("", "ab"), 2);
        assert_eq!(distance("a", "abcd"), usize::MAX);
        let unknown = nothing("machine", "web/web-1", ["db-0", "web_1"].into_iter());
        assert_eq!(unknown.to_string(), "no such machine: web/web-1\n  hint: did you mean web_1?");
        let unknown = nothing("host", "wbe", ["b", "web"].into_iter());
        assert_eq!(unknown.to_string(), "no such host: wbe\n  hint: did you mean web?");
        let unknown = nothing("host", "x", ["h10", "y", "xy"].into_iter());
        assert_eq!(unknown.to_string(), "no such host: x");
    }
}
