//! A journal as a whole: records go to their streams.

use std::sync::mpsc;

use forewarn_control::{ControlState, Record, Stream};
use forewarn_store::{AppendError, Journal, StreamState};

/// Appends records in their order, those of one stream that follow each other together.
pub(crate) fn append(journal: &Journal, records: &[Record]) -> Result<(), AppendError> {
    let mut runs = records.chunk_by(|one, other| one.stream() == other.stream());
    runs.try_for_each(|run| journal.append(run[0].stream(), run, &[]).map(drop))
}

pub(crate) fn streams(state: &ControlState) -> Vec<Stream> {
    state.clusters().map(|(id, _)| Stream::Cluster(id)).chain([Stream::Shared]).collect()
}

/// Folds the state of one stream.
pub(crate) fn fold(journal: &Journal, stream: Stream, state: &ControlState) {
    let state = match stream {
        Stream::Shared => StreamState::Shared(state.shared_arc()),
        Stream::Cluster(id) => StreamState::Cluster(state.cluster_arc(id).unwrap()),
    };
    journal.fold(stream, state);
}

/// Folds every stream that wants it. Returns their number.
pub(crate) fn fold_if_wanted(journal: &Journal, state: &ControlState) -> usize {
    let wanted: Vec<_> = streams(state).into_iter().filter(|stream| journal.wants_fold(*stream)).collect();
    wanted.iter().for_each(|stream| fold(journal, *stream, state));
    wanted.len()
}

/// Keeps the committer busy until the sender is dropped.
pub(crate) fn hold(journal: &Journal) -> mpsc::Sender<()> {
    let (release, released) = mpsc::channel::<()>();
    let (began, begins) = mpsc::channel();
    journal.append_then(Stream::Shared, &[], &[], move |_| {
        began.send(()).unwrap();
        // It ends with an error: nothing is sent.
        released.recv().unwrap_err();
    });
    begins.recv().unwrap();
    release
}
