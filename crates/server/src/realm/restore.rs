//! Detection of an engine that was restored from an older backup. No server owns anything then, until an operator
//! accepts the restore: decisions that were acknowledged are missing in the log.
//!
//! A server remembers the id of the cluster of its engine in its data directory, and compares the numbers of its copy
//! with the heads of the log: when it joins, and all the time.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use forewarn_control::{ControlState, Stream};
use forewarn_realm::{EngineMemory, Realm, RestoreEvidence};
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
}

/// The id of the engine's cluster that a data directory remembers. None if it has never been in a realm.
pub(crate) fn remembered_id(directory: &Path) -> io::Result<Option<u64>> {
    let text = match fs::read(directory.join(FILE)) {
        Ok(text) if text.len() <= FILE_BYTES_MAX => text,
        Ok(_) => return Err(damaged(directory)),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let stored: StoredMemory = serde_json::from_slice(&text).map_err(|_| damaged(directory))?;
    u64::from_str_radix(&stored.cluster_id, 16).map(Some).map_err(|_| damaged(directory))
}

fn damaged(directory: &Path) -> io::Error {
    let file = directory.join(FILE);
    io::Error::new(ErrorKind::InvalidData, format!("the memory of the engine is damaged: {}", file.display()))
}

/// Remembers the id of the engine's cluster.
pub(crate) fn remember_id(directory: &Path, cluster_id: u64) -> io::Result<()> {
    let (file, unfinished) = (directory.join(FILE), directory.join("engine.json.new"));
    let stored = StoredMemory { cluster_id: format!("{cluster_id:016x}") };
    let mut new = File::create(&unfinished)?;
    new.write_all(&serde_json::to_vec(&stored)?)?;
    new.sync_all()?;
    fs::rename(&unfinished, &file)?;
    File::open(directory)?.sync_all()
}

/// Numbers of the last batches in a copy.
fn numbers(state: &ControlState) -> BTreeMap<Stream, u64> {
    let clusters = state.clusters().map(|(id, cluster)| (Stream::Cluster(id), cluster.log_number()));
    clusters
        .chain([(Stream::Shared, state.shared().log_number())])
        .filter(|(_, number)| *number > 0)
        .collect()
}

/// Compares a copy with the engine. Returns the evidence of a restore, and the id of the engine's cluster.
pub(crate) async fn compare(
    realm: &Realm,
    known_id: Option<u64>,
    state: &ControlState,
) -> Result<(Option<RestoreEvidence>, u64), forewarn_realm::RealmError> {
    let memory = EngineMemory { cluster_id: known_id, archived: numbers(state) };
    // The copy is older than the heads that are read after it.
    let (status, heads) = (realm.engine_status().await?, realm.heads().await?);
    Ok((memory.check(&status, &heads).err(), status.cluster_id))
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
        let known = remembered_id(&self.directory).ok().flatten();
        // An engine that does not answer is noticed elsewhere.
        compare(&self.realm, known, &snapshot.state).await.ok()?.0
    }

    /// Owns nothing any more.
    fn halt(&self, evidence: RestoreEvidence) {
        tracing::error!(
            %evidence,
            "engine was restored from an older backup; this server owns nothing until `forewarn realm accept-restore`"
        );
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
    fn the_id_of_the_engine_is_remembered() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(remembered_id(directory.path()).unwrap(), None);
        for id in [0, 0xcdf8_181e_3277_8c4c, u64::MAX] {
            remember_id(directory.path(), id).unwrap();
            assert_eq!(remembered_id(directory.path()).unwrap(), Some(id));
        }
        for damage in ["", "{}", r#"{"cluster_id":"no"}"#, &" ".repeat(FILE_BYTES_MAX + 1)] {
            fs::write(directory.path().join(FILE), damage).unwrap();
            assert!(remembered_id(directory.path()).is_err(), "{damage}");
        }
    }
}
