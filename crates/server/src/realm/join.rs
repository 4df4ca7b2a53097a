//! The start of a server in a realm: its journal catches up with the log.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use forewarn_control::{ControlState, Stream};
use forewarn_lifecycle::{Name, Seed, Steady};
use forewarn_peers::{PeerIdentity, RealmAuthority};
use forewarn_realm::{
    AuditMode, Batch, CallTimes, Joined, NewStream, ReadFrom, Realm, RealmClock, RealmRecord,
    RestoreEvidence, ServerName, SharedCreation, SharedStream, StreamPosition, StreamStart,
};
use forewarn_store::{Journal, Options, Recovered};
use forewarn_types::Moment;

use super::RealmPlan;
use super::restore::{compare, remember_id, remembered_id};
use crate::clock::{Clock, Speed, wall};
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
}

/// Joins a realm, or creates it.
pub(crate) async fn join(
    directory: &Path,
    plan: &RealmPlan,
    audit_keep: Duration,
) -> Result<JoinedRealm, JoinError> {
    let realm = Realm::new(plan.engine.clone(), plan.keys.clone(), CallTimes::default());
    let known_id = remembered_id(directory)?;
    if known_id.is_some() && realm.record().await?.is_none() {
        return Err(NO_REALM.into());
    }
    let (record, is_new) = match realm.join(new_record(plan)?).await? {
        Joined::Created(record) => (record, true),
        Joined::Found(record) => (record, false),
    };
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
    let options = Options { audit_retention: audit_keep, ..Options::new(record.identity, now) };
    let (journal, found) = Journal::open(directory, &options)?;
    if found.identity != record.identity {
        return Err("the data directory belongs to another server or realm\n  hint: use an empty one".into());
    }
    let (restored, cluster_id) = compare(&realm, known_id, &found.state).await?;
    if let Some(evidence) = restored {
        tracing::error!(%evidence, "engine was restored from an older backup; this server owns nothing");
        let head = realm.head(Stream::Shared).await?.ok_or(NO_REALM)?;
        let (shared, positions) = (SharedStream::at(&realm, head), positions(&found));
        return Ok(JoinedRealm {
            realm,
            clock,
            is_new,
            identity,
            shared,
            journal,
            found,
            positions,
            restored,
        });
    }
    let shared_head = catch_up(&realm, &journal, &found).await?;
    journal.close()?;
    drop(journal);
    let (journal, found) = Journal::open(directory, &options)?;
    remember_id(directory, cluster_id)?;
    let positions = positions(&found);
    let shared = SharedStream::at(&realm, shared_head);
    Ok(JoinedRealm { realm, clock, is_new, identity, shared, journal, found, positions, restored })
}

/// The error for an engine that has lost its realm.
const NO_REALM: &str = "the engine has no realm, and this server was part of one\n  \
    hint: restore the engine from a backup, or use an empty data directory";

fn new_record(plan: &RealmPlan) -> Result<RealmRecord, JoinError> {
    let mut identity = [0; 16];
    getrandom::fill(&mut identity)?;
    let created = Moment(wall());
    let speed = plan.clock_speed.filter(|speed| *speed > 1);
    let clock = speed.map(|speed| RealmClock { origin: created, speed });
    Ok(RealmRecord { identity: Seed(identity), created, format: FORMAT, restores: 0, clock })
}

/// The clock of a realm, the same on all its servers.
fn clock(record: &RealmRecord, plan: &RealmPlan) -> Result<Clock, JoinError> {
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
async fn catch_up(
    realm: &Realm,
    journal: &Journal,
    found: &Recovered,
) -> Result<forewarn_realm::KnownHead, JoinError> {
    let known = positions(found);
    let mut state: ControlState = found.state.clone();
    let content = realm.read_stream(Stream::Shared, from(&known, Stream::Shared)).await?;
    check_start(&content.start)?;
    for batch in &content.batches {
        copy(journal, batch)?;
        batch.records.iter().for_each(|record| drop(state.apply(record)));
    }
    let shared_head = content.head;
    let clusters: Vec<_> = state.shared().clusters().map(|(id, _)| Stream::Cluster(id)).collect();
    for stream in clusters {
        // A new cluster has no log before it has an owner.
        if realm.head(stream).await?.is_none() {
            continue;
        }
        let content = realm.read_stream(stream, from(&known, stream)).await?;
        check_start(&content.start)?;
        content.batches.iter().try_for_each(|batch| copy(journal, batch))?;
    }
    Ok(shared_head)
}

fn check_start(start: &StreamStart) -> Result<(), JoinError> {
    match start {
        StreamStart::Initial | StreamStart::After(_) => Ok(()),
        StreamStart::State(..) => Err("the log no longer has the batches that this server lacks".into()),
    }
}

fn from(known: &BTreeMap<Stream, StreamPosition>, stream: Stream) -> ReadFrom {
    known
        .get(&stream)
        .filter(|position| position.number > 0)
        .map_or(ReadFrom::Beginning, |position| ReadFrom::After(*position))
}

fn copy(journal: &Journal, batch: &Batch) -> Result<(), JoinError> {
    match batch.mode {
        AuditMode::Append => journal.append(batch.stream, &batch.records, &batch.entries)?,
        AuditMode::Rewrite => journal.rewrite(batch.stream, &batch.records, &batch.entries)?,
    };
    Ok(())
}

/// The place of a journal in each stream.
fn positions(found: &Recovered) -> BTreeMap<Stream, StreamPosition> {
    let chain = |stream| found.audit_ends.get(&stream).copied().unwrap_or_default();
    let place = |stream, position: Option<forewarn_control::StreamPosition>| {
        position.map(|at| (stream, place(at, chain(stream))))
    };
    let shared = place(Stream::Shared, found.state.shared().position());
    let clusters = found.state.clusters();
    let clusters = clusters.filter_map(|(id, state)| place(Stream::Cluster(id), state.position()));
    shared.into_iter().chain(clusters).collect()
}
