//! What the register can be asked.

use std::collections::BTreeSet;

use forewarn_lifecycle::{MaintenanceId, Now};

use super::entry::{Body, Entry, Leaving, Link, key_of};
use super::operation::{Ending, Operation};
use super::{Filed, Register};
use crate::shared::cluster::ClusterId;
use crate::shared::command::Refusal;
use crate::shared::limits::{
    BODY_BYTES_MAX, ENTRIES_BYTES_MAX, ENTRIES_MAX, ID_BYTES_MAX, OPERATION_WAITS_MAX, OPERATIONS_OPEN_MAX,
};

/// A wish about the register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filing {
    /// An entry is written, for the first time or again.
    Put {
        /// Its id. The spelling of the first time stays.
        id: String,
        /// The cluster in which it is.
        cluster: ClusterId,
        /// What the rules know of it; nothing: what they knew before.
        link: Option<Link>,
        /// What is written, as JSON.
        body: Body,
        /// What the server notes of it, as JSON.
        notes: Body,
    },
    /// An entry goes, with everything below it.
    Remove(String),
    /// An entry is on its way out, or stays after all.
    Mark {
        /// Its id.
        id: String,
        /// Which of both.
        leaving: Leaving,
    },
    /// An operation begins.
    Open {
        /// What clients call it.
        name: String,
        /// The id of what it is about.
        about: String,
        /// The cluster of the work that it waits for.
        cluster: ClusterId,
        /// The work; none: it has ended as it begins.
        waits: BTreeSet<MaintenanceId>,
        /// The number of the token with which a client begins it.
        token: Option<u32>,
    },
    /// Some work has started, or has been taken back.
    Over {
        /// Its cluster.
        cluster: ClusterId,
        /// The work.
        maintenance: MaintenanceId,
        /// How that is for those who wait.
        how: Ending,
    },
}

impl Register {
    pub(crate) fn decide(&self, now: Now, filing: &Filing) -> Result<Vec<Filed>, Refusal> {
        match filing {
            Filing::Put { id, cluster, link, body, notes } => {
                let wanted = (*cluster, *link, body, notes);
                self.decide_put(now, id, wanted).map(|entry| entry.map(Filed::Put).into_iter().collect())
            }
            Filing::Remove(id) => Ok(self.decide_remove(&key_of(id))),
            Filing::Mark { id, leaving } => {
                let key = key_of(id);
                let differs = self.entry(&key).is_some_and(|entry| entry.leaving != *leaving);
                Ok(differs.then_some(Filed::Marked { key, leaving: *leaving }).into_iter().collect())
            }
            Filing::Open { name, about, cluster, waits, token } => {
                let operation = self.decide_open(now, name, about, (*cluster, waits))?;
                Ok(vec![match token {
                    None => Filed::Opened(operation),
                    Some(token) => Filed::OpenedWith { operation, token: *token },
                }])
            }
            Filing::Over { cluster, maintenance, how } => {
                let over = Filed::Over { cluster: *cluster, maintenance: *maintenance, how: how.clone() };
                Ok(self.is_awaited(*cluster, *maintenance).then_some(over).into_iter().collect())
            }
        }
    }

    fn decide_put(
        &self,
        now: Now,
        id: &str,
        (cluster, link, body, notes): (ClusterId, Option<Link>, &Body, &Body),
    ) -> Result<Option<Entry>, Refusal> {
        self.check_room(cluster, std::iter::once((id, body, notes)))?;
        let key = key_of(id);
        let before = self.entry(&key);
        let other = link.and_then(|link| self.linked(cluster, link)).filter(|(held, _)| *held != key);
        if let Some((_, other)) = other {
            return Err(Refusal::LinkTaken(other.id.clone()));
        }
        let entry = match before {
            Some(before) => Entry {
                cluster,
                link: link.or(before.link),
                edition: before.edition.saturating_add(1),
                body: body.clone(),
                notes: notes.clone(),
                leaving: Leaving::Stays,
                ..before.clone()
            },
            None => Entry {
                id: id.to_owned(),
                cluster,
                link,
                edition: 1,
                created: now.wall,
                body: body.clone(),
                notes: notes.clone(),
                leaving: Leaving::Stays,
            },
        };
        let is_same =
            before.is_some_and(|before| Entry { edition: before.edition, ..entry.clone() } == *before);
        Ok((!is_same).then_some(entry))
    }

    /// Whether all that can be written in a cluster.
    pub(crate) fn check_room<'a, T: AsRef<str> + ?Sized + 'a>(
        &self,
        cluster: ClusterId,
        put: impl Iterator<Item = (&'a T, &'a Body, &'a Body)>,
    ) -> Result<(), Refusal> {
        let (mut count, mut bytes) = (self.len(), self.bytes());
        for (id, body, notes) in put {
            let id = id.as_ref();
            Refusal::check(id.len(), ID_BYTES_MAX, "bytes in an id")?;
            Refusal::check(body.0.len().max(notes.0.len()), BODY_BYTES_MAX, "bytes in a body")?;
            let before = self.entry(&key_of(id));
            if before.is_some_and(|before| before.cluster != cluster) {
                return Err(Refusal::IdTaken(id.to_owned()));
            }
            count += usize::from(before.is_none());
            bytes += id.len() + body.0.len() + notes.0.len();
            bytes -= before.map_or(0, Entry::bytes).min(bytes);
        }
        Refusal::check(count, ENTRIES_MAX, "resources")?;
        Refusal::check(bytes, ENTRIES_BYTES_MAX, "bytes in resources")
    }

    /// Whether an operation can be opened that waits for so much; one that waits for nothing has ended as it begins.
    pub(crate) fn check_room_for_operation(&self, about: &str, waits: usize) -> Result<(), Refusal> {
        Refusal::check(about.len(), ID_BYTES_MAX, "bytes in an id")?;
        Refusal::check(waits, OPERATION_WAITS_MAX, "machines in an operation")?;
        if waits == 0 {
            return Ok(());
        }
        Refusal::check(self.open_count() + 1, OPERATIONS_OPEN_MAX, "operations under way")
    }

    fn decide_remove(&self, key: &str) -> Vec<Filed> {
        let own = self.entry(key).map(|_| key.to_owned());
        let below = self.below(&format!("{key}/")).map(|(key, _)| key.to_owned());
        own.into_iter().chain(below).map(Filed::Removed).collect()
    }

    fn decide_open(
        &self,
        now: Now,
        name: &str,
        about: &str,
        (cluster, waits): (ClusterId, &BTreeSet<MaintenanceId>),
    ) -> Result<Operation, Refusal> {
        Refusal::check(name.len(), ID_BYTES_MAX, "bytes in an id")?;
        self.check_room_for_operation(about, waits.len())?;
        if self.operation(name).is_some() {
            return Err(Refusal::OperationTaken(name.to_owned()));
        }
        Ok(Operation {
            number: self.next_operation(),
            name: name.to_owned(),
            about: key_of(about),
            cluster,
            token: None,
            waits: waits.iter().copied().collect(),
            began: now.wall,
            ended: waits.is_empty().then_some(now.wall),
            ending: Ending::Succeeded,
        })
    }
}
