//! The driver of a cluster and the clock: the time until something is due, and records of the clock.

use std::time::Duration;

use forewarn_control::{Record, Stream};
use forewarn_lifecycle::{Now, simulator};

use super::{Driver, Role};
use crate::clock::ClockKind;
use crate::clock_policy;
use crate::initial_state::Readers;
use crate::realm_log::CommitError;
use crate::role::RealmScope;

/// Interval between checks of driver programs while the server stops.
const STOPPING_POLL: Duration = Duration::from_millis(50);

/// Maximum sleep while something is due later: no timer is trusted for longer.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// Maximum sleep of a cluster in which time alone changes nothing.
const IDLE_SLEEP_MAX: Duration = Duration::from_mins(1);

impl Driver {
    /// Real time until there is something to do.
    pub(super) fn until_next(&self) -> Duration {
        if self.stopping.is_some() {
            return STOPPING_POLL;
        }
        if self.journal.is_broken()
            || self.readers == Readers::Absent
            || self.journal.role() == Role::Follower
        {
            return IDLE_SLEEP_MAX;
        }
        let clock = &self.context.clock;
        match simulator::wait(self.state.rules(), clock.now(), &self.runtime) {
            Some(span) => clock.real_time_for(span).unwrap_or(SLEEP_MAX).min(SLEEP_MAX),
            None if clock_policy::is_busy(&self.state) => SLEEP_MAX,
            None => IDLE_SLEEP_MAX,
        }
    }

    /// Records the steady clock where it would otherwise stand still over a restart. In a realm, the head has it: another
    /// server continues from there.
    pub(super) async fn record_time_if_due(&mut self) {
        let clock = &self.context.clock;
        if self.journal.role() == Role::Owner
            && self.journal.is_durable()
            && !self.journal.is_broken()
            && clock.kind() != ClockKind::Virtual
        {
            let now = clock_policy::to_record_in_cluster(
                clock,
                self.recorded_clock,
                self.runtime.scope,
                &self.state,
            );
            match (now, self.runtime.scope) {
                (None, _) => {}
                (Some(now), RealmScope::Alone) => self.record_clock(now),
                (Some(now), RealmScope::Realm) => self.refresh_head(now).await,
            }
        }
    }

    async fn refresh_head(&mut self, now: Now) {
        self.recorded_clock = now;
        match self.journal.refresh_clock(&self.context.clock).await {
            Ok(()) => {}
            Err(CommitError::Fenced(_)) => self.end_ownership(),
            Err(error @ (CommitError::Journal(_) | CommitError::Behind | CommitError::NotCommitted(_))) => {
                tracing::warn!(cluster = self.id.0, %error, "cannot record the clock");
            }
        }
    }

    fn record_clock(&mut self, now: Now) {
        self.recorded_clock = now;
        self.record(Record::clock_in(now, Stream::Cluster(self.id)));
    }
}
