//! Recent rejections of requests to change a resource, for explanations.
//!
//! The newest rejection of each resource is remembered, for a limited number of resources. They are not journaled: a
//! server that starts again has none.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use forewarn_control::resource_id::{GroupId, ResourceId};
use forewarn_explain::RefusedView;

/// Resources whose rejection is remembered. With one more, the oldest rejection is forgotten.
pub const REJECTED_RESOURCES_MAX: usize = 256;

/// The newest rejection of each resource.
#[derive(Debug, Default)]
pub struct RecentRejections(Mutex<Rejections>);

#[derive(Debug, Default)]
struct Rejections {
    by_key: BTreeMap<String, RememberedRejection>,
    count: u64,
}

#[derive(Debug)]
struct RememberedRejection {
    /// Grows with every rejection.
    number: u64,
    group: GroupId,
    view: RefusedView,
}

impl RecentRejections {
    /// Remembers the rejection of a request to change a resource, instead of an older one.
    pub fn remember(&self, resource: &ResourceId, view: RefusedView) {
        let mut rejections = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rejections.count += 1;
        let rejection = RememberedRejection { number: rejections.count, group: resource.group.clone(), view };
        let by_key = &mut rejections.by_key;
        by_key.insert(resource.key(), rejection);
        if by_key.len() > REJECTED_RESOURCES_MAX {
            let oldest = by_key.iter().min_by_key(|(_, rejection)| rejection.number);
            let oldest = oldest.map(|(key, _)| key.clone());
            oldest.and_then(|key| by_key.remove(&key));
        }
    }

    /// Forgets all rejections.
    pub(crate) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).by_key.clear();
    }

    /// Rejections of resources in the groups that `is_wanted` selects, in the order of their keys.
    pub fn of_groups(&self, is_wanted: impl Fn(&GroupId) -> bool) -> Vec<RefusedView> {
        let rejections = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = rejections.by_key.values().filter(|rejection| is_wanted(&rejection.group));
        wanted.map(|rejection| rejection.view.clone()).collect()
    }
}
