//! All groups of clients, by filter and by topic.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::task::Waker;

use forewarn_control::AuditEntry;

use super::super::seen_entries::SeenEntries;
use super::filter::{EntryFilter, Topic, topics_of};
use super::group::{Group, MemberId};

/// Bytes that wait for slow clients, in all groups together.
const QUEUED_BYTES_MAX: usize = 8 << 20;

/// Bytes that every group may have, however many groups there are.
const GROUP_BYTES_MIN: usize = 16 << 10;

/// Number of a group.
pub(super) type GroupId = u64;

#[derive(Debug, Default)]
pub(super) struct Groups {
    all: BTreeMap<GroupId, (Arc<EntryFilter>, Group)>,
    by_filter: HashMap<Arc<EntryFilter>, GroupId>,
    by_topic: HashMap<Topic, Vec<GroupId>>,
    /// Groups with an open chunk; a group may be listed twice.
    touched: Vec<GroupId>,
    next: u64,
}

impl Groups {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn get_mut(&mut self, id: GroupId) -> Option<&mut Group> {
        self.all.get_mut(&id).map(|(_, group)| group)
    }

    /// Adds a client to the group of its filter.
    pub(super) fn join(&mut self, filter: &Arc<EntryFilter>, seen: SeenEntries) -> (GroupId, MemberId) {
        let id = match self.by_filter.get(filter) {
            Some(id) => *id,
            None => self.add(filter),
        };
        let member = self.number();
        if let Some(group) = self.get_mut(id) {
            group.join(member, seen);
        }
        (id, member)
    }

    /// Removes a client, and its group with the last one.
    pub(super) fn leave(&mut self, (id, member): (GroupId, MemberId)) {
        if self.get_mut(id).is_some_and(|group| group.leave(member))
            && let Some((filter, _)) = self.all.remove(&id)
        {
            self.by_filter.remove(&filter);
            for topic in filter.topics() {
                if let Some(ids) = self.by_topic.get_mut(&topic) {
                    ids.retain(|other| *other != id);
                    if ids.is_empty() {
                        self.by_topic.remove(&topic);
                    }
                }
            }
        }
    }

    /// Appends an event to the groups that an entry concerns; `write` appends its text.
    pub(super) fn append_event(
        &mut self,
        (position, entry): (u64, &AuditEntry),
        mut write: impl FnMut(&mut Vec<u8>),
    ) {
        for topic in topics_of(entry) {
            for id in self.by_topic.get(&topic).into_iter().flatten() {
                let Some((filter, group)) = self.all.get_mut(id) else { continue };
                if !filter.admits(entry) {
                    continue;
                }
                if let Some(text) = group.begin_event(position) {
                    write(text);
                    self.touched.push(*id);
                }
            }
        }
    }

    /// Appends text to every group.
    pub(super) fn append_to_all(&mut self, text: &[u8]) {
        self.all.values_mut().for_each(|(_, group)| group.append(text));
        self.touched.extend(self.all.keys());
    }

    /// Closes all open chunks. Returns the clients that wait for one.
    pub(super) fn close_chunks(&mut self, before: &SeenEntries, after: &SeenEntries) -> Vec<Waker> {
        let bytes_max = (QUEUED_BYTES_MAX / self.all.len().max(1)).max(GROUP_BYTES_MIN);
        let mut waiting = Vec::new();
        for id in std::mem::take(&mut self.touched) {
            if let Some(group) = self.get_mut(id) {
                waiting.extend(group.close_chunk(before, after, bytes_max));
            }
        }
        waiting
    }

    /// All clients that wait.
    pub(super) fn waiting(&mut self) -> Vec<Waker> {
        self.all.values_mut().flat_map(|(_, group)| group.waiting()).collect()
    }

    /// Removes all groups. Returns the clients that wait.
    pub(super) fn clear(&mut self) -> Vec<Waker> {
        let waiting = self.waiting();
        // Numbers of groups and clients are not used again.
        *self = Self { next: self.next, ..Self::default() };
        waiting
    }

    #[cfg(test)]
    pub(super) fn drop_queues(&mut self) {
        self.all.values_mut().for_each(|(_, group)| group.drop_queue());
    }

    fn add(&mut self, filter: &Arc<EntryFilter>) -> GroupId {
        let id = self.number();
        self.all.insert(id, (Arc::clone(filter), Group::default()));
        self.by_filter.insert(Arc::clone(filter), id);
        for topic in filter.topics() {
            self.by_topic.entry(topic).or_default().push(id);
        }
        id
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}
