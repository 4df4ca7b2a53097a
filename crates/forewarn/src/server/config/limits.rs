//! `[metadata.limits]` and `[metadata.connection]`: limits per machine and per connection.

use std::time::Duration;

use anyhow::{Result, ensure};
use forewarn_metadata::{ConnectionLimits, Limits, Rate};
use forewarn_types::Span;
use serde::Deserialize;

/// The longest time limit.
pub(super) const TIME_MAX: Duration = Duration::from_hours(24);

/// `[metadata.limits]`: limits per machine.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct LimitsTable {
    enabled: bool,
    requests_per_second: u32,
    burst: u32,
    connections: u32,
    in_flight: u32,
    waiting: u32,
    errors_per_second: u32,
    error_delay: Span,
}

impl Default for LimitsTable {
    fn default() -> Self {
        let Limits { rate, connections, in_flight, waiting, errors, error_delay } = Limits::default();
        Self {
            enabled: true,
            requests_per_second: rate.per_second,
            burst: rate.burst,
            connections,
            in_flight,
            waiting,
            errors_per_second: errors.per_second,
            error_delay: Span(error_delay),
        }
    }
}

impl LimitsTable {
    pub(super) fn limits(&self) -> Result<Option<Limits>> {
        let Self { enabled, requests_per_second, burst, connections, in_flight, waiting, .. } = *self;
        if !enabled {
            return Ok(None);
        }
        let (errors, Span(error_delay)) = (self.errors_per_second, self.error_delay);
        for (key, limit) in [
            ("requests_per_second", requests_per_second),
            ("burst", burst),
            ("connections", connections),
            ("in_flight", in_flight),
            ("waiting", waiting),
            ("errors_per_second", errors),
        ] {
            ensure!(
                limit > 0,
                "limit of zero: metadata.limits.{key} = 0\n  \
                 hint: at least 1; or enabled = false for no limits"
            );
        }
        ensure!(error_delay <= TIME_MAX, "delay too long: metadata.limits.error_delay\n  hint: at most 1d");
        let rate = Rate { per_second: requests_per_second, burst };
        let errors = Rate { per_second: errors, burst: errors };
        Ok(Some(Limits { rate, connections, in_flight, waiting, errors, error_delay }))
    }
}

/// `[metadata.connection]`: the number of connections, and their timeouts.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ConnectionTable {
    max: u32,
    idle: Span,
    head: Span,
    body: Span,
    write: Span,
    life: Span,
    requests: u32,
}

impl Default for ConnectionTable {
    fn default() -> Self {
        let ConnectionLimits { max, idle, head, body, write, life, requests } = ConnectionLimits::default();
        Self {
            max,
            idle: Span(idle),
            head: Span(head),
            body: Span(body),
            write: Span(write),
            life: Span(life),
            requests,
        }
    }
}

impl ConnectionTable {
    pub(super) fn limits(&self) -> Result<ConnectionLimits> {
        let Self { max, idle, head, body, write, life, requests } = *self;
        for (name, count) in [("max", max), ("requests", requests)] {
            ensure!(count > 0, "limit of zero: metadata.connection.{name} = 0\n  hint: at least 1");
        }
        let times = [("idle", idle), ("head", head), ("body", body), ("write", write), ("life", life)];
        for (name, Span(time)) in times {
            ensure!(
                time > Duration::ZERO && time <= TIME_MAX,
                "invalid limit: metadata.connection.{name}\n  hint: from 1s to 1d"
            );
        }
        let (Span(idle), Span(head), Span(body), Span(write), Span(life)) = (idle, head, body, write, life);
        Ok(ConnectionLimits { max, idle, head, body, write, life, requests })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(text: &str) -> Result<ConnectionLimits> {
        toml::from_str::<ConnectionTable>(text).unwrap().limits()
    }

    #[test]
    fn omitted_limits_of_machines_have_their_defaults() {
        assert_eq!(connection("").unwrap(), ConnectionLimits::default());
        assert_eq!(LimitsTable::default().limits().unwrap(), Some(Limits::default()));
    }

    /// promise: M4
    #[test]
    fn every_limit_of_machines_can_be_set() {
        let text = "max = 7\nidle = '1m'\nhead = '2s'\nbody = '3s'\nwrite = '4s'\nlife = '1h'\nrequests = 9";
        let seconds = Duration::from_secs;
        let expected = ConnectionLimits {
            max: 7,
            idle: seconds(60),
            head: seconds(2),
            body: seconds(3),
            write: seconds(4),
            life: seconds(3_600),
            requests: 9,
        };
        assert_eq!(connection(text).unwrap(), expected);
        let text = "requests_per_second = 1\nburst = 2\nconnections = 3\nin_flight = 4\nwaiting = 5\n\
                    errors_per_second = 6\nerror_delay = '7s'";
        let expected = Limits {
            rate: Rate { per_second: 1, burst: 2 },
            connections: 3,
            in_flight: 4,
            waiting: 5,
            errors: Rate { per_second: 6, burst: 6 },
            error_delay: seconds(7),
        };
        let limits = |text: &str| toml::from_str::<LimitsTable>(text).unwrap().limits();
        assert_eq!(limits(text).unwrap(), Some(expected));
        assert_eq!(limits("enabled = false").unwrap(), None);
        assert!(limits("error_delay = '2d'").is_err());
    }

    /// promise: M4
    #[test]
    fn an_invalid_limit_of_machines_is_rejected() {
        for wrong in ["max = 0", "requests = 0", "head = '0s'", "life = '25h'", "idle = '30000d'"] {
            assert!(connection(wrong).is_err(), "{wrong}");
        }
    }
}
