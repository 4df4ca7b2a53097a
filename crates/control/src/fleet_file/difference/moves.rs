//! Machines that are on other hosts in the wanted fleet, in an order in which the moves can be recorded one by one.

use std::collections::BTreeMap;

use super::Difference;

/// A machine that is on another host in the wanted fleet.
pub(super) struct HostChange {
    pub(super) tenant: String,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) difference: Difference,
}

/// Orders moves: a machine leaves a host before another one of its tenant arrives there, unless they trade places. A
/// host has machines of one update domain of a tenant at a time.
pub(super) fn in_order(mut left: Vec<HostChange>) -> Vec<Difference> {
    let mut ordered = Vec::with_capacity(left.len());
    let mut leaving = BTreeMap::<_, usize>::new();
    for one in &left {
        *leaving.entry((one.tenant.clone(), one.from.clone())).or_default() += 1;
    }
    while !left.is_empty() {
        let (mut later, mut has_moved) = (Vec::new(), false);
        for one in left {
            if leaving.get(&(one.tenant.clone(), one.to.clone())).is_some_and(|count| *count > 0) {
                later.push(one);
                continue;
            }
            has_moved = true;
            leaving.entry((one.tenant, one.from)).and_modify(|count| *count -= 1);
            ordered.push(one.difference);
        }
        if !has_moved {
            ordered.extend(later.drain(..).map(|one| one.difference));
        }
        left = later;
    }
    ordered
}
