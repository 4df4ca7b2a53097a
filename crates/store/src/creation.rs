//! Creates a journal that holds a state.

use forewarn_control::{Chain, ClusterId, ControlState, Record, Stream};
use forewarn_lifecycle::MaintenanceId;
use rusqlite::Connection;

use crate::codec::to_bytes;
use crate::committer_request::StreamState;
use crate::database::{self, FileKind, write_record};
use crate::error::OpenError;
use crate::files::Directory;
use crate::fold::Folding;
use crate::heading::{Headings, JournalHeading, StreamHeading};
use crate::options::Options;
use crate::stream_key::StreamKey;

/// The states of which a state consists, by stream.
fn states_of(state: &ControlState) -> Vec<(StreamKey, StreamState)> {
    let shared = (StreamKey::SHARED, StreamState::Shared(state.shared_arc()));
    let ids: Vec<_> = state.clusters().map(|(id, _)| id).collect();
    let clusters = ids
        .into_iter()
        .filter_map(|id| Some((Stream::Cluster(id).into(), StreamState::Cluster(state.cluster_arc(id)?))));
    std::iter::once(shared).chain(clusters).collect()
}

/// Adds headings of streams without records, whose audit logs begin there.
pub(crate) fn add_streams(headings: &mut Headings, state: &ControlState, begin: Chain) {
    for (key, _) in states_of(state) {
        headings.insert(key, StreamHeading::new(headings.journal.clock, begin));
    }
}

/// Adds headings of the streams that have none.
pub(crate) fn add_missing_streams(headings: &mut Headings, state: &ControlState) {
    for (key, _) in states_of(state) {
        if headings.get(key).is_none() {
            headings.insert(key, StreamHeading::new(headings.journal.clock, Chain::default()));
        }
    }
}

/// Writes a state as the stored state of its streams, and records that name announcements that no VM has read.
pub(crate) fn write_state(
    connection: &Connection,
    headings: &mut Headings,
    state: &ControlState,
    unread: &[(ClusterId, MaintenanceId)],
) -> rusqlite::Result<()> {
    for (key, state) in states_of(state) {
        Folding::begin(key, headings.get_mut(key), state).finish(connection, headings)?;
    }
    let clock = headings.journal.clock;
    let of_clusters = unread.chunk_by(|(one, _), (other, _)| one == other);
    let records = of_clusters.flat_map(|cluster| {
        let maintenances: Vec<_> = cluster.iter().map(|(_, maintenance)| *maintenance).collect();
        Record::unread(clock, cluster[0].0, &maintenances).collect::<Vec<_>>()
    });
    for record in records {
        let key = record.stream().into();
        let number = headings.add_records(key, 1) + 1;
        write_record(connection, key, number, &to_bytes(&record))?;
    }
    headings.write(connection)
}

/// Creates a journal that holds a state, and announcements that no VM has read. It appears whole or not at all.
pub(crate) fn create(
    directory: &Directory,
    heading: JournalHeading,
    state: &ControlState,
    unread: &[(ClusterId, MaintenanceId)],
) -> Result<(), OpenError> {
    let new = directory.new_journal()?;
    let connection = database::create(&new, FileKind::Journal)?;
    let mut headings = Headings::new(heading);
    add_streams(&mut headings, state, Chain::default());
    let mut write = || {
        let transaction = connection.unchecked_transaction()?;
        write_state(&transaction, &mut headings, state, unread)?;
        transaction.commit()
    };
    write().map_err(|source| OpenError::database(&new, source))?;
    database::complete(connection, &new)?;
    directory.publish(&new)
}

/// Creates the journal of a new server.
pub(crate) fn create_empty(directory: &Directory, options: &Options) -> Result<(), OpenError> {
    let heading = JournalHeading::new(options.seed, options.now);
    create(directory, heading, &ControlState::new(options.seed), &[])
}
