//! Metrics of the agent. No label holds the name of a machine or a hook, or the id of an event.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use forewarn_agent_core::Phase;
use forewarn_types::{EventKind, Steady};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::clock;

/// Buckets of hook durations, in seconds.
const SECONDS: [f64; 8] = [0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TypeLabel {
    r#type: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HookLabels {
    phase: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PhaseLabel {
    phase: &'static str,
}

type Seconds = Gauge<f64, AtomicU64>;

/// The metrics of an agent.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    registry: Arc<Registry>,
    polls: Family<OutcomeLabel, Counter>,
    events: Family<TypeLabel, Counter>,
    malformed_events: Counter,
    hooks: Family<HookLabels, Counter>,
    hook_seconds: Family<PhaseLabel, Histogram, fn() -> Histogram>,
    approvals: Family<OutcomeLabel, Counter>,
    peer_rounds: Counter,
    drained: Gauge,
    reachable: Gauge,
    memory_stored: Gauge,
    events_pending: Gauge,
    left: Family<TypeLabel, Seconds>,
    /// The end of the notice of each pending event.
    deadlines: Arc<Mutex<Vec<(&'static str, Steady)>>>,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("forewarn_agent");
        let histogram: fn() -> Histogram = || Histogram::new(SECONDS);
        let metrics = Self {
            registry: Arc::new(Registry::default()),
            polls: Family::default(),
            events: Family::default(),
            malformed_events: Counter::default(),
            hooks: Family::default(),
            hook_seconds: Family::new_with_constructor(histogram),
            approvals: Family::default(),
            peer_rounds: Counter::default(),
            drained: Gauge::default(),
            reachable: Gauge::default(),
            memory_stored: Gauge::default(),
            events_pending: Gauge::default(),
            left: Family::default(),
            deadlines: Arc::default(),
        };
        registry.register("polls", "Polls of the endpoint", metrics.polls.clone());
        registry.register("events", "New events", metrics.events.clone());
        registry.register("malformed_events", "Skipped malformed events", metrics.malformed_events.clone());
        registry.register("hooks", "Completed hook runs", metrics.hooks.clone());
        registry.register("hook_seconds", "Duration of hook runs", metrics.hook_seconds.clone());
        registry.register("approvals", "Approvals with a response", metrics.approvals.clone());
        registry.register("peer_rounds", "Rounds of peer polls", metrics.peer_rounds.clone());
        registry.register("drained", "1 while this machine should get no new work", metrics.drained.clone());
        registry.register("endpoint_reachable", "1 while the endpoint responds", metrics.reachable.clone());
        registry.register("memory_stored", "1 while the state can be stored", metrics.memory_stored.clone());
        registry.register("events_pending", "Pending events", metrics.events_pending.clone());
        registry.register("seconds_left", "Time until the end of the next notice", metrics.left.clone());
        metrics.memory_stored.set(1);
        Self { registry: Arc::new(registry), ..metrics }
    }

    /// Counts a poll with the outcome `news`, `quiet` or `failed`.
    pub(crate) fn count_poll(&self, outcome: &'static str) {
        self.polls.get_or_create(&OutcomeLabel { outcome }).inc();
        self.reachable.set(i64::from(outcome != "failed"));
    }

    /// Counts a new event.
    pub(crate) fn count_event(&self, kind: &str) {
        self.events.get_or_create(&TypeLabel { r#type: label_of(kind) }).inc();
    }

    pub(crate) fn count_skipped(&self, events: usize) {
        self.malformed_events.inc_by(u64::try_from(events).unwrap_or(u64::MAX));
    }

    /// Counts a hook run.
    pub(crate) fn count_hook(&self, phase: Phase, is_done: bool, took: Duration) {
        let (phase, outcome) = (phase.as_str(), if is_done { "done" } else { "failed" });
        self.hooks.get_or_create(&HookLabels { phase, outcome }).inc();
        self.hook_seconds.get_or_create(&PhaseLabel { phase }).observe(took.as_secs_f64());
    }

    /// Counts a response to an approval.
    pub(crate) fn count_approval(&self, is_accepted: bool) {
        let outcome = if is_accepted { "accepted" } else { "rejected" };
        self.approvals.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    /// Counts a round of peer polls.
    pub(crate) fn count_peer_round(&self) {
        self.peer_rounds.inc();
    }

    /// Records whether the memory could be stored.
    pub(crate) fn set_stored(&self, is_stored: bool) {
        self.memory_stored.set(i64::from(is_stored));
    }

    /// Sets the gauges; `deadlines` holds the event types with the ends of their notices.
    pub(crate) fn set_gauges<'a>(
        &self,
        drained: bool,
        events_pending: usize,
        deadlines: impl Iterator<Item = (&'a str, Steady)>,
    ) {
        self.drained.set(i64::from(drained));
        self.events_pending.set(i64::try_from(events_pending).unwrap_or(i64::MAX));
        *self.deadlines() = deadlines.map(|(kind, at)| (label_of(kind), at)).collect();
    }

    fn deadlines(&self) -> MutexGuard<'_, Vec<(&'static str, Steady)>> {
        self.deadlines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All metrics in the OpenMetrics text format.
    pub(crate) fn text(&self) -> String {
        let now = clock::now();
        self.left.clear();
        let mut deadlines = self.deadlines().clone();
        // The first deadline of each type counts, so it is set last.
        deadlines.sort_by_key(|(_, at)| std::cmp::Reverse(*at));
        for (kind, at) in deadlines {
            self.left.get_or_create(&TypeLabel { r#type: kind }).set(at.since(now).as_secs_f64());
        }
        let mut text = String::new();
        // Writing to a string does not fail.
        encode(&mut text, &self.registry).ok();
        text
    }
}

/// The label of an event type: its name, or `other` if it is unknown.
fn label_of(kind: &str) -> &'static str {
    kind.parse().map_or("other", EventKind::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_exposed_by_name() {
        let metrics = Metrics::new();
        metrics.count_poll("quiet");
        metrics.count_event("Reboot");
        metrics.count_event("Thaw");
        metrics.count_hook(Phase::Scheduled, true, Duration::from_secs(2));
        metrics.count_approval(true);
        metrics.count_skipped(3);
        metrics.set_gauges(true, 2, std::iter::empty());
        let text = metrics.text();
        for line in [
            "forewarn_agent_polls_total{outcome=\"quiet\"} 1",
            "forewarn_agent_events_total{type=\"other\"} 1",
            "forewarn_agent_hooks_total{phase=\"scheduled\",outcome=\"done\"} 1",
            "forewarn_agent_hook_seconds_sum{phase=\"scheduled\"} 2.0",
            "forewarn_agent_approvals_total{outcome=\"accepted\"} 1",
            "forewarn_agent_malformed_events_total 3",
            "forewarn_agent_drained 1",
            "forewarn_agent_endpoint_reachable 1",
            "forewarn_agent_memory_stored 1",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(!text.contains("\nforewarn_agent_seconds_left"), "{text}");
        let at = |seconds| ("Reboot", clock::now().plus(Duration::from_secs(seconds)));
        metrics.set_gauges(true, 2, [at(100), at(500)].into_iter());
        let text = metrics.text();
        let left = text.split("forewarn_agent_seconds_left{type=\"Reboot\"} ").nth(1).unwrap();
        assert!(left.starts_with("100.") || left.starts_with("99."), "{text}");
    }
}
