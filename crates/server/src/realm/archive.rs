//! The archive of this server: its copy of all audit logs. Entries that were before an installed state are copied from a
//! former copy of this server or from another server, and the numbers on the disk are recorded for the servers that shorten
//! the logs.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use forewarn_control::{AuditEntry, Chain, Stream};
use forewarn_ownership::ServerName;
use forewarn_peers::{AuditQuery, PeerClient, PeerError};
use forewarn_realm::{ArchivedNumbers, Realm};
use tokio::sync::watch;
use tokio::time::Instant;

use super::former_copies::FormerCopies;
use super::handle::PeerClients;
use super::view::{SharedView, uptime};
use crate::broadcasts::Broadcasts;
use crate::journal::JournalArchive;

/// Interval between two records of the numbers on the disk.
const RECORD_INTERVAL: Duration = Duration::from_secs(5);

/// Pause between two looks for missing entries.
const PAUSE: Duration = Duration::from_millis(500);

/// Entries that are copied together.
const ENTRIES_PER_BLOCK: u64 = 250;

/// Blocks that are copied before the numbers may be recorded again.
const BLOCKS_PER_ROUND: usize = 20;

/// Pause before entries are looked for again that no other server had.
const RETRY_PAUSE: Duration = Duration::from_secs(60);

/// Time after which a server without others does not wait for one that has older entries.
const ALONE_MIN: Duration = Duration::from_secs(30);

/// Keeps the archive of this server complete.
pub(crate) struct ArchiveKeeper {
    pub(crate) realm: Realm,
    pub(crate) own: ServerName,
    pub(crate) view: SharedView,
    pub(crate) broadcasts: Broadcasts,
    pub(crate) clients: PeerClients,
    pub(crate) archive: JournalArchive,
    /// The data directory, which may have former copies.
    pub(crate) directory: PathBuf,
}

/// Results of former rounds.
#[derive(Default)]
struct ArchiveProgress {
    recorded: Option<(ArchivedNumbers, Instant)>,
    /// Streams of which no other server has the missing entries, and since when that is known.
    unavailable: BTreeMap<Stream, Instant>,
    /// Time since which there has been no other server.
    alone_since: Option<Instant>,
    former: FormerCopies,
}

/// Result of a copy of some entries.
enum Copied {
    Some,
    /// The other server does not have them either.
    Lacking,
    /// The other server did not answer, or its entries are other ones.
    Failed,
}

impl ArchiveKeeper {
    /// Runs until the server stops.
    pub(crate) async fn run(self, mut stop: watch::Receiver<bool>) {
        let mut progress = ArchiveProgress::default();
        loop {
            // An engine that was restored has another history.
            if self.view.lock().restored.is_none() {
                self.fill(&mut progress).await;
                self.record(&mut progress).await;
            }
            let stopped = stop.wait_for(|stop| *stop);
            if tokio::time::timeout(PAUSE, stopped).await.is_ok() {
                return;
            }
        }
    }

    /// Copies some entries that are missing, the newest first.
    async fn fill(&self, progress: &mut ArchiveProgress) {
        for _ in 0..BLOCKS_PER_ROUND {
            let Some(missing) = self.archive.missing_entries() else { return };
            if missing.is_empty() {
                return progress.former.close();
            }
            if self.copy_from_former(progress, &missing).await {
                continue;
            }
            progress.unavailable.retain(|stream, _| missing.contains_key(stream));
            let is_due = |stream: &Stream| {
                progress.unavailable.get(stream).is_none_or(|since| since.elapsed() >= RETRY_PAUSE)
            };
            let Some((stream, numbers)) = missing.into_iter().find(|(stream, _)| is_due(stream)) else {
                return;
            };
            let clients: Vec<_> = self.clients.load().values().cloned().collect();
            let (mut lacking, mut is_copied) = (0, false);
            for client in &clients {
                match self.copy(client, stream, &numbers).await {
                    Copied::Some => is_copied = true,
                    Copied::Lacking => lacking += 1,
                    Copied::Failed => {}
                }
                if is_copied {
                    break;
                }
            }
            if is_copied {
                progress.unavailable.remove(&stream);
                continue;
            }
            if lacking == clients.len() && (lacking > 0 || self.is_alone(progress)) {
                tracing::info!(%stream, first = numbers.start(), last = numbers.end(), "no server has older audit entries");
                progress.unavailable.insert(stream, Instant::now());
            }
            return;
        }
    }

    /// Copies some entries from a former copy of this server. Returns false if it has none of them.
    async fn copy_from_former(
        &self,
        progress: &mut ArchiveProgress,
        missing: &BTreeMap<Stream, RangeInclusive<u64>>,
    ) -> bool {
        for (stream, numbers) in missing {
            let block = (after_block(numbers), *numbers.end());
            while let Some(entries) = progress.former.read(&self.directory, *stream, block).await {
                let Some((before, entries)) = provable(entries, numbers) else {
                    progress.former.give_up(*stream);
                    continue;
                };
                match self.archive.fill(*stream, before, entries).await {
                    Ok(_) => return true,
                    Err(error) => {
                        tracing::debug!(%stream, %error, "a former copy has other audit entries");
                        progress.former.give_up(*stream);
                    }
                }
            }
        }
        false
    }

    /// Returns true if there has been no other server for a while. At the start, the others are not known yet.
    fn is_alone(&self, progress: &mut ArchiveProgress) -> bool {
        if self.view.lock().archives.expects_others(&self.own, uptime()) {
            progress.alone_since = None;
            return false;
        }
        progress.alone_since.get_or_insert_with(Instant::now).elapsed() >= ALONE_MIN
    }

    /// Copies the last missing entries of a stream from another server.
    async fn copy(&self, client: &PeerClient, stream: Stream, missing: &RangeInclusive<u64>) -> Copied {
        let entries = match read_block(client, stream, missing).await {
            Ok(entries) => entries,
            Err(error) => {
                tracing::debug!(%stream, %error, "cannot read audit entries of another server");
                return Copied::Failed;
            }
        };
        let Some((before, entries)) = provable(entries, missing) else { return Copied::Lacking };
        match self.archive.fill(stream, before, entries).await {
            Ok(_) => Copied::Some,
            Err(error) => {
                let server = &client.peer().name;
                tracing::warn!(%stream, %server, %error, "audit entries of another server are refused");
                Copied::Failed
            }
        }
    }

    /// Records the numbers on the disk, if they have changed. A stream whose older entries are still to be copied counts
    /// as it was before: the log must not forget what this server relies on others for.
    async fn record(&self, progress: &mut ArchiveProgress) {
        let due = progress.recorded.as_ref().is_none_or(|(_, at)| at.elapsed() >= RECORD_INTERVAL);
        let Some(missing) = self.archive.missing_entries().filter(|_| due) else { return };
        let former = progress.recorded.as_ref().map(|(numbers, _)| numbers);
        let snapshot = self.broadcasts.snapshot.load();
        let shared = [(Stream::Shared, snapshot.state.shared().log_number())];
        let clusters = snapshot.state.clusters().map(|(id, state)| (Stream::Cluster(id), state.log_number()));
        let is_complete =
            |stream| !missing.contains_key(&stream) || progress.unavailable.contains_key(&stream);
        let number = |(stream, number)| {
            if is_complete(stream) {
                return Some((stream, number));
            }
            Some((stream, *former?.streams.get(&stream)?))
        };
        let streams = shared.into_iter().chain(clusters).filter_map(number).collect();
        let numbers = ArchivedNumbers { streams };
        if former == Some(&numbers) {
            progress.recorded = Some((numbers, Instant::now()));
            return;
        }
        match self.realm.record_archived(&self.own, &numbers).await {
            Ok(_) => progress.recorded = Some((numbers, Instant::now())),
            Err(error) => tracing::debug!(%error, "cannot record the numbers on the disk"),
        }
    }
}

/// Reads the last missing entries of a stream, and the entry before them.
async fn read_block(
    client: &PeerClient,
    stream: Stream,
    missing: &RangeInclusive<u64>,
) -> Result<Vec<Arc<AuditEntry>>, PeerError> {
    let last = *missing.end();
    let mut lines = client.audit(&AuditQuery { stream, after: after_block(missing) }).await?;
    let mut entries = Vec::new();
    while let Some(line) = lines.next().await? {
        let entry: AuditEntry =
            serde_json::from_slice(&line).map_err(|error| PeerError::InvalidAnswer(error.to_string()))?;
        let number = entry.number;
        if number > last {
            break;
        }
        entries.push(Arc::new(entry));
        if number == last {
            break;
        }
    }
    Ok(entries)
}

/// The number before the last block of missing entries and the entry before them.
fn after_block(missing: &RangeInclusive<u64>) -> u64 {
    missing.end().saturating_sub(ENTRIES_PER_BLOCK - 1).max(*missing.start()).saturating_sub(2)
}

/// The entries whose content is proved by the hash of the last one, and the one before them. None if there are none.
fn provable(
    mut entries: Vec<Arc<AuditEntry>>,
    missing: &RangeInclusive<u64>,
) -> Option<(Chain, Vec<Arc<AuditEntry>>)> {
    entries.last().filter(|last| last.number == *missing.end())?;
    // The other server may lack some of them too.
    let after_gap =
        entries.windows(2).rposition(|pair| pair[0].number.checked_add(1) != Some(pair[1].number));
    if let Some(index) = after_gap {
        entries.drain(..=index);
    }
    if entries.first().is_some_and(|first| first.number == 1) {
        return Some((Chain::default(), entries));
    }
    let before = Chain::at(&entries.remove(0)).ok()?;
    (!entries.is_empty()).then_some((before, entries))
}

#[cfg(test)]
mod tests {
    use forewarn_control::NewAuditEntry;

    use super::*;

    fn entries(numbers: impl IntoIterator<Item = u64>) -> Vec<Arc<AuditEntry>> {
        let mut chain = Chain::default();
        let all: Vec<_> = (0..9).map(|_| Arc::new(chain.seal(NewAuditEntry::default()))).collect();
        numbers.into_iter().map(|number| Arc::clone(&all[usize::try_from(number).unwrap() - 1])).collect()
    }

    #[test]
    fn only_entries_that_lead_to_the_last_one_are_taken() {
        let taken = |found: Vec<u64>, missing| {
            let (before, entries) = provable(entries(found), &missing)?;
            Some((before.number, entries.iter().map(|entry| entry.number).collect::<Vec<_>>()))
        };
        assert_eq!(taken(vec![4, 5, 6], 5..=6), Some((4, vec![5, 6])));
        assert_eq!(taken(vec![1, 2, 3], 1..=3), Some((0, vec![1, 2, 3])));
        assert_eq!(taken(vec![1, 2, 5, 6, 7], 1..=7), Some((5, vec![6, 7])), "it has a gap of its own");
        assert_eq!(taken(vec![7], 5..=7), None, "nothing proves its content");
        assert_eq!(taken(vec![4, 5, 6], 5..=7), None, "the last one is missing");
        assert_eq!(taken(vec![], 1..=1), None);
    }
}
