//! Metrics of the service.
//!
//! Counters are looked up once, at the start: counting is one addition, without a lock. No label
//! names a request, a machine or an event, so the number of labels is limited.

use std::sync::{Arc, Mutex, PoisonError};

use forewarn_metadata::EndpointCounts;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

/// The registry of all metrics.
#[derive(Debug)]
pub struct Telemetry {
    registry: Mutex<Registry>,
    metadata: Arc<EndpointCounts>,
}

impl Telemetry {
    /// `Content-Type` of [`Self::encode`].
    pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

    /// An empty registry, with the metrics of the metadata endpoint.
    #[must_use]
    pub fn new() -> Arc<Self> {
        let mut registry = Registry::with_prefix("forewarn");
        let metadata = Arc::new(EndpointCounts::new(registry.sub_registry_with_prefix("metadata")));
        Arc::new(Self { registry: Mutex::new(registry), metadata })
    }

    /// Counts of the metadata endpoint.
    #[must_use]
    pub fn metadata(&self) -> &Arc<EndpointCounts> {
        &self.metadata
    }

    /// Adds metrics. Names are given without the prefix `forewarn_`.
    pub fn register<T>(&self, add: impl FnOnce(&mut Registry) -> T) -> T {
        add(&mut self.registry.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// All metrics in the OpenMetrics format.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut text = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        encode(&mut text, &registry).expect("writing to a string does not fail");
        text
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::counter::Counter;

    use super::*;

    #[test]
    fn metrics_can_be_added() {
        let telemetry = Telemetry::new();
        let commands = Counter::<u64>::default();
        telemetry.register(|registry| {
            registry.sub_registry_with_prefix("test").register("commands", "Commands", commands.clone());
        });
        commands.inc_by(3);
        assert!(telemetry.encode().contains("forewarn_test_commands_total 3\n"));
    }
}
