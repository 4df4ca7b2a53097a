//! Metrics of work that waits: unapproved events, steps on hosts, actions without a result.

use std::sync::atomic::Ordering;
use std::time::Duration;

use forewarn_lifecycle::Now;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::control_handle::ControlHandle;
use crate::snapshot::State;
use crate::work_times::WaitingActions;

/// Gauges of waiting work, and the counter of failed actions.
#[derive(Clone, Debug, Default)]
pub(super) struct WorkMetrics {
    unapproved: Gauge,
    unapproved_age: Gauge,
    host_steps: Gauge,
    host_steps_age: Gauge,
    unknown: Gauge,
    unknown_age: Gauge,
    failed: Counter,
}

/// Waiting work of one kind in all clusters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct WaitingWork {
    count: u64,
    /// Age of the oldest; zero if there is none.
    age: Duration,
}

/// Waiting work of all clusters.
#[derive(Clone, Copy, Debug, Default)]
struct WorkReadings {
    unapproved: WaitingWork,
    host_steps: WaitingWork,
    unknown: WaitingWork,
}

impl WorkMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let mut register =
            |name: &str, help: &str, gauge: &Gauge| registry.register(name, help, gauge.clone());
        register(
            "events_unapproved",
            "Events that wait for the approval of their tenants",
            &metrics.unapproved,
        );
        register(
            "events_unapproved_oldest_seconds",
            "Age of the oldest event that waits for an approval",
            &metrics.unapproved_age,
        );
        register("host_steps", "Steps on hosts that are in progress", &metrics.host_steps);
        register(
            "host_steps_oldest_seconds",
            "Age of the oldest step on a host that is in progress",
            &metrics.host_steps_age,
        );
        register("actions_unknown", "Actions whose result is unknown", &metrics.unknown);
        register(
            "actions_unknown_oldest_seconds",
            "Time since the first unknown result of such an action",
            &metrics.unknown_age,
        );
        registry.register("actions_failed", "Actions that failed", metrics.failed.clone());
        metrics
    }

    /// Reads the state of all clusters. This costs as much as the waiting actions, whatever the size of the fleet.
    pub(super) fn read(&self, control: &ControlHandle) {
        let mut readings = WorkReadings::default();
        control.look_at_clusters(|state| readings.add(state));
        let WorkReadings { unapproved, host_steps, unknown } = readings;
        unapproved.show(&self.unapproved, &self.unapproved_age);
        host_steps.show(&self.host_steps, &self.host_steps_age);
        unknown.show(&self.unknown, &self.unknown_age);
        self.failed.inner().store(control.failed_actions(), Ordering::Relaxed);
    }
}

impl WorkReadings {
    fn add(&mut self, state: &State<'_>) {
        let (cluster, now) = (state.cluster, state.now);
        let count = u64::try_from(cluster.unapproved_count()).unwrap_or(u64::MAX);
        self.unapproved.add(count, cluster.unapproved_age(now));
        self.host_steps.add_actions(state.times.host_steps(cluster), now);
        self.unknown.add_actions(state.times.unknown(cluster), now);
    }
}

impl WaitingWork {
    fn add(&mut self, count: u64, age: Option<Duration>) {
        self.count = self.count.saturating_add(count);
        self.age = self.age.max(age.unwrap_or_default());
    }

    fn add_actions(&mut self, WaitingActions { count, since }: WaitingActions, now: Now) {
        self.add(count, since.map(|since| now.steady.since(since)));
    }

    fn show(self, count: &Gauge, age: &Gauge) {
        count.set(i64::try_from(self.count).unwrap_or(i64::MAX));
        age.set(i64::try_from(self.age.as_secs()).unwrap_or(i64::MAX));
    }
}
