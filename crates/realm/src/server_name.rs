//! The names of servers: one live server has a name.

use forewarn_ownership::{Revision, ServerName};

use crate::engine::{EngineOperation, EngineTransaction, LeaseId, ReadRequest};
use crate::error::RealmError;
use crate::keys::{KeyFamily, RealmKey};
use crate::realm::{Realm, STREAMS_MAX};
use crate::records::{JsonRecord, ServerRecord};

/// Attempts to announce a server while others write its key.
const ATTEMPTS_MAX: usize = 10;

/// The outcome of an announcement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnnouncementOutcome {
    /// The key of the server is written, at this revision.
    Announced(Revision),
    /// A live server with another data directory has the name.
    Taken(ServerRecord),
}

impl Realm {
    /// The record of a live server.
    ///
    /// # Errors
    /// Fails if the engine is unavailable, or the value is damaged.
    pub async fn server(&self, name: &ServerName) -> Result<Option<ServerRecord>, RealmError> {
        Ok(self.server_key(name).await?.1)
    }

    /// The names of all servers that have a key: those that are live, or ended a few seconds ago.
    ///
    /// # Errors
    /// Fails if the engine is unavailable.
    pub async fn server_names(&self) -> Result<Vec<ServerName>, RealmError> {
        let request = ReadRequest::new(self.keys().family(KeyFamily::Server)).limit(STREAMS_MAX).keys_only();
        let found = self.read(&request).await?.entries;
        let name = |key: &[u8]| match self.keys().parse(key) {
            Some(RealmKey::Server(name)) => Some(name),
            Some(_) | None => None,
        };
        Ok(found.into_iter().filter_map(|entry| name(&entry.key)).collect())
    }

    /// Announces a live server, unless another one has its name. The key goes when the lease ends.
    ///
    /// # Errors
    /// Fails if the engine is unavailable, or the lease has ended.
    pub async fn announce_server(
        &self,
        name: &ServerName,
        record: &ServerRecord,
        lease: LeaseId,
    ) -> Result<AnnouncementOutcome, RealmError> {
        let key = self.key(&RealmKey::Server(name.clone()));
        for _ in 0..ATTEMPTS_MAX {
            let (revision, found) = self.server_key(name).await?;
            if let Some(other) = found.filter(|found| found.instance != record.instance) {
                return Ok(AnnouncementOutcome::Taken(other));
            }
            let put = EngineOperation::Put { key: key.clone(), value: record.to_json(), lease: Some(lease) };
            let guarded = EngineTransaction::guarded(key.clone(), revision);
            let answer = self.repeat(&EngineTransaction { then: vec![put], ..guarded }).await?;
            if answer.succeeded {
                return Ok(AnnouncementOutcome::Announced(answer.revision));
            }
        }
        Err(RealmError::Limit("attempts to announce a server"))
    }

    async fn server_key(&self, name: &ServerName) -> Result<(Revision, Option<ServerRecord>), RealmError> {
        let key = RealmKey::Server(name.clone());
        let Some(entry) = self.get(&key).await? else { return Ok((Revision::ABSENT, None)) };
        let record = ServerRecord::from_json(&entry.value).map_err(RealmError::malformed(&key))?;
        Ok((entry.mod_revision, Some(record)))
    }
}
