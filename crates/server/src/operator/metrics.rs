//! Metrics of the fleet, computed on each scrape, and counters of the operator API.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use forewarn_imds::Status;
use forewarn_lifecycle::{Cluster, Health, Power};
use forewarn_store::AuditCheck;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::Api;
use super::work_metrics::WorkMetrics;
use crate::telemetry::Telemetry;

type FleetLabels = Vec<(&'static str, &'static str)>;
type FleetGauges = Family<FleetLabels, Gauge<i64, AtomicI64>>;

/// Counters of the operator API and gauges of the fleet.
#[derive(Clone, Debug)]
pub(super) struct Metrics {
    pub(super) commands: Counter,
    pub(super) refused: Counter,
    events: FleetGauges,
    hosts: FleetGauges,
    machines: FleetGauges,
    tenants: FleetGauges,
    held: Gauge,
    unfenced: Gauge,
    clock: Gauge,
    clock_steps: Counter,
    clock_held: Gauge,
    writable: Gauge,
    failed_clusters: Gauge,
    audit: AuditMetrics,
    work: WorkMetrics,
}

/// The verification of the audit log.
#[derive(Clone, Debug, Default)]
struct AuditMetrics {
    verified: Counter,
    damages: Gauge,
}

impl AuditMetrics {
    fn new(registry: &mut Registry) -> Self {
        let audit = Self::default();
        let help = "Audit entries that were verified since the journal was opened";
        registry.register("audit_entries_verified", help, audit.verified.clone());
        let help = "Damages of the audit log that the verification has found";
        registry.register("audit_damages", help, audit.damages.clone());
        audit
    }

    fn show(&self, check: &AuditCheck) {
        self.verified.inner().store(check.entries, Ordering::Relaxed);
        self.damages.set(i64::try_from(check.damages).unwrap_or(i64::MAX));
    }
}

impl Metrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let mut gauges = |name: &str, help: &str| {
            let family = FleetGauges::default();
            registry.register(name, help, family.clone());
            family
        };
        let events = gauges("events", "Active events, by type and status");
        let hosts = gauges("hosts", "Hosts, by health");
        let machines = gauges("machines", "Machines, by power state");
        let tenants = gauges("tenants", "Tenants, by whether Scheduled Events are enabled");
        let (commands, refused) = (Counter::default(), Counter::default());
        registry.register("operator_commands", "Commands of operators that succeeded", commands.clone());
        registry.register(
            "operator_commands_refused",
            "Commands of operators that were rejected",
            refused.clone(),
        );
        let (held, clock) = (Gauge::default(), Gauge::default());
        registry.register("held", "Maintenances that are due and held", held.clone());
        let unfenced = Gauge::default();
        registry.register("hosts_unfenced", "Failed hosts whose fence is awaited", unfenced.clone());
        let (clock_steps, writable) = (Counter::default(), Gauge::default());
        registry.register(
            "clock_steps",
            "Steps of the system clock and suspensions of the server",
            clock_steps.clone(),
        );
        let clock_held = Gauge::default();
        registry.register(
            "clock_held",
            "1 if no event starts because the clock differs from those of the other servers, else 0",
            clock_held.clone(),
        );
        registry.register("writable", "1 if the journal can be written, else 0", writable.clone());
        registry.register(
            "clock_seconds",
            "Time of the server's clock, in seconds since 1970",
            clock.clone(),
        );
        let failed_clusters = Gauge::default();
        registry.register("clusters_failed", "Clusters whose driver has failed", failed_clusters.clone());
        Self {
            commands,
            refused,
            events,
            hosts,
            machines,
            tenants,
            held,
            unfenced,
            clock,
            clock_steps,
            clock_held,
            writable,
            failed_clusters,
            audit: AuditMetrics::new(registry),
            work: WorkMetrics::new(registry),
        }
    }

    fn show(&self, counts: &FleetCounts) {
        self.held.set(counts.held);
        self.unfenced.set(counts.unfenced);
        if let Some(seconds) = counts.clock_seconds {
            self.clock.set(seconds);
        }
        for (family, counts) in [
            (&self.events, &counts.events),
            (&self.hosts, &counts.hosts),
            (&self.machines, &counts.machines),
            (&self.tenants, &counts.tenants),
        ] {
            family.clear();
            for (labels, count) in counts {
                family.get_or_create(labels).set(*count);
            }
        }
    }
}

#[derive(Default)]
struct FleetCounts {
    events: BTreeMap<FleetLabels, i64>,
    hosts: BTreeMap<FleetLabels, i64>,
    machines: BTreeMap<FleetLabels, i64>,
    tenants: BTreeMap<FleetLabels, i64>,
    held: i64,
    unfenced: i64,
    /// None if there is no cluster.
    clock_seconds: Option<i64>,
}

impl FleetCounts {
    fn add(&mut self, cluster: &Cluster) {
        for (_, host) in cluster.hosts() {
            let health = match host.health {
                Health::Healthy => "healthy",
                Health::Degraded => "degraded",
                Health::Failed => "failed",
            };
            *self.hosts.entry(vec![("health", health)]).or_default() += 1;
            self.unfenced += i64::from(host.fence.is_awaited());
        }
        for (_, machine) in cluster.machines() {
            let power = match machine.power {
                Power::Running => "running",
                Power::Stopped => "stopped",
                Power::Deallocated => "deallocated",
            };
            *self.machines.entry(vec![("power", power)]).or_default() += 1;
        }
        for (_, tenant) in cluster.tenants() {
            let enabled = if tenant.is_enrolled() { "true" } else { "false" };
            *self.tenants.entry(vec![("enabled", enabled)]).or_default() += 1;
            for event in tenant.events() {
                let kind = event.announcement.kind.as_str();
                let labels = vec![("type", kind), ("status", Status::of(&event.phase).as_str())];
                *self.events.entry(labels).or_default() += 1;
            }
        }
        let held = i64::try_from(cluster.held().count()).unwrap_or(i64::MAX);
        self.held = self.held.saturating_add(held);
    }
}

pub(super) async fn metrics(State(api): State<Api>) -> impl IntoResponse {
    let mut counts = FleetCounts::default();
    api.control.look_at_clusters(|state| {
        counts.add(state.cluster);
        counts.clock_seconds = Some(state.now.wall.seconds());
    });
    api.metrics.show(&counts);
    api.metrics.work.read(&api.control);
    api.webhooks.count();
    api.metrics.audit.show(&api.control.audit_check());
    api.metrics.writable.set(i64::from(api.control.write_error().is_none()));
    let failed = i64::try_from(api.control.failed_clusters().len()).unwrap_or(i64::MAX);
    api.metrics.failed_clusters.set(failed);
    api.metrics.clock_steps.inner().store(api.control.clock_steps(), Ordering::Relaxed);
    api.metrics.clock_held.set(i64::from(api.control.clock_hold().is_some()));
    ([(header::CONTENT_TYPE, Telemetry::CONTENT_TYPE)], api.telemetry.encode())
}
