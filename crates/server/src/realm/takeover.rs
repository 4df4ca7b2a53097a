//! The takeover of a cluster: its log first, then the batches that the copy lacks, then the driver.

use std::collections::BTreeMap;
use std::sync::Arc;

use forewarn_control::{ClusterId, Stream};
use forewarn_lifecycle::Steady;
use forewarn_ownership::{BootId, HeadClock, ServerName, Uptime, successor_clock};
use forewarn_realm::{
    MoveOutcome, NewStream, OwnedStream, OwnerRecord, ReadFrom, Realm, StreamPosition, TakeoverOutcome,
};
use tokio::sync::Mutex;

use super::content::send_content;
use super::join::FORMAT;
use crate::boot;
use crate::clock::Clock;
use crate::clusters::ClusterLink;
use crate::message::ClusterMessage;
use crate::realm_log::{NewOwnership, stream_time};

/// Milliseconds of the first and the longest pause after a takeover that has failed.
const PAUSE_MILLIS_MIN: u64 = 100;
const PAUSE_MILLIS_MAX: u64 = 1_000;

/// A cluster to take over.
pub(crate) struct Takeover {
    pub(crate) realm: Realm,
    pub(crate) own: ServerName,
    pub(crate) clock: Clock,
    pub(crate) cluster: ClusterId,
    pub(crate) link: ClusterLink,
    /// Another server has given the cluster to this one.
    pub(crate) is_given: bool,
}

/// Takeovers that have failed, with the times before which they are not tried again: some fail after a write.
#[derive(Debug, Default)]
pub(crate) struct TakeoverPauses(BTreeMap<ClusterId, (Uptime, u64)>);

impl TakeoverPauses {
    /// A takeover has failed.
    pub(super) fn put_off(&mut self, cluster: ClusterId, now: Uptime) {
        let (until, millis) = self.0.entry(cluster).or_insert((now, PAUSE_MILLIS_MIN));
        *until = now.plus(*millis);
        *millis = (*millis * 2).min(PAUSE_MILLIS_MAX);
    }

    /// The cluster has an owner.
    pub(super) fn end(&mut self, cluster: ClusterId) {
        self.0.remove(&cluster);
    }

    pub(super) fn is_over(&self, cluster: ClusterId, now: Uptime) -> bool {
        self.0.get(&cluster).is_none_or(|(until, _)| *until <= now)
    }
}

/// Takes a cluster over. Returns the term, or None if another server was first.
pub(crate) async fn take_over(takeover: Takeover) -> Result<Option<u64>, String> {
    let Takeover { realm, own, clock, cluster, link, is_given } = takeover;
    let (stream, text) = (Stream::Cluster(cluster), |error: &dyn std::fmt::Display| error.to_string());
    if is_given {
        let outcome = OwnedStream::accept(&realm, stream, &own).await.map_err(|error| text(&error))?;
        let TakeoverOutcome::Owned(owned) = outcome else { return Ok(None) };
        return begin_ownership(*owned, &link, &clock).await.map(Some);
    }
    let at = link.call(|reply| ClusterMessage::Position { reply }).await.map_err(|error| text(&error))?;
    let outcome = match realm.head(stream).await.map_err(|error| text(&error))? {
        None if at.number > 0 => return Err("the log of the cluster is gone".to_owned()),
        None => {
            let new = NewStream {
                state: None,
                position: StreamPosition::default(),
                time: stream_time(&clock),
                format: FORMAT,
            };
            OwnedStream::create(&realm, stream, &own, new).await
        }
        Some(known) => {
            if known.head.number < at.number {
                return Err("the log ends before the copy of this server".to_owned());
            }
            let steady = continued(&known.head.clock, &clock);
            let time = stream_time(&clock.continued_from(steady));
            OwnedStream::take_over(&realm, stream, &own, &known, time).await
        }
    };
    let TakeoverOutcome::Owned(owned) = outcome.map_err(|error| text(&error))? else { return Ok(None) };
    begin_ownership(*owned, &link, &clock).await.map(Some)
}

/// Gives a cluster to another server whose driver has failed here. It is taken over first: the driver had its log. This
/// server is no longer preferred.
pub(crate) async fn give_away(
    (realm, own, clock): (Realm, ServerName, Clock),
    cluster: ClusterId,
    to: ServerName,
) -> Result<Option<OwnerRecord>, String> {
    let (stream, text) = (Stream::Cluster(cluster), |error: &dyn std::fmt::Display| error.to_string());
    let Some(known) = realm.head(stream).await.map_err(|error| text(&error))? else { return Ok(None) };
    let time = stream_time(&clock.continued_from(continued(&known.head.clock, &clock)));
    let outcome = OwnedStream::take_over(&realm, stream, &own, &known, time).await;
    let TakeoverOutcome::Owned(mut owned) = outcome.map_err(|error| text(&error))? else { return Ok(None) };
    realm.set_preferred(stream, None).await.map_err(|error| text(&error))?;
    match owned.hand_over(&to, time).await.map_err(|error| text(&error))? {
        MoveOutcome::Moved { to, .. } => Ok(Some(to)),
        MoveOutcome::Fenced { .. } => Ok(None),
    }
}

/// Completes the copy of a cluster that this server owns, and lets its driver decide. Returns the term.
async fn begin_ownership(owned: OwnedStream, link: &ClusterLink, clock: &Clock) -> Result<u64, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let unavailable = |_| "the driver does not respond".to_owned();
    let at = link.call(|reply| ClusterMessage::Position { reply }).await.map_err(unavailable)?;
    let from = if at.number > 0 { ReadFrom::After(at) } else { ReadFrom::Beginning };
    let content = owned.read(from).await.map_err(|error| text(&error))?;
    send_content(link, content).await;
    let (head, term) = (owned.head().clone(), owned.head().term.0);
    let ownership = NewOwnership {
        log: Arc::new(Mutex::new(owned)),
        number: head.number,
        clock: continued(&head.clock, clock),
    };
    let owns = link.call(|reply| ClusterMessage::Own { ownership, reply }).await.map_err(unavailable)?;
    if owns { Ok(term) } else { Err("the copy of the log is not complete".to_owned()) }
}

/// The steady time at which this server continues the clock of a stream.
fn continued(head: &HeadClock, clock: &Clock) -> Steady {
    let uptime = u64::try_from(clock.uptime().as_millis()).unwrap_or(u64::MAX);
    successor_clock(head, boot::id().map(BootId), Uptime::from_millis(uptime))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_between_takeovers_of_a_cluster_grow() {
        let (mut pauses, at) = (TakeoverPauses::default(), Uptime::from_millis);
        let (one, other) = (ClusterId(1), ClusterId(2));
        let mut now = 0;
        for pause in [100, 200, 400, 800, 1_000, 1_000] {
            assert!(pauses.is_over(one, at(now)));
            pauses.put_off(one, at(now));
            assert!(!pauses.is_over(one, at(now + pause - 1)) && pauses.is_over(other, at(now)));
            now += pause;
        }
        pauses.end(one);
        pauses.put_off(one, at(now));
        assert!(pauses.is_over(one, at(now + PAUSE_MILLIS_MIN)));
    }
}
