//! The parts of a plan, by tenant. Copies share memory, and the end of one part costs the same in a large plan as in a
//! small one.

use std::iter::Map;
use std::sync::Arc;

use forewarn_types::{Announcement, MachineId, TenantId, UpdateDomain};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::paged::{Iter, PagedMap};

/// The machines of one tenant in a maintenance. They lie in one update domain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// The tenant of the machines.
    pub tenant: TenantId,
    /// Their update domain.
    pub update_domain: UpdateDomain,
    /// The machines, in the order of `Resources`.
    pub machines: Vec<MachineId>,
    /// The event of the tenant; `None` if it is not enrolled.
    #[serde(with = "crate::shared_announcement")]
    pub announcement: Option<Arc<Announcement>>,
}

/// The parts of a plan, one for each tenant, in the order of the tenants' numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    by_tenant: PagedMap<TenantId, Arc<Part>>,
    /// Machines of all parts.
    machines: usize,
    /// Parts with an event.
    announced: usize,
}

type PartsIter<'a> = Map<Iter<'a, TenantId, Arc<Part>>, fn((&'a TenantId, &'a Arc<Part>)) -> &'a Part>;

impl Parts {
    /// The number of parts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_tenant.len()
    }

    /// Returns true if no part is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_tenant.is_empty()
    }

    /// The number of machines of all parts.
    #[must_use]
    pub fn machine_count(&self) -> usize {
        self.machines
    }

    /// The number of parts with an event.
    #[must_use]
    pub fn announced_count(&self) -> usize {
        self.announced
    }

    /// The part of a tenant.
    #[must_use]
    pub fn get(&self, tenant: TenantId) -> Option<&Part> {
        self.by_tenant.get(&tenant).map(Arc::as_ref)
    }

    /// The first part.
    #[must_use]
    pub fn first(&self) -> Option<&Part> {
        self.by_tenant.first().map(|(_, part)| part.as_ref())
    }

    /// Every part.
    pub fn iter(&self) -> PartsIter<'_> {
        fn part<'a>((_, part): (&'a TenantId, &'a Arc<Part>)) -> &'a Part {
            part
        }
        self.by_tenant.iter().map(part)
    }

    /// Removes the part of a tenant, and returns it.
    pub(crate) fn remove(&mut self, tenant: TenantId) -> Option<Arc<Part>> {
        let part = self.by_tenant.remove(&tenant)?;
        self.machines -= part.machines.len();
        self.announced -= usize::from(part.announcement.is_some());
        Some(part)
    }
}

/// Of several parts of one tenant, the last one counts.
impl FromIterator<Part> for Parts {
    fn from_iter<T: IntoIterator<Item = Part>>(parts: T) -> Self {
        let by_tenant: PagedMap<_, _> = parts.into_iter().map(|part| (part.tenant, Arc::new(part))).collect();
        let machines = by_tenant.values().map(|part| part.machines.len()).sum();
        let announced = by_tenant.values().filter(|part| part.announcement.is_some()).count();
        Self { by_tenant, machines, announced }
    }
}

impl<'a> IntoIterator for &'a Parts {
    type Item = &'a Part;
    type IntoIter = PartsIter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Serialize for Parts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Parts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::<Part>::deserialize(deserializer).map(Self::from_iter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MachineId, UpdateDomain};

    fn part(tenant: u32, machines: u32) -> Part {
        let machines = (0..machines).map(MachineId).collect();
        Part { tenant: TenantId(tenant), update_domain: UpdateDomain(0), machines, announcement: None }
    }

    #[test]
    fn parts_are_counted_and_found_by_tenant() {
        let mut parts: Parts = [part(7, 3), part(2, 5)].into_iter().collect();
        assert_eq!((parts.len(), parts.machine_count(), parts.announced_count()), (2, 8, 0));
        assert_eq!(parts.iter().map(|part| part.tenant.0).collect::<Vec<_>>(), [2, 7]);
        assert_eq!(parts.get(TenantId(7)), Some(&part(7, 3)));
        let copy = parts.clone();
        assert_eq!(parts.remove(TenantId(2)).as_deref(), Some(&part(2, 5)));
        assert_eq!((parts.len(), parts.machine_count(), parts.remove(TenantId(2))), (1, 3, None));
        assert_eq!((copy.len(), copy.first()), (2, Some(&part(2, 5))));
    }
}
