//! Queries of the audit log of another server of the realm. Every server has all entries, but in the order in which it
//! has got them: only the server that has given a cursor can go on from there.
//!
//! ```text
//!   client ──cursor of b──▶ a: who asks, what it may see ──query──▶ b: the entries of its log, once it has all of them
//!                                                                   never forwarded again
//! ```

use std::sync::Arc;

use forewarn_lifecycle::Name;
use forewarn_ownership::ServerName;
use forewarn_peers::{AuditSearch, EntryOrder, FoundEntries, HandlerUnavailable};
use forewarn_store::{AuditBatch, AuditQuery, Direction, LoggedEntry};

use super::confirmation::Confirmations;
use super::handle::RealmHandle;
use crate::broadcasts::Broadcasts;
use crate::clusters::ClusterRegistry;

/// Reason why the audit log of another server could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SearchError {
    #[error("the realm has no server {0}")]
    NoSuchServer(Name),
    #[error("the server {server} does not give its audit log now: {reason}\n  hint: try again in a moment")]
    Unavailable { server: Name, reason: String },
}

impl RealmHandle {
    /// Queries the audit log of another server.
    pub(crate) async fn search(&self, server: &Name, query: AuditQuery) -> Result<AuditBatch, SearchError> {
        let unavailable = |reason| SearchError::Unavailable { server: server.clone(), reason };
        let Some(client) = self.clients.load().get(server).cloned() else {
            // This server may have started a moment ago.
            return Err(match self.realm.server(&ServerName::from(server.clone())).await {
                Ok(None) => SearchError::NoSuchServer(server.clone()),
                Ok(Some(_)) => unavailable("this server does not know it yet".to_owned()),
                Err(error) => unavailable(error.to_string()),
            });
        };
        let found = client.search(&search_of(query)).await;
        found.map(batch_of).map_err(|error| unavailable(error.to_string()))
    }
}

/// Answers a query of another server, once the log of this one has every entry that was committed before.
pub(super) async fn search_here(
    confirmations: &Confirmations,
    (broadcasts, clusters): (&Broadcasts, &ClusterRegistry),
    search: AuditSearch,
) -> Result<FoundEntries, HandlerUnavailable> {
    let confirmed = confirmations.confirm(broadcasts, clusters).await;
    confirmed.map_err(|error| HandlerUnavailable(error.to_string()))?;
    let found = broadcasts.read_audit_log(query_of(search)).await;
    found.map(found_in).map_err(|error| HandlerUnavailable(error.to_string()))
}

fn search_of(query: AuditQuery) -> AuditSearch {
    let AuditQuery { groups, since, until, stream, after, before, direction, limit } = query;
    let order = match direction {
        Direction::OldestFirst => EntryOrder::OldestFirst,
        Direction::NewestFirst => EntryOrder::NewestFirst,
    };
    AuditSearch { groups, since, until, stream, after, before, order, limit }
}

fn query_of(search: AuditSearch) -> AuditQuery {
    let AuditSearch { groups, since, until, stream, after, before, order, limit } = search;
    let direction = match order {
        EntryOrder::OldestFirst => Direction::OldestFirst,
        EntryOrder::NewestFirst => Direction::NewestFirst,
    };
    AuditQuery { groups, since, until, stream, after, before, direction, limit }
}

fn found_in(batch: AuditBatch) -> FoundEntries {
    let AuditBatch { entries, next, head, end, swept } = batch;
    let numbered = |logged: LoggedEntry| (logged.position, Arc::unwrap_or_clone(logged.entry));
    FoundEntries { entries: entries.into_iter().map(numbered).collect(), next, head, end, swept }
}

fn batch_of(found: FoundEntries) -> AuditBatch {
    let FoundEntries { entries, next, head, end, swept } = found;
    let logged = |(position, entry)| LoggedEntry { position, entry: Arc::new(entry) };
    AuditBatch { entries: entries.into_iter().map(logged).collect(), next, head, end, swept }
}
