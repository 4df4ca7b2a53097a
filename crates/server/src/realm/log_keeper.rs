//! The task that keeps the logs of a realm short: it stores states beside the commits, deletes batches that the stored
//! state covers and enough archives have, removes what is left of removed clusters, and the history of the engine.
//!
//! The owner of a cluster does so for its log; the first live server by name for the shared stream and the engine. If two
//! of them try, the second one finds another head.

use std::collections::BTreeMap;
use std::time::Duration;

use forewarn_control::{ClusterId, Stream};
use forewarn_ownership::ServerName;
use forewarn_realm::{Realm, RealmError, Revision, SnapshotWriting, TrimProgress};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::view::{SharedView, uptime};
use crate::clock::Clock;
use crate::clusters::ClusterRegistry;
use crate::driver::DriverContext;
use crate::log_length::{LogLimits, WrittenLog};
use crate::long_work::run_long_work;
use crate::message::{ClusterMessage, SharedMessage};
use crate::realm_log::{StreamLog, stream_time};

/// Interval of looks at the logs.
const TICK: Duration = Duration::from_secs(1);

/// Deletions of one look at a log: commits go on in between.
const TRIMS_PER_TICK: usize = 20;

/// Interval between two removals of the history of the engine, and the age of the history that is kept.
const COMPACTION_INTERVAL: Duration = Duration::from_secs(5 * 60);

/// Interval of looks for removed clusters.
const REMOVAL_INTERVAL: Duration = Duration::from_secs(10);

/// Keeps the logs short.
pub(crate) struct LogKeeper {
    pub(crate) realm: Realm,
    pub(crate) own: ServerName,
    pub(crate) view: SharedView,
    pub(crate) context: DriverContext,
    pub(crate) clusters: ClusterRegistry,
    pub(crate) limits: LogLimits,
    pub(crate) compacts: bool,
}

/// Work that was done before.
#[derive(Default)]
struct KeepingProgress {
    /// Numbers up to which logs were trimmed.
    trimmed: BTreeMap<Stream, u64>,
    /// A revision of the engine, and when it was read.
    revision: Option<(Revision, Instant)>,
    /// Time of the last look for removed clusters.
    removal: Option<Instant>,
}

impl LogKeeper {
    /// Runs until the server stops.
    pub(crate) async fn run(self, mut stop: watch::Receiver<bool>) {
        let mut progress = KeepingProgress::default();
        loop {
            let stopped = stop.wait_for(|stop| *stop);
            if tokio::time::timeout(TICK, stopped).await.is_ok() {
                return;
            }
            // It is not interrupted: a log whose commit was given up cannot be written any more.
            self.look(&mut progress).await;
        }
    }

    async fn look(&self, progress: &mut KeepingProgress) {
        // The engine has another history: nothing of it is changed.
        if self.view.lock().restored.is_some() {
            return;
        }
        let (owned, shared): (Vec<_>, _) =
            (self.view.lock().driven.keys().copied().collect(), self.context.broadcasts.shared());
        progress.trimmed.retain(|stream, _| match stream {
            Stream::Shared => true,
            Stream::Cluster(id) => shared.cluster_name(*id).is_some(),
        });
        for id in owned {
            self.tend_cluster(id, progress).await;
        }
        let is_first = self.view.lock().servers.keys().next() == Some(&self.own);
        if !is_first {
            *progress = KeepingProgress {
                trimmed: std::mem::take(&mut progress.trimmed),
                ..KeepingProgress::default()
            };
            return;
        }
        if let Err(error) = self.tend_realm(progress).await {
            tracing::debug!(%error, "cannot shorten the log of the shared stream");
        }
    }

    async fn tend_cluster(&self, id: ClusterId, progress: &mut KeepingProgress) {
        let Some(link) = self.clusters.get(id) else { return };
        let limits = self.limits;
        let asked = link.call(|reply| ClusterMessage::WrittenLog { limits, reply }).await;
        if let Ok(Some(written)) = asked {
            self.tend(Stream::Cluster(id), written, progress).await;
        }
    }

    /// The shared stream, and everything that belongs to no stream.
    async fn tend_realm(&self, progress: &mut KeepingProgress) -> Result<(), RealmError> {
        let Some(head) = self.realm.head(Stream::Shared).await? else { return Ok(()) };
        if let Some(shared) = self.context.shared.upgrade() {
            let (reply, written) = oneshot::channel();
            let message = SharedMessage::WrittenLog { head, limits: self.limits, reply };
            // The driver ends with the process only.
            drop(shared.send(message).await);
            if let Ok(Some(written)) = written.await {
                self.tend(Stream::Shared, written, progress).await;
            }
        }
        if progress.removal.is_none_or(|at| at.elapsed() >= REMOVAL_INTERVAL) {
            self.remove_streams().await?;
            progress.removal = Some(Instant::now());
        }
        match progress.revision {
            Some((_, at)) if at.elapsed() < COMPACTION_INTERVAL => {}
            Some((revision, _)) if self.compacts => {
                self.realm.compact(revision).await?;
                tracing::debug!(revision = revision.0, "history of the engine removed");
                progress.revision = Some((self.realm.heads().await?.revision, Instant::now()));
            }
            _ => progress.revision = Some((self.realm.heads().await?.revision, Instant::now())),
        }
        Ok(())
    }

    /// Stores the state of a long log, and deletes batches that are no longer needed.
    async fn tend(&self, stream: Stream, written: WrittenLog, progress: &mut KeepingProgress) {
        let WrittenLog { log, clock, writing } = written;
        if let Some(writing) = writing {
            self.store(stream, (&log, &clock), writing).await;
        }
        let base = log.head().await.and_then(|head| head.details.snapshot).map_or(0, |stored| stored.id.base);
        let upto = base.min(self.view.lock().archives.held(stream, uptime()));
        if upto == 0 || progress.trimmed.get(&stream) == Some(&upto) {
            return;
        }
        for _ in 0..TRIMS_PER_TICK {
            match log.trim(upto).await {
                Ok(TrimProgress::Goes) => {}
                Ok(TrimProgress::Done) => {
                    tracing::debug!(%stream, upto, "log shortened");
                    progress.trimmed.insert(stream, upto);
                    return;
                }
                Ok(TrimProgress::Outdated) => return,
                Err(error) => return tracing::debug!(%stream, %error, "cannot shorten a log"),
            }
        }
    }

    /// Writes the parts of a state on a thread with a low priority, and makes it the stored one.
    async fn store(&self, stream: Stream, (log, clock): (&StreamLog, &Clock), writing: SnapshotWriting) {
        let (realm, runtime) = (self.realm.clone(), tokio::runtime::Handle::current());
        let written = run_long_work(move || runtime.block_on(writing.finish(&realm))).await;
        let snapshot = match written {
            Ok(snapshot) => snapshot,
            Err(error) => {
                return tracing::warn!(%stream, %error, "cannot store the state of a log; trying again");
            }
        };
        match log.publish_snapshot(snapshot, stream_time(clock)).await {
            Ok(true) => tracing::debug!(%stream, number = snapshot.id.base, "state of the log stored"),
            Ok(false) => {}
            Err(error) => tracing::warn!(%stream, %error, "cannot store the state of a log; trying again"),
        }
    }

    /// Removes the streams of clusters that the shared state no longer has. Their numbers are not used again.
    async fn remove_streams(&self) -> Result<(), RealmError> {
        let heads = self.realm.heads().await?;
        let shared = self.context.broadcasts.shared();
        let is_current =
            heads.heads.get(&Stream::Shared).is_some_and(|known| known.head.number == shared.log_number());
        if !is_current {
            return Ok(());
        }
        for (stream, known) in &heads.heads {
            let Stream::Cluster(id) = stream else { continue };
            if shared.cluster_name(*id).is_none() && self.realm.remove_stream(*stream, known).await? {
                tracing::info!(cluster = id.0, "log of a removed cluster deleted");
            }
        }
        Ok(())
    }
}
