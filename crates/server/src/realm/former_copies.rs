//! Former copies of this server, which were set aside when an older state of the engine was accepted. They have the audit
//! entries of before, as far as their hashes lead to those of the log as it is.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use forewarn_control::{AuditEntry, Stream};
use forewarn_lifecycle::{Now, Steady};
use forewarn_store::{AuditLogReader, AuditQuery, IfMissing, Journal, Options, ReadError, copies_set_aside};
use forewarn_types::Seed;
use tokio::sync::oneshot;

use crate::clock::wall;
use crate::long_work::{drop_in_background, run_long_work};

/// Former copies, which are open while entries are missing.
#[derive(Default)]
pub(super) struct FormerCopies {
    /// The newest one first. None before the first look.
    copies: Option<Vec<FormerCopy>>,
}

/// A former copy that is open.
struct FormerCopy {
    path: PathBuf,
    journal: Journal,
    /// Streams of which it has none of the missing entries.
    lacking: BTreeSet<Stream>,
}

impl FormerCopies {
    /// Opens the copies in a data directory, unless they are open, and reads the last missing entries of a stream and the
    /// entry before them from the first one that may have them. None if there is none.
    pub(super) async fn read(
        &mut self,
        directory: &Path,
        stream: Stream,
        (after, last): (u64, u64),
    ) -> Option<Vec<Arc<AuditEntry>>> {
        if self.copies.is_none() {
            let directory = directory.to_owned();
            self.copies = Some(run_long_work(move || open_all(&directory)).await);
        }
        let reader = self.copy_of(stream)?.journal.audit_log_reader();
        match read_block(&reader, stream, after..=last).await {
            Ok(entries) => Some(entries),
            Err(error) => {
                tracing::debug!(%stream, %error, "cannot read audit entries of a former copy");
                Some(Vec::new())
            }
        }
    }

    /// The copy from which entries of a stream are read.
    fn copy_of(&mut self, stream: Stream) -> Option<&mut FormerCopy> {
        self.copies.iter_mut().flatten().find(|copy| !copy.lacking.contains(&stream))
    }

    /// Takes note that the copy that was read lacks the entries of a stream, or has other ones.
    pub(super) fn give_up(&mut self, stream: Stream) {
        if let Some(copy) = self.copy_of(stream) {
            tracing::debug!(%stream, copy = %copy.path.display(), "former copy has no more audit entries");
            copy.lacking.insert(stream);
        }
    }

    /// Closes the copies: nothing is missing.
    pub(super) fn close(&mut self) {
        let copies = self.copies.replace(Vec::new());
        if copies.as_ref().is_some_and(|copies| !copies.is_empty()) {
            drop_in_background(copies);
        }
    }
}

fn open_all(directory: &Path) -> Vec<FormerCopy> {
    let found = copies_set_aside(directory).unwrap_or_default();
    found.into_iter().filter_map(|(_, path)| open(path)).collect()
}

fn open(path: PathBuf) -> Option<FormerCopy> {
    let now = Now { wall: wall(), steady: Steady::START };
    // The seed is for a new journal, which is not made.
    let options = Options { missing: IfMissing::Refuse, ..Options::new(Seed([0; 16]), now) };
    match Journal::open(&path, &options) {
        Ok((journal, _)) => Some(FormerCopy { path, journal, lacking: BTreeSet::new() }),
        Err(error) => {
            tracing::warn!(copy = %path.display(), %error, "cannot open a former copy of the log");
            None
        }
    }
}

/// Reads entries of a stream with numbers in a range, except the first.
async fn read_block(
    reader: &AuditLogReader,
    stream: Stream,
    numbers: RangeInclusive<u64>,
) -> Result<Vec<Arc<AuditEntry>>, ReadError> {
    let (mut entries, mut after) = (Vec::new(), Some(*numbers.start()));
    while after.is_some() && entries.last().is_none_or(|last: &Arc<AuditEntry>| last.number < *numbers.end())
    {
        let query = AuditQuery { stream: Some(stream), after, ..AuditQuery::default() };
        let (reply, result) = oneshot::channel();
        // The result is awaited below.
        reader.read_then(query, move |page| drop(reply.send(page)));
        let page = result.await.unwrap_or(Err(ReadError::Closed))?;
        after = page.next;
        entries.extend(page.entries.into_iter().map(|one| one.entry));
    }
    entries.retain(|entry| numbers.contains(&entry.number));
    Ok(entries)
}
