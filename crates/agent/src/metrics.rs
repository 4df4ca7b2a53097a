//! What is counted, for whoever collects such numbers. No label has the name of a machine, of a hook or the id of an event.

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

/// Upper bounds of the classes of how long hooks take, in seconds.
const SECONDS: [f64; 8] = [0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Kind {
    r#type: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Ended {
    phase: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct In {
    phase: &'static str,
}

type Seconds = Gauge<f64, AtomicU64>;

/// The numbers of an agent.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    registry: Arc<Registry>,
    polls: Family<Outcome, Counter>,
    events: Family<Kind, Counter>,
    malformed_events: Counter,
    hooks: Family<Ended, Counter>,
    hook_seconds: Family<In, Histogram, fn() -> Histogram>,
    approvals: Family<Outcome, Counter>,
    peer_rounds: Counter,
    drained: Gauge,
    reachable: Gauge,
    kept: Gauge,
    in_hand: Gauge,
    left: Family<Kind, Seconds>,
    /// When the notice of each event in hand is over.
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
            kept: Gauge::default(),
            in_hand: Gauge::default(),
            left: Family::default(),
            deadlines: Arc::default(),
        };
        registry.register("polls", "Answers of the endpoint", metrics.polls.clone());
        registry.register("events", "Events seen for the first time", metrics.events.clone());
        registry.register(
            "malformed_events",
            "Events that were skipped because they cannot be read",
            metrics.malformed_events.clone(),
        );
        registry.register("hooks", "Hooks that have ended", metrics.hooks.clone());
        registry.register("hook_seconds", "How long hooks took", metrics.hook_seconds.clone());
        registry.register("approvals", "Approvals that were answered", metrics.approvals.clone());
        registry.register(
            "peer_rounds",
            "How often peers were asked how they are",
            metrics.peer_rounds.clone(),
        );
        registry.register("drained", "1 while this machine should get no new work", metrics.drained.clone());
        registry.register("endpoint_reachable", "1 while the endpoint answers", metrics.reachable.clone());
        registry.register("memory_kept", "1 while what must not be lost is kept", metrics.kept.clone());
        registry.register("events_in_hand", "Events that something is done about", metrics.in_hand.clone());
        registry.register("seconds_left", "Until the next notice is over", metrics.left.clone());
        metrics.kept.set(1);
        Self { registry: Arc::new(registry), ..metrics }
    }

    /// The endpoint has answered, or not: `news`, `quiet`, `failed`.
    pub(crate) fn polled(&self, outcome: &'static str) {
        self.polls.get_or_create(&Outcome { outcome }).inc();
        self.reachable.set(i64::from(outcome != "failed"));
    }

    /// An event was seen for the first time.
    pub(crate) fn seen(&self, kind: &str) {
        self.events.get_or_create(&Kind { r#type: known(kind) }).inc();
    }

    /// Counts events that were skipped.
    pub(crate) fn skipped(&self, events: usize) {
        self.malformed_events.inc_by(u64::try_from(events).unwrap_or(u64::MAX));
    }

    /// A hook has ended.
    pub(crate) fn ended(&self, phase: Phase, is_done: bool, took: Duration) {
        let (phase, outcome) = (phase.as_str(), if is_done { "done" } else { "failed" });
        self.hooks.get_or_create(&Ended { phase, outcome }).inc();
        self.hook_seconds.get_or_create(&In { phase }).observe(took.as_secs_f64());
    }

    /// An approval was answered.
    pub(crate) fn approved(&self, is_taken: bool) {
        let outcome = if is_taken { "taken" } else { "refused" };
        self.approvals.get_or_create(&Outcome { outcome }).inc();
    }

    /// Peers were asked.
    pub(crate) fn asked_peers(&self) {
        self.peer_rounds.inc();
    }

    /// Whether the memory could be kept.
    pub(crate) fn kept(&self, is_kept: bool) {
        self.kept.set(i64::from(is_kept));
    }

    /// How everything stands; events by their type, with the end of their notice.
    pub(crate) fn stands<'a>(
        &self,
        drained: bool,
        in_hand: usize,
        deadlines: impl Iterator<Item = (&'a str, Steady)>,
    ) {
        self.drained.set(i64::from(drained));
        self.in_hand.set(i64::try_from(in_hand).unwrap_or(i64::MAX));
        *self.deadlines() = deadlines.map(|(kind, at)| (known(kind), at)).collect();
    }

    fn deadlines(&self) -> MutexGuard<'_, Vec<(&'static str, Steady)>> {
        self.deadlines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of it, as text.
    pub(crate) fn text(&self) -> String {
        let now = clock::now();
        self.left.clear();
        let mut deadlines = self.deadlines().clone();
        // Of each type the first counts, which is written last.
        deadlines.sort_by_key(|(_, at)| std::cmp::Reverse(*at));
        for (kind, at) in deadlines {
            self.left.get_or_create(&Kind { r#type: kind }).set(at.since(now).as_secs_f64());
        }
        let mut text = String::new();
        // Writing to a text does not fail.
        encode(&mut text, &self.registry).ok();
        text
    }
}

/// The label of a type of events: its word, or `other` if the type is not known.
fn known(kind: &str) -> &'static str {
    kind.parse().map_or("other", EventKind::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_told_by_name() {
        let metrics = Metrics::new();
        metrics.polled("quiet");
        metrics.seen("Reboot");
        metrics.seen("Thaw");
        metrics.ended(Phase::Scheduled, true, Duration::from_secs(2));
        metrics.approved(true);
        metrics.skipped(3);
        metrics.stands(true, 2, std::iter::empty());
        let text = metrics.text();
        for line in [
            "forewarn_agent_polls_total{outcome=\"quiet\"} 1",
            "forewarn_agent_events_total{type=\"other\"} 1",
            "forewarn_agent_hooks_total{phase=\"scheduled\",outcome=\"done\"} 1",
            "forewarn_agent_hook_seconds_sum{phase=\"scheduled\"} 2.0",
            "forewarn_agent_approvals_total{outcome=\"taken\"} 1",
            "forewarn_agent_malformed_events_total 3",
            "forewarn_agent_drained 1",
            "forewarn_agent_endpoint_reachable 1",
            "forewarn_agent_memory_kept 1",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(!text.contains("\nforewarn_agent_seconds_left"), "{text}");
        let at = |seconds| ("Reboot", clock::now().plus(Duration::from_secs(seconds)));
        metrics.stands(true, 2, [at(100), at(500)].into_iter());
        let text = metrics.text();
        let left = text.split("forewarn_agent_seconds_left{type=\"Reboot\"} ").nth(1).unwrap();
        assert!(left.starts_with("100.") || left.starts_with("99."), "{text}");
    }
}
