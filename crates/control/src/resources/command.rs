//! Commands to the resources of a cluster.

use std::collections::BTreeSet;

use forewarn_lifecycle::{MaintenanceId, Now};

use super::change::ResourceChange;
use super::operation::{Operation, OperationResult};
use super::resource::{Body, Leaving, Link, Resource, key_of};
use super::state::Resources;
use crate::limits::{
    BODY_BYTES_MAX, ENTRIES_BYTES_MAX, ENTRIES_MAX, ID_BYTES_MAX, OPERATION_WAITS_MAX, OPERATIONS_OPEN_MAX,
};
use crate::refusal::Refusal;
use crate::stream::ClusterId;

/// A command to the resources of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceCommand {
    Put {
        /// Its id. The spelling of the first write stays.
        id: String,
        /// The object of the rules that it stands for; none keeps the former link.
        link: Option<Link>,
        /// The body, as JSON.
        body: Body,
        /// Notes of the server, as JSON.
        notes: Body,
    },
    /// Removes a resource, with everything below it.
    Remove(String),
    Mark {
        id: String,
        leaving: Leaving,
    },
    Open(NewOperation),
    /// Some work has started, or was withdrawn.
    EndWork {
        maintenance: MaintenanceId,
        /// The result for the operations that wait for it.
        result: OperationResult,
    },
}

/// An operation that is to be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewOperation {
    /// Its number: [`Resources::next_operation`] or a greater one.
    pub number: u64,
    pub name: String,
    /// The id of the resource that it is about.
    pub about: String,
    /// The work that it waits for; if there is none, the operation has ended as it begins.
    pub waits: BTreeSet<MaintenanceId>,
    /// Number of the token of the client.
    pub token: Option<u32>,
}

impl Resources {
    /// Decides a command. `cluster` is the cluster of these resources.
    ///
    /// # Errors
    /// Fails if it would exceed a limit, or the link or the name is taken.
    pub fn decide(
        &self,
        now: Now,
        cluster: ClusterId,
        command: &ResourceCommand,
    ) -> Result<Vec<ResourceChange>, Refusal> {
        match command {
            ResourceCommand::Put { id, link, body, notes } => {
                let resource = self.decide_put(now, cluster, (id, *link), (body, notes))?;
                Ok(resource.map(ResourceChange::Put).into_iter().collect())
            }
            ResourceCommand::Remove(id) => Ok(self.decide_remove(&key_of(id))),
            ResourceCommand::Mark { id, leaving } => {
                let key = key_of(id);
                let differs = self.get(&key).is_some_and(|resource| resource.leaving != *leaving);
                Ok(differs.then_some(ResourceChange::Marked { key, leaving: *leaving }).into_iter().collect())
            }
            ResourceCommand::Open(new) => {
                Ok(vec![ResourceChange::Opened(self.decide_open(now, cluster, new)?)])
            }
            ResourceCommand::EndWork { maintenance, result } => {
                let ended = ResourceChange::WorkEnded { maintenance: *maintenance, result: result.clone() };
                Ok(self.is_awaited(*maintenance).then_some(ended).into_iter().collect())
            }
        }
    }

    fn decide_put(
        &self,
        now: Now,
        cluster: ClusterId,
        (id, link): (&str, Option<Link>),
        (body, notes): (&Body, &Body),
    ) -> Result<Option<Resource>, Refusal> {
        self.check_room(std::iter::once((id, body, notes)))?;
        let key = key_of(id);
        let other = link.and_then(|link| self.linked(link)).filter(|(held, _)| *held != key);
        if let Some((_, other)) = other {
            return Err(Refusal::LinkTaken(other.id.clone()));
        }
        let (body, notes) = (body.clone(), notes.clone());
        let leaving = Leaving::Stays;
        let Some(former) = self.get(&key) else {
            let (id, edition, created) = (id.to_owned(), 1, now.wall);
            return Ok(Some(Resource { id, cluster, link, edition, created, body, notes, leaving }));
        };
        let link = link.or(former.link);
        let same = Resource { link, body, notes, leaving, ..former.clone() };
        let edition = former.edition.saturating_add(1);
        Ok((same != *former).then_some(Resource { edition, ..same }))
    }

    /// Checks that resources can be written: ids, bodies and notes.
    pub(crate) fn check_room<'a, T: AsRef<str> + ?Sized + 'a>(
        &self,
        put: impl Iterator<Item = (&'a T, &'a Body, &'a Body)>,
    ) -> Result<(), Refusal> {
        let (mut count, mut bytes) = (self.len(), self.bytes());
        for (id, body, notes) in put {
            let id = id.as_ref();
            Refusal::check(id.len(), ID_BYTES_MAX, "bytes in an id")?;
            Refusal::check(body.0.len().max(notes.0.len()), BODY_BYTES_MAX, "bytes in a body")?;
            let former = self.get(&key_of(id));
            count += usize::from(former.is_none());
            bytes += id.len() + body.0.len() + notes.0.len();
            bytes -= former.map_or(0, Resource::bytes).min(bytes);
        }
        Refusal::check(count, ENTRIES_MAX, "resources")?;
        Refusal::check(bytes, ENTRIES_BYTES_MAX, "bytes in resources")
    }

    /// Checks that an operation about a resource can be opened, for as much work as that many commands may lead to.
    /// Without commands it waits for nothing, and takes no room.
    ///
    /// # Errors
    /// Fails if there would be too many operations, or too much work in one.
    pub fn check_room_for_operation(&self, about: &str, commands: usize) -> Result<(), Refusal> {
        Refusal::check(about.len(), ID_BYTES_MAX, "bytes in an id")?;
        Refusal::check(commands, OPERATION_WAITS_MAX, "machines in an operation")?;
        if commands == 0 {
            return Ok(());
        }
        Refusal::check(self.open_count() + 1, OPERATIONS_OPEN_MAX, "operations under way")
    }

    fn decide_remove(&self, key: &str) -> Vec<ResourceChange> {
        let own = self.get(key).map(|_| key.to_owned());
        let below = self.below(&format!("{key}/")).map(|(key, _)| key.to_owned());
        own.into_iter().chain(below).map(ResourceChange::Removed).collect()
    }

    fn decide_open(&self, now: Now, cluster: ClusterId, new: &NewOperation) -> Result<Operation, Refusal> {
        let NewOperation { number, name, about, waits, token } = new;
        Refusal::check(name.len(), ID_BYTES_MAX, "bytes in an id")?;
        self.check_room_for_operation(about, waits.len())?;
        if self.operation(name).is_some() {
            return Err(Refusal::OperationTaken(name.clone()));
        }
        Ok(Operation {
            number: self.next_operation().max(*number),
            name: name.clone(),
            about: key_of(about),
            cluster,
            token: *token,
            waits: waits.iter().copied().collect(),
            began: now.wall,
            ended: waits.is_empty().then_some(now.wall),
            result: OperationResult::Succeeded,
        })
    }
}
