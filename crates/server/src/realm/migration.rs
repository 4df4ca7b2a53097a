//! The move of the journal of a stopped server into a realm that does not exist yet.
//!
//! ```text
//!   mark: moving ──▶ realm: importing ──▶ streams ──▶ realm: complete ──▶ first batches ──▶ mark: member
//! ```
//!
//! Each step can be repeated after a crash. Until the realm is complete, the journal in the directory is the only one;
//! afterwards it is the copy of the first server, with all audit entries. No server starts on the directory in between.

use std::path::{Path, PathBuf};

use forewarn_control::ControlState;
use forewarn_lifecycle::{Cluster, Now, Steady};
use forewarn_ownership::{BootId, ClockAnchor, ServerName};
use forewarn_realm::{CallTimes, CancelOutcome, CommitError, ImportOutcome, Realm, RealmError};
use forewarn_store::{IfMissing, Journal, OpenError, Options, RealmMark, RealmStage, Recovered};
use forewarn_types::Seed;

use super::RealmPlan;
use super::engine_check::{UnsafeVersion, refuse_unsafe_versions};
use super::join::{CopyOrigin, FORMAT, catch_up};
use crate::boot;
use crate::clock::wall;

/// A journal that was moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MigrationReport {
    pub clusters: usize,
    pub hosts: usize,
    pub tenants: usize,
    pub machines: usize,
    /// Position of the newest audit entry.
    pub audit_entries: u64,
}

/// Reason why a journal was not moved.
#[derive(Debug, thiserror::Error)]
pub enum MigrationError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Version(#[from] UnsafeVersion),
    #[error(transparent)]
    Realm(#[from] RealmError),
    #[error("the move of the journal is not complete: {0}\n  hint: repeat it; nothing is lost")]
    Interrupted(#[source] CommitError),
    #[error("the journal is moved, and cannot be written as a copy yet: {0}\n  hint: repeat the move")]
    Copy(Box<dyn std::error::Error + Send + Sync>),
    /// Another journal has the realm.
    #[error(
        "the realm exists: {prefix}\n  hint: a journal can only be moved into an empty realm; choose another \
         engine.prefix, or another etcd"
    )]
    Exists { prefix: String },
    /// The journal is a copy of the log of a realm.
    #[error(
        "the journal is already a copy of the log of several servers: {}\n  hint: start its server", .0.display()
    )]
    Member(PathBuf),
    /// No move was begun.
    #[error("no move of the journal was begun: {}\n  hint: start its server", .0.display())]
    NotMoving(PathBuf),
    /// The move is complete.
    #[error(
        "the move of the journal is complete, and servers may use the realm: {}\n  hint: start the server with the \
         [engine] of the realm", .0.display()
    )]
    Complete(PathBuf),
    #[error("cannot get random bytes from the operating system: {0}")]
    Random(getrandom::Error),
}

/// Moves the journal of a directory into a realm, exactly as it is. The server of the plan owns all clusters then, and
/// the directory is its data directory.
///
/// # Errors
/// Fails if the directory is in use or has no usable journal, the realm exists, or the engine does not answer or is known
/// to lose data.
pub async fn migrate(directory: &Path, plan: &RealmPlan) -> Result<MigrationReport, MigrationError> {
    let realm = Realm::new(plan.engine.clone(), plan.keys.clone(), CallTimes::default());
    let (journal, found) = open(directory)?;
    let mark = RealmMark::read(directory)?;
    let is_copy = mark.map_or(found.state.shared().log_number() > 0, |mark| mark.stage == RealmStage::Member);
    if is_copy {
        return Err(MigrationError::Member(directory.to_owned()));
    }
    refuse_unsafe_versions(&plan.engine).await?;
    let mark = match mark {
        Some(mark) => mark,
        None => begin(directory, (&realm, plan), &found).await?,
    };
    import(directory, (&realm, plan), &found).await?;
    catch_up(&realm, &journal, &found, CopyOrigin::Journal).await.map_err(MigrationError::Copy)?;
    RealmMark { stage: RealmStage::Member, ..mark }.write(directory)?;
    // A close that fails leaves entries in the journal for the next server.
    drop(journal.close());
    Ok(MigrationReport::of(&found))
}

/// Marks the directory, unless the realm exists.
async fn begin(
    directory: &Path,
    (realm, plan): (&Realm, &RealmPlan),
    found: &Recovered,
) -> Result<RealmMark, MigrationError> {
    if realm.record().await?.is_some() {
        return Err(exists(plan));
    }
    let mut instance = [0; 16];
    getrandom::fill(&mut instance).map_err(MigrationError::Random)?;
    let mark = RealmMark { realm: found.identity, instance: Seed(instance), stage: RealmStage::Moving };
    mark.write(directory)?;
    Ok(mark)
}

/// Makes the realm from the journal, unless an earlier attempt has.
async fn import(
    directory: &Path,
    (realm, plan): (&Realm, &RealmPlan),
    found: &Recovered,
) -> Result<(), MigrationError> {
    if let Some(record) = realm.record().await?
        && record.identity == found.identity
        && record.completeness.is_complete()
    {
        return Ok(());
    }
    let anchor = boot::latest(&found.state)
        .map(|boot| ClockAnchor { boot: BootId(boot.id), offset_millis: boot.offset_millis });
    let server = ServerName::from(plan.name.clone());
    let imported = realm.import(found, &server, anchor, FORMAT).await;
    match imported.map_err(MigrationError::Interrupted)? {
        ImportOutcome::Imported => Ok(()),
        ImportOutcome::Exists(record) => {
            if record.identity != found.identity {
                // Nothing of this journal is in the realm.
                RealmMark::remove(directory)?;
            }
            Err(exists(plan))
        }
    }
}

fn exists(plan: &RealmPlan) -> MigrationError {
    MigrationError::Exists { prefix: plan.keys.prefix().to_owned() }
}

/// Undoes a move that is not complete: the server of the directory may start again.
///
/// # Errors
/// Fails if the directory is in use, no move was begun or it is complete, or the engine does not answer.
pub async fn cancel_migration(directory: &Path, plan: &RealmPlan) -> Result<(), MigrationError> {
    let realm = Realm::new(plan.engine.clone(), plan.keys.clone(), CallTimes::default());
    let (journal, found) = open(directory)?;
    match RealmMark::read(directory)?.map(|mark| mark.stage) {
        Some(RealmStage::Moving) => {}
        Some(RealmStage::Member) => return Err(MigrationError::Complete(directory.to_owned())),
        None => return Err(MigrationError::NotMoving(directory.to_owned())),
    }
    match realm.cancel_import(found.identity).await? {
        CancelOutcome::Cancelled => RealmMark::remove(directory)?,
        CancelOutcome::Complete => return Err(MigrationError::Complete(directory.to_owned())),
    }
    drop(journal.close());
    Ok(())
}

/// Opens the journal of a stopped server, and locks its directory.
fn open(directory: &Path) -> Result<(Journal, Recovered), OpenError> {
    let now = Now { wall: wall(), steady: Steady::START };
    // The seed is for a new journal, which is not made.
    let options = Options { missing: IfMissing::Refuse, ..Options::new(Seed([0; 16]), now) };
    Journal::open(directory, &options)
}

/// Sum over all clusters.
pub(super) fn count(state: &ControlState, of: fn(&Cluster) -> usize) -> usize {
    state.clusters().map(|(_, cluster)| of(cluster.rules())).sum()
}

impl MigrationReport {
    fn of(found: &Recovered) -> Self {
        let count = |of| count(&found.state, of);
        Self {
            clusters: found.state.clusters().count(),
            hosts: count(|cluster| cluster.hosts().count()),
            tenants: count(|cluster| cluster.tenants().count()),
            machines: count(|cluster| cluster.machines().count()),
            audit_entries: found.audit_head,
        }
    }
}
