//! The times of polls: the pace, the pause after failures and the next poll that is due.

use std::time::Duration;

use tokio::time::Instant;

use crate::backoff::Backoff;

/// The interval of polls without long polling.
const PACE: Duration = Duration::from_secs(1);

/// The schedule of polls.
#[derive(Debug)]
pub(crate) struct PollSchedule {
    pub(crate) pace: Duration,
    pub(crate) long_poll: bool,
    pub(crate) backoff: Backoff,
    pub(crate) due: Option<Instant>,
}

impl PollSchedule {
    pub(crate) fn new(backoff: Backoff) -> Self {
        Self { pace: PACE, long_poll: true, backoff, due: None }
    }
}
