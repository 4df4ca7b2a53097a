//! Copies of the journal for backups.

use std::path::{Path, PathBuf};

use forewarn_control::{ClusterId, ControlState};
use forewarn_lifecycle::MaintenanceId;
use forewarn_realm::{Realm, RealmError};
use forewarn_store::{CopyError, OpenError, replace_copied_state};

use super::ControlHandle;
use crate::long_work::run_long_work;

/// The state of all streams of a realm at one revision, and announcements that no VM may have read.
type RealmState = (ControlState, Vec<(ClusterId, MaintenanceId)>);

/// Reason why there is no backup.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BackupError {
    #[error(transparent)]
    Copy(#[from] CopyError),
    #[error("the copy of this server has not reached the log\n  hint: try again, or ask another server")]
    Behind,
    #[error(transparent)]
    Realm(#[from] RealmError),
    #[error(transparent)]
    State(#[from] OpenError),
}

impl ControlHandle {
    /// Copies the journal to a new file. In a realm, the copy has the state of all streams at one revision of the engine,
    /// and the audit log of this server, which has at least the entries before that revision.
    pub(crate) async fn back_up(&self, to: PathBuf) -> Result<(), BackupError> {
        let Some(realm) = &self.parts.realm else { return Ok(self.copy(to).await?) };
        let (state, unread) = read_state(&realm.realm).await?;
        self.confirm_reads().await.map_err(|_| BackupError::Behind)?;
        self.copy(to.clone()).await?;
        let replace = move || {
            let replaced = replace_copied_state(Path::new(&to), &state, &unread);
            // The copy without the state of one revision is no backup.
            replaced.inspect_err(|_| drop(std::fs::remove_file(&to)))
        };
        Ok(run_long_work(replace).await?)
    }
}

async fn read_state(realm: &Realm) -> Result<RealmState, BackupError> {
    let record = realm.record().await?.ok_or(RealmError::Protocol)?;
    let content = realm.read_all().await?;
    let unread = content.unread();
    let (state, _) = content.into_state(record.identity).ok_or(RealmError::Protocol)?;
    Ok((state, unread))
}
