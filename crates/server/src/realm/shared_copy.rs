//! Completes the copy of the shared stream. Its driver may have ignored batches while the journal of this server had
//! failed; nothing else would send them again.

use forewarn_control::Stream;
use forewarn_ownership::Uptime;
use forewarn_realm::{ReadFrom, Realm, RealmError};
use tokio::sync::{mpsc, oneshot};

use crate::message::SharedMessage;

/// Milliseconds after which a copy that lacks batches is completed.
const LAG_MILLIS_MAX: u64 = 1_000;

/// The copy of the shared stream, compared with its head.
#[derive(Debug, Default)]
pub(crate) struct SharedCopy {
    /// Number of the last batch in the log.
    head: u64,
    /// The number at which the copy stands while it lacks batches, and since when.
    lag: Option<(u64, Uptime)>,
}

impl SharedCopy {
    /// The log has batches up to a number.
    pub(crate) fn follow_head(&mut self, number: u64) {
        self.head = self.head.max(number);
    }

    /// Returns true if the copy has stood at a number for a while although the log has more.
    pub(crate) fn is_stuck(&mut self, at: u64, now: Uptime) -> bool {
        if at >= self.head {
            self.lag = None;
            return false;
        }
        match self.lag {
            Some((stands_at, since)) if stands_at == at => {
                let is_stuck = now.since(since) >= LAG_MILLIS_MAX;
                if is_stuck {
                    self.lag = Some((at, now));
                }
                is_stuck
            }
            Some(_) | None => {
                self.lag = Some((at, now));
                false
            }
        }
    }
}

/// Gives the driver of the shared stream the batches that it lacks. A failure is tried again with the next check.
pub(crate) async fn send_missing_shared(realm: Realm, driver: mpsc::Sender<SharedMessage>) {
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
    for batch in realm.read_stream(Stream::Shared, from).await?.batches {
        drop(driver.send(SharedMessage::Logged(Box::new(batch))).await);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_stuck_once_it_has_lacked_batches_for_a_while() {
        let mut copy = SharedCopy::default();
        let at = Uptime::from_millis;
        copy.follow_head(5);
        assert!(!copy.is_stuck(5, at(0)));
        assert!(!copy.is_stuck(3, at(0)) && !copy.is_stuck(3, at(LAG_MILLIS_MAX - 1)));
        assert!(copy.is_stuck(3, at(LAG_MILLIS_MAX)));
        assert!(!copy.is_stuck(3, at(LAG_MILLIS_MAX + 1)), "it was completed just now");
        assert!(!copy.is_stuck(4, at(3 * LAG_MILLIS_MAX)), "it goes on");
        assert!(!copy.is_stuck(5, at(9 * LAG_MILLIS_MAX)));
    }
}
