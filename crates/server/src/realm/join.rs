//! The start of a server in a realm: its journal catches up with the log.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use forewarn_control::{ControlState, Stream};
use forewarn_lifecycle::{Name, Now, Seed};
use forewarn_peers::{PeerIdentity, RealmAuthority};
use forewarn_realm::{
    AuditMode, Batch, CallTimes, Joined, NewStream, ReadFrom, Realm, RealmRecord, SharedCreation,
    SharedStream, StreamContent, StreamPosition, StreamStart,
};
use forewarn_store::{InstalledState, Journal, Options, Recovered, StreamState, UnreadEntries};
use forewarn_types::Moment;

use super::RealmPlan;
use crate::clock::Clock;
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
    /// This server has created the realm.
    pub(crate) is_new: bool,
    pub(crate) identity: Arc<PeerIdentity>,
    pub(crate) shared: SharedStream,
    pub(crate) journal: Journal,
    pub(crate) found: Recovered,
    /// The place of the journal in each stream.
    pub(crate) positions: BTreeMap<Stream, StreamPosition>,
}

/// Joins a realm, or creates it.
pub(crate) async fn join(
    directory: &Path,
    plan: &RealmPlan,
    (clock, audit_keep): (&Clock, Duration),
) -> Result<JoinedRealm, JoinError> {
    let realm = Realm::new(plan.engine.clone(), plan.keys.clone(), CallTimes::default());
    let now = clock.now();
    let (record, is_new) = match realm.join(new_record(now)?).await? {
        Joined::Created(record) => (record, true),
        Joined::Found(record) => (record, false),
    };
    let secret = RealmAuthority::create(SystemTime::now())?;
    let secret = realm.join_secret(&Name::new(AUTHORITY)?, secret.as_bytes()).await?.into_value();
    let authority = RealmAuthority::from_secret(std::str::from_utf8(&secret)?)?;
    let hosts = vec![plan.listen.ip().to_string()];
    let identity = PeerIdentity::of_authority(authority, plan.name.clone(), hosts)?;
    let new = NewStream {
        state: None,
        position: StreamPosition::default(),
        time: stream_time(clock),
        format: FORMAT,
    };
    if let SharedCreation::Created(_) = SharedStream::create(&realm, new).await? {
        tracing::info!("realm created");
    }
    let (audit_retention, unread) = (audit_keep, UnreadEntries::Hidden);
    let options = Options { audit_retention, unread, ..Options::new(record.identity, now) };
    let (journal, found) = Journal::open(directory, &options)?;
    if found.identity != record.identity {
        return Err("the data directory belongs to another server or realm\n  hint: use an empty one".into());
    }
    let shared_head = catch_up(&realm, &journal, &found).await?;
    journal.close()?;
    drop(journal);
    let (journal, found) = Journal::open(directory, &options)?;
    let positions = positions(&found);
    let shared = SharedStream::at(&realm, shared_head);
    Ok(JoinedRealm { realm, is_new, identity, shared, journal, found, positions })
}

fn new_record(now: Now) -> Result<RealmRecord, JoinError> {
    let mut identity = [0; 16];
    getrandom::fill(&mut identity)?;
    Ok(RealmRecord { identity: Seed(identity), created: Moment(now.wall), format: FORMAT, restores: 0 })
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
    known
        .get(&stream)
        .filter(|position| position.number > 0)
        .map_or(ReadFrom::Beginning, |position| ReadFrom::After(*position))
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
