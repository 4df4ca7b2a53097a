//! Detection of an engine that was restored from an older backup. No server owns anything then: decisions that were
//! acknowledged are missing in the log.
//!
//! A server remembers the id of the cluster of its engine and the history of the realm in its data directory, and compares
//! the numbers of its copy with the heads of the log: when it joins, and all the time.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use forewarn_control::{ControlState, Stream};
use forewarn_realm::{EngineMemory, Realm, RealmError, RealmHistory, RestoreEvidence};
use forewarn_types::Seed;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::view::SharedView;
use crate::broadcasts::Broadcasts;
use crate::clusters::ClusterRegistry;
use crate::message::ClusterMessage;

/// File in the data directory with the memory of the engine.
const FILE: &str = "engine.json";

/// Maximum bytes of that file.
const FILE_BYTES_MAX: usize = 4_096;

/// Interval of comparisons with the engine.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// The content of the file.
#[derive(Serialize, Deserialize)]
struct StoredMemory {
    /// Hexadecimal.
    cluster_id: String,
    /// Number of accepted restores, and the id of the last of them.
    #[serde(default)]
    restores: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    history: Option<Seed>,
}

/// The engine as a data directory remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RememberedEngine {
    /// The id of its cluster.
    pub(crate) cluster_id: u64,
    /// The history of the realm.
    pub(crate) history: RealmHistory,
}

impl RememberedEngine {
    /// The engine of a data directory. None if it has never been in a realm.
    pub(crate) fn read(directory: &Path) -> io::Result<Option<Self>> {
        let text = match fs::read(directory.join(FILE)) {
            Ok(text) if text.len() <= FILE_BYTES_MAX => text,
            Ok(_) => return Err(damaged(directory)),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let stored: StoredMemory = serde_json::from_slice(&text).map_err(|_| damaged(directory))?;
        let cluster_id = u64::from_str_radix(&stored.cluster_id, 16).map_err(|_| damaged(directory))?;
        let history = RealmHistory { restores: stored.restores, id: stored.history };
        Ok(Some(Self { cluster_id, history }))
    }

    /// Writes it into a data directory.
    pub(crate) fn write(&self, directory: &Path) -> io::Result<()> {
        let (file, unfinished) = (directory.join(FILE), directory.join("engine.json.new"));
        let (cluster_id, RealmHistory { restores, id }) = (format!("{:016x}", self.cluster_id), self.history);
        let mut new = File::create(&unfinished)?;
        new.write_all(&serde_json::to_vec(&StoredMemory { cluster_id, restores, history: id })?)?;
        new.sync_all()?;
        fs::rename(&unfinished, &file)?;
        File::open(directory)?.sync_all()
    }
}

fn damaged(directory: &Path) -> io::Error {
    let file = directory.join(FILE);
    io::Error::new(ErrorKind::InvalidData, format!("the memory of the engine is damaged: {}", file.display()))
}

/// Numbers of the last batches in a copy.
pub(super) fn numbers(state: &ControlState) -> BTreeMap<Stream, u64> {
    let clusters = state.clusters().map(|(id, cluster)| (Stream::Cluster(id), cluster.log_number()));
    clusters
        .chain([(Stream::Shared, state.shared().log_number())])
        .filter(|(_, number)| *number > 0)
        .collect()
}

/// A comparison of a copy with the engine.
pub(crate) struct EngineComparison {
    /// Evidence of a restore.
    pub(crate) evidence: Option<RestoreEvidence>,
    /// The engine as it is, to be remembered.
    pub(crate) found: RememberedEngine,
}

/// Compares a copy with the engine.
pub(crate) async fn compare(
    realm: &Realm,
    known: Option<RememberedEngine>,
    state: &ControlState,
) -> Result<EngineComparison, RealmError> {
    let archived = numbers(state);
    // A copy without a memory is of the first history: it was being made when the server was killed, or the file is gone.
    let history = known.map(|known| known.history);
    let history = history.or_else(|| (!archived.is_empty()).then(RealmHistory::default));
    let memory = EngineMemory { cluster_id: known.map(|known| known.cluster_id), history, archived };
    // The copy is older than the heads that are read after it.
    let (status, heads) = (realm.engine_status().await?, realm.heads().await?);
    let record = realm.record().await?;
    let evidence = memory.check(&status, record.as_ref(), &heads).err();
    let history = record.map(|record| record.history()).unwrap_or_default();
    let found = RememberedEngine { cluster_id: status.cluster_id, history };
    Ok(EngineComparison { evidence, found })
}

/// Watches for a restore while the server runs.
pub(crate) struct RestoreWatch {
    pub(crate) realm: Realm,
    pub(crate) directory: PathBuf,
    pub(crate) view: SharedView,
    pub(crate) broadcasts: Broadcasts,
    pub(crate) clusters: ClusterRegistry,
}

impl RestoreWatch {
    /// Runs until the server stops, or has found a restore.
    pub(crate) async fn run(self, mut stop: watch::Receiver<bool>) {
        loop {
            let stopped = stop.wait_for(|stop| *stop);
            if tokio::time::timeout(CHECK_INTERVAL, stopped).await.is_ok() {
                return;
            }
            if let Some(evidence) = self.check().await {
                return self.halt(evidence);
            }
        }
    }

    async fn check(&self) -> Option<RestoreEvidence> {
        if let Some(known) = self.view.lock().restored {
            return Some(known);
        }
        let snapshot = self.broadcasts.snapshot.load_full();
        let known = RememberedEngine::read(&self.directory).ok().flatten();
        // An engine that does not answer is noticed elsewhere.
        compare(&self.realm, known, &snapshot.state).await.ok()?.evidence
    }

    /// Owns nothing any more.
    fn halt(&self, evidence: RestoreEvidence) {
        tracing::error!(%evidence, "engine was restored from an older backup; this server owns nothing");
        let mut view = self.view.lock();
        view.restored = Some(evidence);
        view.driven.clear();
        drop(view);
        for link in self.clusters.all().values() {
            link.post(ClusterMessage::Disown);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_is_remembered() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        assert_eq!(RememberedEngine::read(directory).unwrap(), None);
        let accepted = RealmHistory { restores: 2, id: Some(Seed([7; 16])) };
        for history in [RealmHistory::default(), accepted] {
            for cluster_id in [0, 0xcdf8_181e_3277_8c4c, u64::MAX] {
                let engine = RememberedEngine { cluster_id, history };
                engine.write(directory).unwrap();
                assert_eq!(RememberedEngine::read(directory).unwrap(), Some(engine));
            }
        }
        // Older versions knew of no accepted restores.
        fs::write(directory.join(FILE), r#"{"cluster_id":"00000000000000ff"}"#).unwrap();
        let older = RememberedEngine { cluster_id: 255, history: RealmHistory::default() };
        assert_eq!(RememberedEngine::read(directory).unwrap(), Some(older));
        for damage in ["", "{}", r#"{"cluster_id":"no"}"#, &" ".repeat(FILE_BYTES_MAX + 1)] {
            fs::write(directory.join(FILE), damage).unwrap();
            assert!(RememberedEngine::read(directory).is_err(), "{damage}");
        }
    }
}
