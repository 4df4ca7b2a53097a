//! Everything of the log that the copy of this server lacks: batches, or a stored state with the batches after it.

use std::time::Duration;

use forewarn_control::{ClusterId, Stream};
use forewarn_realm::{
    Follower, ReadFrom, Realm, RealmChange, RealmError, StreamContent, StreamStart, position_of,
};
use forewarn_store::StreamState;
use tokio::sync::mpsc;

use crate::clusters::ClusterLink;
use crate::message::{ClusterMessage, LoggedState};

/// Pause after the log could not be followed.
const FOLLOWER_PAUSE: Duration = Duration::from_millis(100);

/// A change of the realm, as the task of the realm gets it.
pub(crate) enum FollowedChange {
    Changed(RealmChange),
    /// The log no longer has the batches that are missing here: everything that it has instead.
    Read(Box<StreamContent>),
}

/// Passes changes of the realm on. An engine that does not answer is tried again.
pub(crate) async fn follow(realm: Realm, mut follower: Follower, changes: mpsc::Sender<FollowedChange>) {
    loop {
        let found = match follower.next().await {
            Ok(RealmChange::Behind { stream, head }) => {
                tracing::info!(%stream, number = head.head.number, "reading the stored state of the log");
                let read = realm.read_stream(stream, ReadFrom::Beginning).await;
                read.map(|content| Some(FollowedChange::Read(Box::new(content)))).or_else(|error| match error
                {
                    // Its removal comes next.
                    RealmError::NoStream(_) => Ok(None),
                    error @ (RealmError::Unavailable(_)
                    | RealmError::Refused(_)
                    | RealmError::Damaged { .. }
                    | RealmError::Missing { .. }
                    | RealmError::Deposed(_)
                    | RealmError::Older { .. }
                    | RealmError::Undecided(_)
                    | RealmError::Protocol
                    | RealmError::Limit(_)
                    | RealmError::Random(_)) => {
                        // It is reported again.
                        follower.resume(stream, forewarn_realm::StreamPosition::default());
                        Err(error)
                    }
                })
            }
            change => change.map(|change| Some(FollowedChange::Changed(change))),
        };
        match found {
            Ok(Some(change)) => {
                if let FollowedChange::Read(content) = &change {
                    follower.resume(content.stream, position_of(&content.head.head));
                }
                if changes.send(change).await.is_err() {
                    return;
                }
            }
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot follow the log; trying again");
                tokio::time::sleep(FOLLOWER_PAUSE).await;
            }
        }
    }
}

/// Gives a driver everything that it lacks.
pub(crate) async fn send_missing(
    realm: &Realm,
    cluster: ClusterId,
    link: &ClusterLink,
) -> Result<(), RealmError> {
    // A driver that has ended lacks nothing.
    let Ok(at) = link.call(|reply| ClusterMessage::Position { reply }).await else { return Ok(()) };
    let from = if at.number > 0 { ReadFrom::After(at) } else { ReadFrom::Beginning };
    send_content(link, realm.read_stream(Stream::Cluster(cluster), from).await?).await;
    Ok(())
}

/// Gives the content of a stream to its driver, which ignores everything that it has already.
pub(crate) async fn send_content(link: &ClusterLink, content: StreamContent) {
    let clock = content.clock();
    if let StreamStart::State(StreamState::Cluster(state), position) = content.start {
        let state = LoggedState { state, position, clock };
        // A cluster that has failed has no driver.
        drop(link.messages.send(ClusterMessage::Install(Box::new(state))).await);
    }
    for batch in content.batches {
        drop(link.messages.send(ClusterMessage::Logged(Box::new(batch))).await);
    }
}
