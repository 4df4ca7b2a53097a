//! Clusters whose last announcements are not settled when a server of a realm starts: their owner may still move the
//! times.
//!
//! A commit that was so slow that too little notice is left is followed by another one that moves the time, before any
//! VM can read the event. A server that starts finds the first one in the log, and cannot know what follows. So it opens
//! its listeners for VMs only when each cluster is settled:
//!
//! ```text
//!   log ends with an announcement ──▶ its owner says that it shows that batch ─┐
//!                                 ──▶ the next batch follows ──────────────────┼──▶ settled
//!                                 ──▶ this server becomes the owner ───────────┘
//! ```
//!
//! A new owner settles them because nobody else can move a time any more. It is unknown if another server has shown the
//! events: the times stay, and their starts wait for a whole notice.
//!
//! A VM that finds no listener asks again, or asks another server. A listener with an older document would let
//! incarnations go back; one with the newest would let a time change that a VM has read. But a server must not be without
//! documents for long: if all servers start at once, one of them becomes the owner within some seconds; if none does,
//! because the engine has failed since, or the owner cannot be heard, the wait ends. An owner that keeps saying that it
//! does not show the batch is about to move it, and is waited for a little longer.

use std::collections::BTreeMap;
use std::time::Duration;

use forewarn_control::ClusterId;
use tokio::sync::watch;
use tokio::time::Instant;

/// Longest wait without a word of the owner. A lost owner has another one by then: its key ends after five seconds.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// Longest wait for an owner that says that it does not show its last batch.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// Clusters that are not settled, each with the moment at which its owner last said so, or of the start.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnsettledClusters(watch::Sender<BTreeMap<ClusterId, Instant>>);

impl UnsettledClusters {
    /// The owner of a cluster may not have shown its last announcements, or says so.
    pub(crate) fn add(&self, cluster: ClusterId) {
        let now = Instant::now();
        self.0.send_modify(|clusters| _ = clusters.insert(cluster, now));
    }

    /// The times of a cluster are final.
    pub(crate) fn settle(&self, cluster: ClusterId) {
        self.0.send_if_modified(|clusters| clusters.remove(&cluster).is_some());
    }

    /// Clusters that are not settled.
    pub(crate) fn clusters(&self) -> Vec<ClusterId> {
        self.0.borrow().keys().copied().collect()
    }

    /// Waits until every cluster is settled, or for too long. Returns those that are not.
    pub(crate) async fn settled(&self) -> Vec<ClusterId> {
        let (mut clusters, end) = (self.0.subscribe(), Instant::now() + WAIT_MAX);
        loop {
            let last_word = clusters.borrow_and_update().values().max().copied();
            let Some(last_word) = last_word else { return Vec::new() };
            let until = end.min(last_word + SILENCE_MAX);
            if tokio::time::timeout_at(until, clusters.changed()).await.is_err() {
                return self.clusters();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: ClusterId = ClusterId(0);
    const SECOND: ClusterId = ClusterId(1);

    async fn pass(span: Duration) {
        tokio::time::sleep(span).await;
    }

    /// promise: N5
    #[tokio::test(start_paused = true)]
    async fn a_server_waits_until_every_cluster_is_settled() {
        let (clusters, begin) = (UnsettledClusters::default(), Instant::now());
        assert_eq!((clusters.settled().await, begin.elapsed()), (vec![], Duration::ZERO));
        clusters.add(FIRST);
        clusters.add(SECOND);
        let settling = clusters.clone();
        tokio::spawn(async move {
            pass(Duration::from_secs(2)).await;
            settling.settle(FIRST);
            pass(Duration::from_secs(2)).await;
            settling.settle(SECOND);
        });
        assert_eq!((clusters.settled().await, begin.elapsed()), (vec![], Duration::from_secs(4)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_waits_for_a_silent_owner_for_a_while_and_a_little_longer_for_one_that_is_stuck() {
        let (clusters, begin) = (UnsettledClusters::default(), Instant::now());
        clusters.add(FIRST);
        assert_eq!((clusters.settled().await, begin.elapsed()), (vec![FIRST], SILENCE_MAX));
        let (speaking, begin) = (clusters.clone(), Instant::now());
        clusters.add(FIRST);
        let owner = tokio::spawn(async move {
            loop {
                pass(Duration::from_millis(250)).await;
                speaking.add(FIRST);
            }
        });
        assert_eq!((clusters.settled().await, begin.elapsed()), (vec![FIRST], WAIT_MAX));
        owner.abort();
    }
}
