//! Metrics of webhooks.

use std::sync::atomic::AtomicI64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

type WebhookLabels = [(&'static str, &'static str); 1];
type WebhookGauges = Family<WebhookLabels, Gauge<i64, AtomicI64>>;

/// Counters over all webhooks: a label per webhook would have no upper bound.
#[derive(Clone, Debug)]
pub(super) struct WebhookCounts {
    pub(super) delivered: Counter,
    pub(super) refused: Counter,
    pub(super) lost: Counter,
    pub(super) handshakes_done: Counter,
    pub(super) handshakes_failed: Counter,
    states: WebhookGauges,
}

impl WebhookCounts {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let pushes = Family::<WebhookLabels, Counter>::default();
        registry.register("webhook_pushes", "Events sent to webhooks, by outcome", pushes.clone());
        let handshakes = Family::<WebhookLabels, Counter>::default();
        registry.register(
            "webhook_handshakes",
            "Subscription handshakes with webhooks, by outcome",
            handshakes.clone(),
        );
        let states = WebhookGauges::default();
        registry.register("webhooks", "Webhooks, by state", states.clone());
        let of = |family: &Family<WebhookLabels, Counter>, outcome| {
            family.get_or_create_owned(&[("outcome", outcome)])
        };
        Self {
            delivered: of(&pushes, "delivered"),
            refused: of(&pushes, "refused"),
            lost: of(&pushes, "lost"),
            handshakes_done: of(&handshakes, "done"),
            handshakes_failed: of(&handshakes, "failed"),
            states,
        }
    }

    /// Sets the number of webhooks in each state.
    pub(super) fn set_states(&self, states: impl Iterator<Item = (&'static str, i64)>) {
        for (state, count) in states {
            self.states.get_or_create(&[("state", state)]).set(count);
        }
    }
}
