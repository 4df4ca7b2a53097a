//! What is counted about webhooks.

use std::sync::atomic::AtomicI64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

type Labels = [(&'static str, &'static str); 1];
type Gauges = Family<Labels, Gauge<i64, AtomicI64>>;

/// Counters of all webhooks together: how many there are is up to operators.
#[derive(Clone, Debug)]
pub(super) struct Counts {
    pub(super) delivered: Counter,
    pub(super) refused: Counter,
    pub(super) lost: Counter,
    pub(super) handshakes_done: Counter,
    pub(super) handshakes_failed: Counter,
    states: Gauges,
}

impl Counts {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let pushes = Family::<Labels, Counter>::default();
        registry.register("webhook_pushes", "Events that webhooks were told of, by outcome", pushes.clone());
        let handshakes = Family::<Labels, Counter>::default();
        registry.register(
            "webhook_handshakes",
            "Times that webhooks were asked whether they want to be told",
            handshakes.clone(),
        );
        let states = Gauges::default();
        registry.register("webhooks", "Webhooks, by how it is with them", states.clone());
        let of =
            |family: &Family<Labels, Counter>, outcome| family.get_or_create_owned(&[("outcome", outcome)]);
        Self {
            delivered: of(&pushes, "delivered"),
            refused: of(&pushes, "refused"),
            lost: of(&pushes, "lost"),
            handshakes_done: of(&handshakes, "done"),
            handshakes_failed: of(&handshakes, "failed"),
            states,
        }
    }

    /// How many webhooks there are in each state.
    pub(super) fn show(&self, states: impl Iterator<Item = (&'static str, i64)>) {
        for (state, count) in states {
            self.states.get_or_create(&[("state", state)]).set(count);
        }
    }
}
