//! The start of a server in a realm: its journal catches up with the log.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use forewarn_control::{ControlState, Stream};
use forewarn_lifecycle::{Name, Seed, Steady};
use forewarn_peers::{PeerIdentity, RealmAuthority};
use forewarn_realm::{
    AuditMode, Batch, CallTimes, Joined, NewStream, ReadFrom, Realm, RealmClock, RealmCompleteness,
    RealmHistory, RealmRecord, RestoreEvidence, ServerName, SharedCreation, SharedStream, StreamContent,
    StreamPosition, StreamStart,
};
use forewarn_store::{
    InstalledState, InstanceId, Journal, OpenError, Options, RealmMark, RealmStage, Recovered, StreamState,
    UnreadEntries, is_being_set_aside, set_copy_aside,
};
use forewarn_types::Moment;

use super::RealmPlan;
use super::engine_check::refuse_unsafe_versions;
use super::own_name::{instance, mark_member, wait_for_name};
use super::restore::{EngineComparison, RememberedEngine, compare};
use crate::clock::{Clock, Speed, wall};
use crate::driver::announced_at_end;
use crate::realm_log::{place, stream_time};

/// The format in which records are written.
pub(crate) const FORMAT: u32 = 1;

/// Name of the secret of the authority that certifies servers.
const AUTHORITY: &str = "peer-authority";

type JoinError = Box<dyn std::error::Error + Send + Sync>;

/// A realm that this server has joined, and its journal with everything that the log had.
pub(crate) struct JoinedRealm {
    pub(crate) realm: Realm,
    pub(crate) clock: Clock,
    /// This server has created the realm.
    pub(crate) is_new: bool,
    pub(crate) identity: Arc<PeerIdentity>,
    pub(crate) shared: SharedStream,
    pub(crate) journal: Journal,
    pub(crate) found: Recovered,
    /// The place of the journal in each stream.
    pub(crate) positions: BTreeMap<Stream, StreamPosition>,
    /// Evidence that the engine was restored from an older backup.
    pub(crate) restored: Option<RestoreEvidence>,
    /// The number of the data directory.
    pub(crate) instance: InstanceId,
    /// The history of the realm.
    pub(crate) history: RealmHistory,
}

/// The origin of a journal that is a copy of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyOrigin {
    /// Everything in it comes from the log.
    Log,
    /// The realm was made from it: the log continues it.
    Journal,
}

impl CopyOrigin {
    fn of(directory: &Path) -> Result<Self, OpenError> {
        Ok(match RealmMark::read(directory)?.map(|mark| mark.stage) {
            Some(RealmStage::Moving) => Self::Journal,
            Some(RealmStage::Member) | None => Self::Log,
        })
    }
}

/// Joins a realm, or creates it.
pub(crate) async fn join(
    directory: &Path,
    plan: &RealmPlan,
    audit_keep: Duration,
) -> Result<JoinedRealm, JoinError> {
    let realm = Realm::new(plan.engine.clone(), plan.keys.clone(), CallTimes::default());
    refuse_unsafe_versions(&plan.engine).await?;
    let known = RememberedEngine::read(directory)?;
    if realm.record().await?.is_none() {
        known.map_or_else(|| refuse_journal(directory), |_| Err(NO_REALM.into()))?;
    }
    let (record, is_new) = match realm.join(new_record(plan)?).await? {
        Joined::Created(record) => (record, true),
        Joined::Found(record) => (record, false),
    };
    check_complete(&record)?;
    let instance = instance(directory)?;
    wait_for_name(&realm, &plan.name.clone().into(), instance).await?;
    let clock = clock(&record, plan)?;
    let now = clock.now();
    let secret = RealmAuthority::create(SystemTime::now())?;
    let secret = realm.join_secret(&Name::new(AUTHORITY)?, secret.as_bytes()).await?.into_value();
    let authority = RealmAuthority::from_secret(std::str::from_utf8(&secret)?)?;
    let hosts = vec![plan.listen.ip().to_string()];
    let identity = PeerIdentity::of_authority(authority, plan.name.clone(), hosts)?;
    let new = NewStream {
        state: None,
        position: StreamPosition::default(),
        time: stream_time(&clock),
        format: FORMAT,
    };
    if let SharedCreation::Created(_) = SharedStream::create(&realm, new).await? {
        tracing::info!("realm created");
    }
    // A drain ends with the process that it was ordered for.
    realm.set_draining(&ServerName::from(plan.name.clone()), false).await?;
    let (audit_retention, unread) = (audit_keep, UnreadEntries::Hidden);
    let options = Options { audit_retention, unread, ..Options::new(record.identity, now) };
    let CopyOfRealm { journal, found, comparison } = open_copy(directory, &realm, &record, &options).await?;
    let restored = comparison.evidence;
    let (journal, found, head) = match restored {
        Some(evidence) => {
            tracing::error!(%evidence, "engine was restored from an older backup; this server owns nothing");
            (journal, found, realm.head(Stream::Shared).await?.ok_or(NO_REALM)?)
        }
        None => {
            let head = catch_up(&realm, &journal, &found, CopyOrigin::of(directory)?).await?;
            mark_member(directory, record.identity, instance)?;
            journal.close()?;
            drop(journal);
            let (journal, found) = Journal::open(directory, &options)?;
            comparison.found.write(directory)?;
            (journal, found, head)
        }
    };
    let (shared, positions) = (SharedStream::at(&realm, head), positions(&found));
    let history = record.history();
    Ok(JoinedRealm {
        realm,
        clock,
        is_new,
        identity,
        shared,
        journal,
        found,
        positions,
        restored,
        instance,
        history,
    })
}

/// The journal of a server, and its comparison with the engine.
struct CopyOfRealm {
    journal: Journal,
    found: Recovered,
    comparison: EngineComparison,
}

/// Opens the journal of a server of a realm. A copy of before an accepted restore is set aside, and another one begins.
async fn open_copy(
    directory: &Path,
    realm: &Realm,
    record: &RealmRecord,
    options: &Options,
) -> Result<CopyOfRealm, JoinError> {
    if is_being_set_aside(directory) {
        set_aside(directory)?;
    }
    let open = || {
        let (journal, found) = Journal::open(directory, options)?;
        if found.identity == record.identity { Ok((journal, found)) } else { Err(JoinError::from(FOREIGN)) }
    };
    let (mut journal, mut found) = open()?;
    let mut comparison = compare(realm, RememberedEngine::read(directory)?, &found.state).await?;
    if comparison.evidence == Some(RestoreEvidence::Accepted) {
        journal.close()?;
        drop(journal);
        set_aside(directory)?;
        (journal, found) = open()?;
        // Nothing is known of the engine but what it has.
        comparison = compare(realm, None, &found.state).await?;
    }
    if comparison.found.history == record.history() {
        Ok(CopyOfRealm { journal, found, comparison })
    } else {
        Err(CHANGED.into())
    }
}

fn set_aside(directory: &Path) -> Result<(), OpenError> {
    if let Some(aside) = set_copy_aside(directory)? {
        let aside = aside.display();
        tracing::warn!(%aside, "an older state of the engine was accepted; the former copy of the log is set aside");
    }
    Ok(())
}

/// Refuses a realm that servers may not use.
fn check_complete(record: &RealmRecord) -> Result<(), JoinError> {
    match record.completeness {
        RealmCompleteness::Complete => Ok(()),
        RealmCompleteness::Importing => Err(IMPORTING.into()),
        RealmCompleteness::Accepting => Err(ACCEPTING.into()),
    }
}

/// Refuses to go on if an operator has begun to accept a restore after this server has looked: the command sees the key
/// of this server, or this server sees its mark.
pub(crate) async fn check_history(realm: &Realm, history: RealmHistory) -> Result<(), JoinError> {
    let record = realm.record().await?.ok_or(NO_REALM)?;
    check_complete(&record)?;
    if record.history() == history { Ok(()) } else { Err(CHANGED.into()) }
}

/// Refuses a directory with a journal: a realm that does not exist yet begins without one.
fn refuse_journal(directory: &Path) -> Result<(), JoinError> {
    if !directory.join("journal.db").try_exists()? {
        return Ok(());
    }
    let shown = directory.display();
    Err(match RealmMark::read(directory)?.map(|mark| mark.stage) {
        None => format!(
            "the data directory belongs to a single server: {shown}\n  hint: move its journal into the realm: forewarn store migrate {shown} --config FILE"
        ),
        Some(RealmStage::Moving) => OpenError::Moving(directory.to_owned()).to_string(),
        Some(RealmStage::Member) => NO_REALM.to_owned(),
    }
    .into())
}

/// The error for the journal of another server.
const FOREIGN: &str = "the data directory belongs to another server or realm\n  \
    hint: use an empty one; `forewarn store migrate` moves the journal of a server into a realm that does not exist yet";

/// The error for a realm that is not complete.
const IMPORTING: &str = "a journal is being moved into the realm\n  \
    hint: wait for the end of `forewarn store migrate`, or repeat it if it was interrupted";

/// The error for a realm whose restore is being accepted.
const ACCEPTING: &str = "the older state of a restored etcd is being accepted\n  \
    hint: wait for the end of `forewarn realm accept-restore`, or repeat it if it was interrupted";

/// The error for a realm that continues with an older state.
const CHANGED: &str =
    "an older state of the engine was accepted while this server started\n  hint: start it again";

/// The error for an engine that has lost its realm.
const NO_REALM: &str = "the engine has no realm, and this server was part of one\n  \
    hint: restore the engine from a backup, or use an empty data directory";

fn new_record(plan: &RealmPlan) -> Result<RealmRecord, JoinError> {
    let mut identity = [0; 16];
    getrandom::fill(&mut identity)?;
    let created = Moment(wall());
    let speed = plan.clock_speed.filter(|speed| *speed > 1);
    let clock = speed.map(|speed| RealmClock { origin: created, speed });
    let (identity, completeness) = (Seed(identity), RealmCompleteness::Complete);
    Ok(RealmRecord { identity, created, format: FORMAT, restores: 0, history: None, clock, completeness })
}

/// The clock of a realm, the same on all its servers.
pub(super) fn clock(record: &RealmRecord, plan: &RealmPlan) -> Result<Clock, JoinError> {
    let speed = record.clock.map_or(1, |clock| clock.speed);
    if let Some(wanted) = plan.clock_speed.filter(|wanted| *wanted != speed) {
        return Err(format!(
            "the clock of the realm has another speed than the settings: {speed} instead of {wanted}\n  \
             hint: the speed of a realm never changes; remove engine.clock_speed, or use another engine.prefix"
        )
        .into());
    }
    // Steady clocks of servers are comparable at least: the shared stream has records of all of them.
    let Some(RealmClock { origin: Moment(origin), speed }) = record.clock else {
        let steady = u64::try_from(wall().millis()).unwrap_or(0);
        return Ok(Clock::real(Steady::from_millis(steady)));
    };
    tracing::warn!(speed, "clock of the realm is accelerated, which is for tests only");
    Ok(Clock::accelerated(origin, Speed(speed)))
}

/// Copies everything that the journal lacks: the shared stream first, which names the clusters. Returns its head.
pub(super) async fn catch_up(
    realm: &Realm,
    journal: &Journal,
    found: &Recovered,
    origin: CopyOrigin,
) -> Result<forewarn_realm::KnownHead, JoinError> {
    let mut known = positions(found);
    match origin {
        CopyOrigin::Log => {}
        CopyOrigin::Journal => known.extend(first_positions(found, &known)),
    }
    let mut state: ControlState = found.state.clone();
    let content = realm.read_stream(Stream::Shared, from(&known, Stream::Shared)).await?;
    copy(journal, &content)?;
    if let StreamStart::State(StreamState::Shared(shared), _) = &content.start {
        state = ControlState::from_parts(Arc::clone(shared), []);
    }
    for batch in &content.batches {
        batch.records.iter().for_each(|record| drop(state.apply(record)));
    }
    let shared_head = content.head;
    let clusters: Vec<_> = state.shared().clusters().map(|(id, _)| Stream::Cluster(id)).collect();
    for stream in clusters {
        // A new cluster has no log before it has an owner.
        if realm.head(stream).await?.is_none() {
            continue;
        }
        copy(journal, &realm.read_stream(stream, from(&known, stream)).await?)?;
    }
    Ok(shared_head)
}

fn from(known: &BTreeMap<Stream, StreamPosition>, stream: Stream) -> ReadFrom {
    known.get(&stream).map_or(ReadFrom::Beginning, |position| ReadFrom::After(*position))
}

/// Copies everything that was read of a stream: a stored state, if the log no longer has the batches before it.
fn copy(journal: &Journal, content: &StreamContent) -> Result<(), JoinError> {
    let clock = content.clock();
    match &content.start {
        StreamStart::Initial | StreamStart::After(_) => {}
        StreamStart::State(state, StreamPosition { number, records, chain }) => {
            let (state, records, chain) = (state.clone(), *records, *chain);
            journal.install(content.stream, InstalledState { state, records, chain, clock })?;
            tracing::info!(stream = %content.stream, number, "continued from a stored state of the log");
        }
    }
    content.batches.iter().try_for_each(|batch| copy_batch(journal, batch))
}

fn copy_batch(journal: &Journal, batch: &Batch) -> Result<(), JoinError> {
    match batch.mode {
        AuditMode::Append => {
            journal.show_all_entries(batch.stream);
            if !announced_at_end(&batch.records).is_empty() {
                // The next batch may replace them.
                journal.hide_entries_after(batch.stream, batch.chain_before.number);
            }
            journal.append(batch.stream, &batch.records, &batch.entries)?
        }
        AuditMode::Rewrite => journal.rewrite(batch.stream, &batch.records, &batch.entries)?,
    };
    Ok(())
}

/// The place of a journal in each stream of which it has batches.
fn positions(found: &Recovered) -> BTreeMap<Stream, StreamPosition> {
    let chain = |stream| found.audit_ends.get(&stream).copied().unwrap_or_default();
    let place = |stream, position: Option<forewarn_control::StreamPosition>| {
        let at = position.filter(|at| at.number > 0)?;
        Some((stream, place(at, chain(stream))))
    };
    let shared = place(Stream::Shared, found.state.shared().position());
    let clusters = found.state.clusters();
    let clusters = clusters.filter_map(|(id, state)| place(Stream::Cluster(id), state.position()));
    shared.into_iter().chain(clusters).collect()
}

/// The place before the first batch, of a journal that the log of the realm continues.
fn first_positions(
    found: &Recovered,
    known: &BTreeMap<Stream, StreamPosition>,
) -> BTreeMap<Stream, StreamPosition> {
    let first = |(stream, records): (&Stream, &u64)| {
        let chain = found.audit_ends.get(stream).copied().unwrap_or_default();
        (*stream, StreamPosition { number: 0, records: *records, chain })
    };
    let streams = found.record_ends.iter().filter(|(stream, _)| !known.contains_key(stream));
    streams.map(first).collect()
}
