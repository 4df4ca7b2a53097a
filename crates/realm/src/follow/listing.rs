//! The small keys of a realm: owners, preferences, servers, archives, drains.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use forewarn_control::Stream;
use forewarn_ownership::Revision;

use super::RealmChange;
use crate::engine::{EngineOperation, EngineTransaction, KeyEvent, KeyValue, ReadRequest};
use crate::error::RealmError;
use crate::head::KnownHead;
use crate::heads::known_head;
use crate::keys::{KeyFamily, RealmKey};
use crate::realm::{Realm, STREAMS_MAX};
use crate::records::JsonRecord;

/// Everything that a comparison reads.
pub(super) struct FoundKeys {
    pub(super) revision: Revision,
    pub(super) heads: BTreeMap<Stream, KnownHead>,
    pub(super) others: BTreeMap<RealmKey, (Revision, RealmChange)>,
}

/// Reads all heads, owners, preferences, servers, archives and drains by one call.
pub(super) async fn read(realm: &Realm) -> Result<FoundKeys, RealmError> {
    let families = [
        KeyFamily::Head,
        KeyFamily::Owner,
        KeyFamily::Preferred,
        KeyFamily::Server,
        KeyFamily::Archived,
        KeyFamily::Draining,
    ];
    let then = families.map(|family| {
        EngineOperation::Read(ReadRequest::new(realm.keys().family(family)).limit(STREAMS_MAX))
    });
    let transaction = EngineTransaction { then: then.to_vec(), ..EngineTransaction::default() };
    let answer = realm.repeat(&transaction).await?;
    let (mut heads, mut others) = (BTreeMap::new(), BTreeMap::new());
    for entry in answer.reads.into_iter().flatten() {
        let Some(key) = realm.keys().parse(&entry.key) else { continue };
        if let RealmKey::Head(stream) = key {
            heads.insert(stream, known_head(stream, &entry)?);
        } else if let Some(change) = change(&key, Some(&entry.value)) {
            others.insert(key, (entry.mod_revision, change));
        }
    }
    Ok(FoundKeys { revision: answer.revision, heads, others })
}

/// The change that a value of a key means. A value that this program cannot read counts as absent: it must not keep
/// batches from being followed. None: the key is of another kind.
fn change(key: &RealmKey, value: Option<&Bytes>) -> Option<RealmChange> {
    match key.clone() {
        RealmKey::Owner(stream) => Some(RealmChange::Owner { stream, owner: parsed(value) }),
        RealmKey::Preferred(stream) => Some(RealmChange::Preferred { stream, server: parsed(value) }),
        RealmKey::Server(name) => Some(RealmChange::Server { name, record: parsed(value) }),
        RealmKey::Archived(name) => Some(RealmChange::Archived { name, numbers: parsed(value) }),
        RealmKey::Draining(name) => Some(RealmChange::Draining { name, is_on: value.is_some() }),
        RealmKey::Realm
        | RealmKey::Secret(_)
        | RealmKey::Head(_)
        | RealmKey::Log(..)
        | RealmKey::Part(_)
        | RealmKey::Snapshot(..) => None,
    }
}

fn parsed<T: JsonRecord>(value: Option<&Bytes>) -> Option<T> {
    value.and_then(|value| T::from_json(value).ok())
}

/// The small keys that were given out.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// The revision at which each key was written or deleted.
    seen: BTreeMap<RealmKey, Seen>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Written(Revision),
    Deleted(Revision),
}

impl Seen {
    fn revision(self) -> Revision {
        match self {
            Self::Written(revision) | Self::Deleted(revision) => revision,
        }
    }
}

impl Listing {
    /// Takes an event. One that was seen before is ignored.
    pub(super) fn take(&mut self, key: RealmKey, event: &KeyEvent, queue: &mut VecDeque<RealmChange>) {
        let (value, now) = match event {
            KeyEvent::Put(KeyValue { value, mod_revision, .. }) => {
                (Some(value), Seen::Written(*mod_revision))
            }
            KeyEvent::Deleted { mod_revision, .. } => (None, Seen::Deleted(*mod_revision)),
        };
        if self.seen.get(&key).is_some_and(|seen| seen.revision() >= now.revision()) {
            return;
        }
        queue.extend(change(&key, value));
        self.seen.insert(key, now);
    }

    /// Compares with everything that there is at a revision.
    pub(super) fn compare(
        &mut self,
        found: BTreeMap<RealmKey, (Revision, RealmChange)>,
        at: Revision,
        queue: &mut VecDeque<RealmChange>,
    ) {
        let seen = std::mem::take(&mut self.seen);
        for (key, former) in seen {
            if former.revision() > at {
                self.seen.insert(key, former);
            } else if let (Seen::Written(_), false) = (former, found.contains_key(&key)) {
                queue.extend(change(&key, None));
            } else if let Seen::Written(_) = former {
                self.seen.insert(key, former);
            }
        }
        for (key, (revision, change)) in found {
            if self.seen.get(&key).is_none_or(|seen| seen.revision() < revision) {
                self.seen.insert(key, Seen::Written(revision));
                queue.push_back(change);
            }
        }
    }
}
