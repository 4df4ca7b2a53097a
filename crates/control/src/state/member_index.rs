//! An index of the members of resource groups: a hash of the name of the group, and the member.

use forewarn_lifecycle::paged::PagedSet;
use forewarn_lifecycle::{MachineId, ScaleSetId, TenantId};
use forewarn_types::caseless_hash;

use crate::resource_id::GroupId;
use crate::resources::Link;

/// Members by the hash of the name of their group: readers compare the names. Copies share memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MemberIndex(PagedSet<(u32, Link)>);

/// The hash of the name of a group, which differs neither by case nor by subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GroupHash(u32);

impl GroupHash {
    pub(super) fn of(group: &GroupId) -> Self {
        Self(caseless_hash(&group.name.to_lowercase()))
    }
}

impl MemberIndex {
    /// Moves a member from one group to another; none is the group of the site.
    pub(super) fn set(&mut self, member: Link, before: Option<GroupHash>, after: Option<GroupHash>) {
        if before == after {
            return;
        }
        if let Some(GroupHash(group)) = before {
            self.0.remove(&(group, member));
        }
        if let Some(GroupHash(group)) = after {
            self.0.insert((group, member));
        }
    }

    /// Members of groups with that hash, of the kind of `first`, from it on.
    pub(super) fn candidates(&self, GroupHash(group): GroupHash, first: Link) -> impl Iterator<Item = Link> {
        self.0.range((group, first)..=(group, last_like(first))).map(|(_, link)| *link)
    }
}

/// Builds the index at once.
impl FromIterator<(GroupHash, Link)> for MemberIndex {
    fn from_iter<T: IntoIterator<Item = (GroupHash, Link)>>(members: T) -> Self {
        Self(members.into_iter().map(|(GroupHash(group), link)| (group, link)).collect())
    }
}

/// The last link of the same kind.
fn last_like(link: Link) -> Link {
    match link {
        Link::Machine(_) => Link::Machine(MachineId(u32::MAX)),
        Link::Tenant(_) => Link::Tenant(TenantId(u32::MAX)),
        Link::ScaleSet(_) => Link::ScaleSet(ScaleSetId(u32::MAX)),
    }
}
