//! Counts of the endpoint, for metrics.
//!
//! Every counter is found once, when the service starts: counting is one addition, without a look-up or a lock. No
//! label names a request, a machine or an event, so the number of labels is limited.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Counts of all connections and requests.
#[derive(Debug)]
pub struct EndpointCounts {
    requests: [[Counter; CODES.len()]; Path::ALL.len()],
    pub(crate) connections_taken: Counter,
    pub(crate) connections_open: Gauge,
    pub(crate) accept_failures: Counter,
    pub(crate) refused_full: Counter,
    pub(crate) refused_machine: Counter,
    pub(crate) ended_requests: Counter,
    pub(crate) ended_life: Counter,
    ended_idle: Counter,
    ended_head: Counter,
    ended_body: Counter,
    ended_reader: Counter,
    pub(crate) delayed: Counter,
    pub(crate) waiting: Gauge,
    pub(crate) limited_rate: Counter,
    pub(crate) limited_in_flight: Counter,
    pub(crate) limited_waiting: Counter,
    pub(crate) start_requests_accepted: Counter,
    pub(crate) start_requests_refused: Counter,
}

/// Path under which a request is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    Events,
    Instance,
    Versions,
    Members,
    Token,
    /// Every other path, and requests that cannot be read.
    Other,
}

/// Status codes of all responses.
const CODES: [u16; 11] = [200, 304, 400, 403, 404, 405, 413, 414, 429, 431, 503];

/// The thing that a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// The first byte of a request.
    Request,
    /// The rest of a head.
    Head,
    /// The rest of a body.
    Body,
    /// The client, which has to read the response.
    Reader,
    /// The end of a body that is not used.
    End,
}

type Labels = [(&'static str, String); 1];

impl EndpointCounts {
    /// Registers the counts. The registry adds the prefix of their names.
    #[must_use]
    pub fn new(registry: &mut Registry) -> Self {
        let requests = Family::<[(&'static str, String); 2], Counter>::default();
        registry.register("requests", "Requests answered", requests.clone());
        let refused =
            family(registry, "connections_refused", "Connections closed at once because a limit was reached");
        let ended =
            family(registry, "connections_ended", "Connections closed later because a limit was reached");
        let delayed = Counter::default();
        registry.register("refusals_delayed", "Rejections delayed", delayed.clone());
        let limited = family(registry, "limited", "Requests answered with 429");
        let starts = family(registry, "start_requests", "Start requests answered");
        let connections_taken = Counter::default();
        registry.register("connections", "Connections accepted", connections_taken.clone());
        let connections_open = Gauge::default();
        registry.register("connections_open", "Open connections", connections_open.clone());
        let accept_failures = Counter::default();
        registry.register(
            "accept_failures",
            "Connections of machines that failed to be accepted",
            accept_failures.clone(),
        );
        let waiting = Gauge::default();
        registry.register(
            "waiting_requests",
            "Requests waiting for a change of the document",
            waiting.clone(),
        );
        Self {
            requests: Path::ALL.map(|path| {
                CODES.map(|code| {
                    let labels = [("path", path.as_str().to_owned()), ("code", code.to_string())];
                    requests.get_or_create_owned(&labels)
                })
            }),
            connections_taken,
            connections_open,
            accept_failures,
            refused_full: refused("reason", "full"),
            refused_machine: refused("reason", "machine"),
            ended_requests: ended("limit", "requests"),
            ended_life: ended("limit", "life"),
            ended_idle: ended("limit", "idle"),
            ended_head: ended("limit", "head"),
            ended_body: ended("limit", "body"),
            ended_reader: ended("limit", "write"),
            delayed,
            waiting,
            limited_rate: limited("limit", "rate"),
            limited_in_flight: limited("limit", "in_flight"),
            limited_waiting: limited("limit", "waiting"),
            start_requests_accepted: starts("outcome", "accepted"),
            start_requests_refused: starts("outcome", "refused"),
        }
    }

    /// Counts a connection that was closed because the thing that it waited for did not come in time.
    pub(crate) fn ran_out(&self, awaited: Awaited) {
        match awaited {
            Awaited::Request => drop(self.ended_idle.inc()),
            Awaited::Head => drop(self.ended_head.inc()),
            Awaited::Body => drop(self.ended_body.inc()),
            Awaited::Reader => drop(self.ended_reader.inc()),
            // The connection was about to be closed anyway.
            Awaited::End => {}
        }
    }

    /// Requests that were answered with an error, by the status.
    #[must_use]
    pub fn refused_requests(&self) -> Vec<(u16, u64)> {
        let sum = |place: usize| self.requests.iter().map(|codes| codes[place].get()).sum();
        let all = CODES.iter().enumerate().map(|(place, code)| (*code, sum(place)));
        all.filter(|(code, count)| *code >= 400 && *count > 0).collect()
    }

    /// Counts a response to a request to that path.
    pub(crate) fn count_response(&self, path: Path, code: u16) {
        if let Some(place) = CODES.iter().position(|known| *known == code) {
            self.requests[path as usize][place].inc();
        }
    }
}

/// Registers a family of counters; gives a way to find them by their one label.
fn family(registry: &mut Registry, name: &str, help: &str) -> impl Fn(&'static str, &str) -> Counter + use<> {
    let family = Family::<Labels, Counter>::default();
    registry.register(name, help, family.clone());
    move |label, value| family.get_or_create_owned(&[(label, value.to_owned())])
}

impl Path {
    const ALL: [Self; 6] =
        [Self::Events, Self::Instance, Self::Versions, Self::Members, Self::Token, Self::Other];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Events => "scheduledevents",
            Self::Instance => "instance",
            Self::Versions => "versions",
            Self::Members => "members",
            Self::Token => "token",
            Self::Other => "other",
        }
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    fn registered() -> (Registry, EndpointCounts) {
        let mut registry = Registry::with_prefix("forewarn");
        let counts = EndpointCounts::new(registry.sub_registry_with_prefix("metadata"));
        (registry, counts)
    }

    fn encoded(registry: &Registry) -> String {
        let mut text = String::new();
        encode(&mut text, registry).expect("writing to a string does not fail");
        text
    }

    /// promise: X2
    #[test]
    fn counters_are_exported_under_their_names() {
        let (registry, counts) = registered();
        counts.count_response(Path::Events, 200);
        counts.count_response(Path::Events, 200);
        counts.count_response(Path::Other, 431);
        counts.connections_open.inc();
        counts.refused_machine.inc();
        counts.start_requests_accepted.inc();
        let text = encoded(&registry);
        for line in [
            "# TYPE forewarn_metadata_requests counter",
            "forewarn_metadata_requests_total{path=\"scheduledevents\",code=\"200\"} 2",
            "forewarn_metadata_requests_total{path=\"scheduledevents\",code=\"304\"} 0",
            "forewarn_metadata_requests_total{path=\"other\",code=\"431\"} 1",
            "forewarn_metadata_connections_open 1",
            "forewarn_metadata_connections_refused_total{reason=\"machine\"} 1",
            "forewarn_metadata_connections_refused_total{reason=\"full\"} 0",
            "forewarn_metadata_start_requests_total{outcome=\"accepted\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\nin\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn an_unknown_status_code_is_not_counted() {
        let (registry, counts) = registered();
        let before = encoded(&registry);
        counts.count_response(Path::Events, 999);
        assert_eq!(encoded(&registry), before);
    }
}
