//! When to ask: as soon as it is due, and never more often than is good for the endpoint.
//!
//! ```text
//!   news          ask again: at once where the endpoint can wait (but five times a second at most), after the pace elsewhere
//!   nothing new   the same; an endpoint that does not wait although it could is asked once per pace
//!   failure       after a pause that grows, is never the same on two machines, and heeds Retry-After; where an older edition may
//!                 do, that is tried first, without such a pause
//! ```
//!
//! Deliberately absent: giving up.

use std::time::Duration;

use forewarn_types::Timestamp;
use tokio::time::{Instant, sleep_until};

use crate::client::{Client, News, Sighting};
use crate::error::Error;

/// How long an endpoint may wait that can.
const WAIT: Duration = Duration::from_secs(30);

/// The rate at which a machine may ask, shared with everything else on it.
const APART_MIN: Duration = Duration::from_millis(200);

/// One step of watching.
#[derive(Debug)]
pub enum Turn {
    /// Another document than before.
    News(Sighting),
    /// Nothing new; the endpoint is well.
    Quiet {
        /// What the service's clock showed.
        date: Timestamp,
    },
    /// It went wrong. The next turn waits so long before it asks.
    Failed {
        /// What went wrong.
        error: Error,
        /// Until it is tried again.
        pause: Duration,
    },
}

impl Client {
    /// How often an endpoint is asked that cannot wait: every second, unless it is said otherwise, and not more than five times a
    /// second.
    #[must_use]
    pub fn with_pace(mut self, pace: Duration) -> Self {
        self.schedule.pace = pace.max(APART_MIN);
        self
    }

    /// Whether an endpoint that can wait for news is let wait. It is, unless it is said otherwise.
    #[must_use]
    pub fn with_long_poll(mut self, long_poll: bool) -> Self {
        self.schedule.long_poll = long_poll;
        self
    }

    /// How often asking has failed since it last went well.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.schedule.backoff.failures()
    }

    /// Waits until it is time to ask, and asks once.
    ///
    /// It may be dropped at any moment: a question that is under way is given up with its connection, and the next turn asks
    /// again, but not before it is due. Whoever drops it more often than it asks never hears anything: keep it while doing other
    /// things.
    pub async fn turn(&mut self) -> Turn {
        if let Some(due) = self.schedule.due {
            sleep_until(due).await;
        }
        let begun = Instant::now();
        let edition = self.edition();
        let waits = self.schedule.long_poll && self.can_wait() && self.has_tag();
        // Whoever drops this turn and takes another does not hammer either.
        let apart = if waits { APART_MIN } else { self.schedule.pace };
        self.schedule.due = Some(begun + apart);
        match self.ask(waits.then_some(WAIT)).await {
            Ok(news) => {
                self.schedule.backoff.reset();
                self.heard(news, begun)
            }
            Err(error) => {
                // An older edition is another question. There are few of them: none needs to be waited for.
                let is_another = self.edition() < edition;
                let pause =
                    if is_another { APART_MIN } else { self.schedule.backoff.pause(error.retry_after()) };
                self.schedule.due = Some(Instant::now() + pause);
                tracing::debug!(%error, ?pause, "no answer");
                Turn::Failed { error, pause }
            }
        }
    }

    fn heard(&mut self, news: News, begun: Instant) -> Turn {
        match news {
            News::Document(sighting) => {
                // Where it can wait, it is let wait at once.
                let apart =
                    if self.schedule.long_poll && self.can_wait() { APART_MIN } else { self.schedule.pace };
                self.schedule.due = Some(begun + apart);
                Turn::News(sighting)
            }
            News::Unchanged { date } | News::NoNews { date } => {
                self.schedule.due = Some(begun + self.schedule.pace);
                Turn::Quiet { date }
            }
        }
    }

    /// Waits for the next document that differs from the last, however long that takes and whatever goes wrong meanwhile.
    ///
    /// Whoever wants to know what goes wrong takes [`Client::turn`]s.
    pub async fn next(&mut self) -> Sighting {
        loop {
            if let Turn::News(sighting) = self.turn().await {
                return sighting;
            }
        }
    }
}
