//! The smallest application of the rules: one event, one write of a client, one action on a machine.

use std::time::Duration;

use forewarn_ownership::{BatchId, REFRESH_MILLIS, Uptime};
use forewarn_types::Steady;

/// One step of the model's time: the head's clock is due for a refresh after each.
pub(super) const TICK_MILLIS: u64 = REFRESH_MILLIS;
/// Notice of the event.
pub(super) const NOTICE_TICKS: u8 = 2;

pub(super) fn notice() -> Duration {
    Duration::from_millis(TICK_MILLIS * u64::from(NOTICE_TICKS))
}

/// The uptime of a host at a tick.
pub(super) fn uptime(booted_ticks_ago: u8, tick: u8) -> Uptime {
    Uptime::from_millis(TICK_MILLIS * (u64::from(booted_ticks_ago) + u64::from(tick)))
}

/// The contents of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Batch {
    pub(super) record: Record,
    /// The owner does not start the event before, and neither does the next one.
    pub(super) held_until: Steady,
}

/// A step of the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Record {
    Announced { not_before: Steady },
    Deferred { not_before: Steady },
    Written(ClientWrite),
    Started,
}

/// The write of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ClientWrite {
    /// The approval of the event.
    Approval,
    /// A write without consequences for the event.
    Note,
}

/// The state of the stream: the records of its log, applied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct EventState {
    pub(super) not_before: Option<Steady>,
    pub(super) written: Option<ClientWrite>,
    pub(super) started: bool,
    pub(super) held_until: Steady,
}

impl EventState {
    pub(super) fn replay(log: &[(BatchId, Batch)]) -> Self {
        let mut state = Self::default();
        log.iter().for_each(|(_, batch)| state.apply(*batch));
        state
    }

    pub(super) fn apply(&mut self, batch: Batch) {
        self.held_until = self.held_until.max(batch.held_until);
        match batch.record {
            Record::Announced { not_before } | Record::Deferred { not_before } => {
                self.not_before = Some(not_before);
            }
            Record::Written(write) => self.written = Some(write),
            Record::Started => self.started = true,
        }
    }

    /// True if the last batch announced the event, or moved its time: it is unknown if guests could read it.
    pub(super) fn is_perhaps_unread(log: &[(BatchId, Batch)]) -> bool {
        let last = log.last().map(|(_, batch)| batch.record);
        matches!(last, Some(Record::Announced { .. } | Record::Deferred { .. }))
    }

    pub(super) fn is_pending(&self) -> bool {
        self.not_before.is_some() && !self.started
    }

    /// True if the event may start.
    pub(super) fn is_due(&self, now: Steady) -> bool {
        let approved = self.written == Some(ClientWrite::Approval);
        self.is_pending() && (approved || self.not_before.is_some_and(|at| now >= at.max(self.held_until)))
    }
}
