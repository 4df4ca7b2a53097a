//! The acceptance of an engine that was restored from an older backup, while all servers are stopped: its state is the
//! truth from now on.
//!
//! It reads the copy in a data directory, to tell what is lost, and leaves it alone: each server sets its own copy aside
//! when it starts again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use forewarn_control::{ControlState, Stream};
use forewarn_lifecycle::{Now, Seed, Steady};
use forewarn_ownership::ServerName;
use forewarn_realm::{
    CallTimes, CommitError, Realm, RealmCompleteness, RealmError, RealmHeads, RealmRecord, RestoreAcceptance,
    RestoreEvidence, SERVER_LEASE_SECONDS,
};
use forewarn_store::{IfMissing, Journal, OpenError, Options, RealmMark, RealmStage, Recovered};
use tokio::time::{Instant, sleep};

use super::RealmPlan;
use super::engine_check::{UnsafeVersion, refuse_unsafe_versions};
use super::join::clock;
use super::migration::count;
use super::restore::{EngineComparison, RememberedEngine, compare};
use crate::clock::wall;
use crate::realm_log::stream_time;

/// Longest wait for the end of the leases of servers that were stopped. Etcd ends them a little late.
const LEASE_WAIT: Duration = Duration::from_secs(SERVER_LEASE_SECONDS as u64 + 3);

/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// A realm whose engine was restored, with the copy in a data directory, which stays locked.
#[derive(Debug)]
pub struct RestoredRealm {
    realm: Realm,
    plan: RealmPlan,
    record: RealmRecord,
    /// The difference to the engine that this server knew. None if it knew none, or an acceptance goes on.
    evidence: Option<RestoreEvidence>,
    copy: Option<RealmCopy>,
    heads: RealmHeads,
    restores: u64,
}

/// The copy of a server.
#[derive(Debug)]
struct RealmCopy {
    /// It keeps the directory locked.
    journal: Journal,
    state: ControlState,
}

/// A stream in the engine, and in the copy of this server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamLoss {
    pub stream: Stream,
    /// Name of the cluster. None for the shared stream.
    pub cluster: Option<String>,
    /// Number of the last batch in the engine. None if it has no such stream.
    pub restored: Option<u64>,
    /// Number of the last batch in the copy. None without a copy, or if it has no such stream.
    pub copied: Option<u64>,
    /// Batches of the copy that the engine lacks. None if that is not known.
    pub lost: Option<u64>,
}

/// A restore that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptanceReport {
    /// Number of restores that were accepted so far.
    pub restores: u64,
    pub clusters: usize,
    pub hosts: usize,
    pub tenants: usize,
    pub machines: usize,
}

/// Reason why a restore was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum AcceptanceError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("cannot read {}: {source}", .path.display())]
    Memory { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Version(#[from] UnsafeVersion),
    #[error(transparent)]
    Realm(#[from] RealmError),
    #[error("the acceptance is not complete: {0}\n  hint: check that all servers are stopped, and repeat it")]
    Interrupted(#[source] CommitError),
    #[error("{0}")]
    Clock(Box<dyn std::error::Error + Send + Sync>),
    /// The engine has nothing under the prefix.
    #[error("the engine has no realm: {prefix}\n  hint: restore etcd first, or check engine.prefix")]
    NoRealm { prefix: String },
    /// A journal is moving into the realm.
    #[error(
        "a journal is being moved into the realm\n  hint: repeat `forewarn store migrate`, if it was interrupted"
    )]
    Importing,
    /// Servers run.
    #[error(
        "servers of the realm are running: {}\n  hint: stop all of them; a server that was killed counts for 5 s",
        .0.iter().map(ServerName::as_str).collect::<Vec<_>>().join(", ")
    )]
    Running(Vec<ServerName>),
    /// The engine has everything that the copy has.
    #[error(
        "nothing to accept: etcd has everything that this server has seen\n  hint: start the servers; if one of them \
         owns nothing because of a restore, run the command on its computer"
    )]
    Nothing,
    /// A restore was accepted since this server was stopped.
    #[error(
        "nothing to accept: an older state was accepted already\n  hint: start the servers; each of them sets its former \
         copy aside"
    )]
    Accepted,
    /// The journal belongs to a single server, or to another realm.
    #[error(
        "the data directory belongs to another server or realm: {}\n  hint: use the configuration of a server of the realm",
        .0.display()
    )]
    Foreign(PathBuf),
    /// Another command has changed the realm.
    #[error("the realm was changed at the same time\n  hint: repeat the command")]
    Changed,
    #[error("cannot get random bytes from the operating system: {0}")]
    Random(getrandom::Error),
}

impl RestoredRealm {
    /// Compares the realm of a plan with the copy in a data directory. The copy may be missing.
    ///
    /// # Errors
    /// Fails if servers run, the engine has everything that the copy has, or something cannot be read.
    pub async fn inspect(directory: &Path, plan: &RealmPlan) -> Result<Self, AcceptanceError> {
        let realm = Realm::new(plan.engine.clone(), plan.keys.clone(), CallTimes::default());
        refuse_unsafe_versions(&plan.engine).await?;
        let record = realm.record().await?;
        let record =
            record.ok_or_else(|| AcceptanceError::NoRealm { prefix: plan.keys.prefix().to_owned() })?;
        if record.completeness == RealmCompleteness::Importing {
            return Err(AcceptanceError::Importing);
        }
        let copy = match open_copy(directory, &record) {
            Err(AcceptanceError::Open(error @ OpenError::InUse(_))) => {
                let running = realm.server_names().await?;
                return Err(if running.is_empty() {
                    error.into()
                } else {
                    AcceptanceError::Running(running)
                });
            }
            copy => copy?,
        };
        wait_until_stopped(&realm).await?;
        let memory = |source| AcceptanceError::Memory { path: directory.to_owned(), source };
        let known = RememberedEngine::read(directory).map_err(memory)?;
        let empty = ControlState::new(record.identity);
        let state = copy.as_ref().map_or(&empty, |copy| &copy.state);
        let EngineComparison { evidence, .. } = compare(&realm, known, state).await?;
        let restores = match record.completeness {
            RealmCompleteness::Accepting => record.restores,
            RealmCompleteness::Complete | RealmCompleteness::Importing => {
                let known = known.map_or(0, |known| known.history.restores);
                known.max(record.restores) + 1
            }
        };
        match (record.completeness, evidence) {
            (RealmCompleteness::Complete, Some(RestoreEvidence::Accepted)) => {
                return Err(AcceptanceError::Accepted);
            }
            (RealmCompleteness::Complete, None) if copy.is_some() => return Err(AcceptanceError::Nothing),
            (
                RealmCompleteness::Complete | RealmCompleteness::Accepting | RealmCompleteness::Importing,
                _,
            ) => {}
        }
        let heads = realm.heads().await?;
        Ok(Self { realm, plan: plan.clone(), record, evidence, copy, heads, restores })
    }

    /// The difference to the engine that this server knew, in words.
    #[must_use]
    pub fn reason(&self) -> String {
        match (&self.evidence, self.record.completeness) {
            (_, RealmCompleteness::Accepting) => "an earlier acceptance was interrupted".to_owned(),
            (Some(evidence), _) => evidence.to_string(),
            (None, _) => "this computer has no copy to compare etcd with".to_owned(),
        }
    }

    /// Every stream in the engine, and in the copy of this server.
    #[must_use]
    pub fn losses(&self) -> Vec<StreamLoss> {
        let state = self.copy.as_ref().map(|copy| &copy.state);
        let copied: BTreeMap<Stream, u64> = state.into_iter().flat_map(super::restore::numbers).collect();
        let streams: BTreeSet<_> = self.heads.heads.keys().chain(copied.keys()).copied().collect();
        let is_comparable = match self.evidence {
            None | Some(RestoreEvidence::OtherCluster { .. } | RestoreEvidence::OlderHead { .. }) => true,
            Some(RestoreEvidence::OtherHistory { .. } | RestoreEvidence::Accepted) => false,
        };
        let loss = |stream| {
            let restored = self.heads.heads.get(&stream).map(|known| known.head.number);
            let copied = copied.get(&stream).copied();
            let cluster = match stream {
                Stream::Shared => None,
                Stream::Cluster(id) => state.and_then(|state| state.shared().cluster_name(id)),
            };
            StreamLoss {
                stream,
                cluster: cluster.map(ToString::to_string),
                restored,
                copied,
                lost: copied
                    .filter(|_| is_comparable)
                    .map(|number| number.saturating_sub(restored.unwrap_or(0))),
            }
        };
        streams.into_iter().map(loss).collect()
    }

    /// Accepts the state in the engine. No server may be started meanwhile.
    ///
    /// # Errors
    /// Fails if a server was started, or the engine does not answer. It may be repeated.
    pub async fn accept(self) -> Result<AcceptanceReport, AcceptanceError> {
        let Self { realm, plan, record, copy, restores, .. } = &self;
        let accepting = match record.completeness {
            RealmCompleteness::Accepting => *record,
            RealmCompleteness::Complete | RealmCompleteness::Importing => {
                realm.begin_acceptance(record, *restores).await?.ok_or(AcceptanceError::Changed)?
            }
        };
        // A server that has looked before the mark has its key now, or sees the mark after it has written its key.
        let running = realm.server_names().await?;
        if !running.is_empty() {
            if record.completeness == RealmCompleteness::Complete {
                realm.change_record(&accepting, record).await?;
            }
            return Err(AcceptanceError::Running(running));
        }
        let mut seed = [0; 16];
        getrandom::fill(&mut seed).map_err(AcceptanceError::Random)?;
        let clock = clock(record, plan).map_err(AcceptanceError::Clock)?;
        let acceptance = RestoreAcceptance {
            server: plan.name.clone().into(),
            seed: Seed(seed),
            seen: copy.as_ref().map_or(0, |copy| copy.state.highest_incarnation()),
            time: stream_time(&clock),
            reason: self.reason(),
        };
        let accepted = realm.accept(&accepting, &acceptance).await;
        let (accepted, state) = accepted.map_err(AcceptanceError::Interrupted)?;
        if let Some(copy) = copy {
            // A close that fails leaves entries in the journal for the next server.
            drop(copy.journal.close());
        }
        Ok(AcceptanceReport::of(accepted.restores, &state))
    }
}

/// Opens the copy in a data directory. None if there is none.
fn open_copy(directory: &Path, record: &RealmRecord) -> Result<Option<RealmCopy>, AcceptanceError> {
    let now = Now { wall: wall(), steady: Steady::START };
    // The seed is for a new journal, which is not made.
    let options = Options { missing: IfMissing::Refuse, ..Options::new(Seed([0; 16]), now) };
    let (journal, found) = match Journal::open(directory, &options) {
        Ok(opened) => opened,
        Err(OpenError::Missing(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let Recovered { state, identity, .. } = found;
    if RealmMark::read(directory)?.is_some_and(|mark| mark.stage == RealmStage::Moving) {
        return Err(OpenError::Moving(directory.to_owned()).into());
    }
    if identity == record.identity {
        Ok(Some(RealmCopy { journal, state }))
    } else {
        Err(AcceptanceError::Foreign(directory.to_owned()))
    }
}

/// Waits until no server has a key: one that was killed has it until its lease ends.
async fn wait_until_stopped(realm: &Realm) -> Result<(), AcceptanceError> {
    let deadline = Instant::now() + LEASE_WAIT;
    loop {
        let running = realm.server_names().await?;
        if running.is_empty() {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(AcceptanceError::Running(running));
        }
        sleep(PAUSE).await;
    }
}

impl AcceptanceReport {
    fn of(restores: u64, state: &ControlState) -> Self {
        let count = |of| count(state, of);
        Self {
            restores,
            clusters: state.clusters().count(),
            hosts: count(|cluster| cluster.hosts().count()),
            tenants: count(|cluster| cluster.tenants().count()),
            machines: count(|cluster| cluster.machines().count()),
        }
    }
}
