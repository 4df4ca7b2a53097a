//! `[api.connection]` and `[arm.connection]`: limits of the operator API and of the Azure listener.

use std::time::Duration;

use anyhow::{Result, ensure};
use forewarn_server::ClientLimits;
use forewarn_types::Span;
use serde::Deserialize;

use super::limits::TIME_MAX;

/// Connection limits of a listener.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ClientTable {
    max: u32,
    per_address: u32,
    per_token: u32,
    handshake: Span,
    idle: Span,
    idle_authenticated: Span,
    head: Span,
    body: Span,
    body_authenticated: Span,
    write: Span,
}

impl Default for ClientTable {
    fn default() -> Self {
        let limits = ClientLimits::default();
        Self {
            max: limits.max,
            per_address: limits.per_address,
            per_token: limits.per_token,
            handshake: Span(limits.handshake),
            idle: Span(limits.idle),
            idle_authenticated: Span(limits.idle_authenticated),
            head: Span(limits.head),
            body: Span(limits.body),
            body_authenticated: Span(limits.body_authenticated),
            write: Span(limits.write),
        }
    }
}

impl ClientTable {
    /// The limits; `table` is the name of the TOML table.
    pub(super) fn limits(&self, table: &str) -> Result<ClientLimits> {
        let counts = [("max", self.max), ("per_address", self.per_address), ("per_token", self.per_token)];
        for (name, count) in counts {
            ensure!(count > 0, "limit of zero: {table}.{name} = 0\n  hint: at least 1");
        }
        let time = |name: &str, Span(time): Span| {
            ensure!(
                time > Duration::ZERO && time <= TIME_MAX,
                "invalid limit: {table}.{name}\n  hint: from 1s to 1d"
            );
            Ok(time)
        };
        Ok(ClientLimits {
            max: self.max,
            per_address: self.per_address,
            per_token: self.per_token,
            handshake: time("handshake", self.handshake)?,
            idle: time("idle", self.idle)?,
            idle_authenticated: time("idle_authenticated", self.idle_authenticated)?,
            head: time("head", self.head)?,
            body: time("body", self.body)?,
            body_authenticated: time("body_authenticated", self.body_authenticated)?,
            write: time("write", self.write)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(text: &str) -> Result<ClientLimits> {
        toml::from_str::<ClientTable>(text).unwrap().limits("api.connection")
    }

    #[test]
    fn omitted_limits_have_their_defaults() {
        assert_eq!(limits("").unwrap(), ClientLimits::default());
    }

    #[test]
    fn every_limit_of_clients_can_be_set() {
        let text = "max = 1\nper_address = 2\nper_token = 3\nhandshake = '3s'\nidle = '4s'\nidle_authenticated = '5s'\nhead = '6s'\n\
                    body = '7s'\nbody_authenticated = '8s'\nwrite = '9s'";
        let seconds = Duration::from_secs;
        let expected = ClientLimits {
            max: 1,
            per_address: 2,
            per_token: 3,
            handshake: seconds(3),
            idle: seconds(4),
            idle_authenticated: seconds(5),
            head: seconds(6),
            body: seconds(7),
            body_authenticated: seconds(8),
            write: seconds(9),
        };
        assert_eq!(limits(text).unwrap(), expected);
    }

    #[test]
    fn an_invalid_limit_is_rejected() {
        for wrong in
            ["max = 0", "per_address = 0", "per_token = 0", "head = '0s'", "body_authenticated = '25h'"]
        {
            let problem = limits(wrong).unwrap_err().to_string();
            assert!(problem.contains("api.connection.") && problem.contains("hint: "), "{wrong}: {problem}");
        }
    }
}
