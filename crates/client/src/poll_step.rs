//! Pacing of polls: as soon as a poll is due, and never faster than the endpoint allows.
//!
//! ```text
//!   changed       poll again: at once if the endpoint supports long polls (at most five times a second), else after the pace
//!   unchanged     the same; an endpoint that answers a long poll at once is polled once per pace
//!   failure       after a growing, randomised pause that respects Retry-After; if an older edition may
//!                 work, it is tried first without a pause
//! ```
//!
//! A client never gives up.

use std::time::Duration;

use forewarn_types::Timestamp;
use tokio::time::{Instant, sleep_until};

use crate::client::{Client, Observation, PollResponse};
use crate::error::Error;

/// Length of a long poll.
const WAIT: Duration = Duration::from_secs(30);

/// The minimum time between two requests. The rate limit of a machine is shared by all its programs.
const DISTANCE_MIN: Duration = Duration::from_millis(200);

/// The result of one poll.
#[derive(Debug)]
pub enum PollStep {
    /// A new document.
    Changed(Observation),
    /// No change; the endpoint is healthy.
    Unchanged {
        /// Time of the service's clock.
        date: Timestamp,
    },
    /// The poll failed. The next one waits for `pause` first.
    Failed {
        /// The error.
        error: Error,
        /// Time until the next attempt.
        pause: Duration,
    },
}

impl Client {
    /// Sets the interval of polls for an endpoint without long polls. The default is one second, the minimum 200 ms.
    #[must_use]
    pub fn with_pace(mut self, pace: Duration) -> Self {
        self.schedule.pace = pace.max(DISTANCE_MIN);
        self
    }

    /// Enables or disables long polls. They are enabled by default.
    #[must_use]
    pub fn with_long_poll(mut self, long_poll: bool) -> Self {
        self.schedule.long_poll = long_poll;
        self
    }

    /// Number of failed polls since the last success.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.schedule.backoff.failures()
    }

    /// Waits until a poll is due, and polls once.
    ///
    /// Cancel safe: a request in flight is aborted with its connection, and the next call polls again when it is due. A
    /// caller that always cancels before a response arrives never gets one: keep the future while doing other work.
    pub async fn poll_step(&mut self) -> PollStep {
        if let Some(due) = self.schedule.due {
            sleep_until(due).await;
        }
        let begun = Instant::now();
        let edition = self.edition();
        let is_long_poll = self.schedule.long_poll && self.can_wait() && self.has_tag();
        // A caller that cancels and polls again still keeps the minimum distance.
        let distance = if is_long_poll { DISTANCE_MIN } else { self.schedule.pace };
        self.schedule.due = Some(begun + distance);
        match self.request_document(is_long_poll.then_some(WAIT)).await {
            Ok(news) => {
                self.schedule.backoff.reset();
                self.on_response(news, begun)
            }
            Err(error) => {
                // An older edition is a different request. There are few editions, so no pause is needed.
                let is_another = self.edition() < edition;
                let pause =
                    if is_another { DISTANCE_MIN } else { self.schedule.backoff.pause(error.retry_after()) };
                self.schedule.due = Some(Instant::now() + pause);
                tracing::debug!(%error, ?pause, "poll failed");
                PollStep::Failed { error, pause }
            }
        }
    }

    fn on_response(&mut self, news: PollResponse, begun: Instant) -> PollStep {
        match news {
            PollResponse::Document(observation) => {
                // With long polls the next request can be sent at once.
                let distance = if self.schedule.long_poll && self.can_wait() {
                    DISTANCE_MIN
                } else {
                    self.schedule.pace
                };
                self.schedule.due = Some(begun + distance);
                PollStep::Changed(observation)
            }
            PollResponse::Unchanged { date } | PollResponse::Empty { date } => {
                self.schedule.due = Some(begun + self.schedule.pace);
                PollStep::Unchanged { date }
            }
        }
    }

    /// Waits for the next document that differs from the last one, and retries all failures.
    ///
    /// Callers that need to know about failures use [`Client::poll_step`].
    pub async fn next(&mut self) -> Observation {
        loop {
            if let PollStep::Changed(observation) = self.poll_step().await {
                return observation;
            }
        }
    }
}
