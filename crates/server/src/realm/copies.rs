//! Completes the copies of streams. Their drivers may have ignored batches, because the journal of this server had
//! failed, or before they knew their part; nothing else would send them again.

use std::collections::BTreeMap;

use forewarn_control::{ClusterId, Stream};
use forewarn_ownership::Uptime;
use forewarn_realm::{ReadFrom, Realm, RealmError};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::content::send_missing;
use crate::clusters::ClusterLink;
use crate::message::SharedMessage;

/// Milliseconds after which a copy that lacks batches is completed.
const LAG_MILLIS_MAX: u64 = 1_000;

/// The copies of this server, compared with the heads of the log.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    /// Numbers of the last batches in the log.
    heads: BTreeMap<Stream, u64>,
    /// Copies that lack batches: the number at which each stands, and since when.
    lags: BTreeMap<Stream, (u64, Uptime)>,
    /// The last completion of each copy.
    completions: BTreeMap<Stream, JoinHandle<()>>,
}

impl Copies {
    /// The log has batches up to a number.
    pub(crate) fn follow_head(&mut self, stream: Stream, number: u64) {
        let head = self.heads.entry(stream).or_default();
        *head = number.max(*head);
    }

    /// Copies that have stood at a number for a while although the log has more. `at` returns the number of a copy that
    /// follows the log.
    pub(crate) fn stuck(&mut self, now: Uptime, at: impl Fn(Stream) -> Option<u64>) -> Vec<Stream> {
        let mut stuck = Vec::new();
        for (stream, head) in &self.heads {
            let Some(at) = at(*stream).filter(|at| at < head) else {
                self.lags.remove(stream);
                continue;
            };
            let lag = self.lags.entry(*stream).or_insert((at, now));
            let stands = lag.0 == at;
            if stands && now.since(lag.1) < LAG_MILLIS_MAX {
                continue;
            }
            *lag = (at, now);
            if stands {
                stuck.push(*stream);
            }
        }
        stuck
    }

    /// A stream was removed.
    pub(crate) fn forget(&mut self, stream: Stream) {
        self.heads.remove(&stream);
        self.lags.remove(&stream);
        self.completions.remove(&stream);
    }

    /// Completes a copy in the background, unless that is under way.
    pub(crate) fn complete(&mut self, stream: Stream, completion: impl Future<Output = ()> + Send + 'static) {
        if self.completions.get(&stream).is_none_or(JoinHandle::is_finished) {
            self.completions.insert(stream, tokio::spawn(completion));
        }
    }
}

/// Gives the driver of a cluster the batches that it lacks. A failure is tried again with the next check.
pub(crate) async fn complete_cluster(realm: Realm, cluster: ClusterId, link: ClusterLink) {
    if let Err(error) = send_missing(&realm, cluster, &link).await {
        tracing::warn!(%error, "cannot follow the log; trying again");
    }
}

/// The same for the driver of the shared stream.
pub(crate) async fn complete_shared(realm: Realm, driver: mpsc::Sender<SharedMessage>) {
    let (reply, position) = oneshot::channel();
    // The driver ends with the process only.
    drop(driver.send(SharedMessage::Position { reply }).await);
    let Ok(at) = position.await else { return };
    let from = if at.number > 0 { ReadFrom::After(at) } else { ReadFrom::Beginning };
    if let Err(error) = send_from(&realm, &driver, from).await {
        tracing::warn!(%error, "cannot read the shared stream; trying again");
    }
}

async fn send_from(
    realm: &Realm,
    driver: &mpsc::Sender<SharedMessage>,
    from: ReadFrom,
) -> Result<(), RealmError> {
    let content = realm.read_stream(Stream::Shared, from).await?;
    drop(driver.send(SharedMessage::Read(Box::new(content))).await);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_stuck_once_it_has_lacked_batches_for_a_while() {
        let mut copies = Copies::default();
        let cluster = Stream::Cluster(ClusterId::DEFAULT);
        copies.follow_head(Stream::Shared, 5);
        copies.follow_head(cluster, 5);
        // The other one is complete.
        let mut is_stuck = |number, millis| {
            let at = |stream| Some(if stream == cluster { number } else { 5 });
            let stuck = copies.stuck(Uptime::from_millis(millis), at);
            assert!(stuck.iter().all(|stream| *stream == cluster));
            !stuck.is_empty()
        };
        assert!(!is_stuck(5, 0));
        assert!(!is_stuck(3, 0) && !is_stuck(3, LAG_MILLIS_MAX - 1));
        assert!(is_stuck(3, LAG_MILLIS_MAX));
        assert!(!is_stuck(3, LAG_MILLIS_MAX + 1), "it was completed just now");
        assert!(!is_stuck(4, 3 * LAG_MILLIS_MAX), "it goes on");
        assert!(!is_stuck(5, 9 * LAG_MILLIS_MAX));
        assert_eq!(copies.stuck(Uptime::from_millis(10 * LAG_MILLIS_MAX), |_| None), [], "nothing follows");
    }

    #[tokio::test]
    async fn a_copy_is_completed_once_at_a_time() {
        let mut copies = Copies::default();
        let (end, ended) = oneshot::channel::<()>();
        copies.complete(Stream::Shared, async { drop(ended.await) });
        copies.complete(Stream::Shared, async { panic!("the first one is under way") });
        let (cluster, (done, is_done)) = (Stream::Cluster(ClusterId::DEFAULT), oneshot::channel());
        copies.complete(cluster, async { done.send(()).unwrap() });
        is_done.await.expect("another copy does not wait");
        end.send(()).unwrap();
        while !copies.completions[&Stream::Shared].is_finished() {
            tokio::task::yield_now().await;
        }
        let (done, is_done) = oneshot::channel();
        copies.complete(Stream::Shared, async { done.send(()).unwrap() });
        is_done.await.expect("it is completed again");
    }
}
