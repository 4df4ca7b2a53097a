//! The state of the endpoint. Changes are logged once, not on every attempt.

use std::time::Instant;

use forewarn_cli_support::visible::{flat, one_line};
use forewarn_imds::Edition;
use forewarn_types::{Moment, show_duration};

use crate::clock;
use crate::status::EndpointView;

/// The state of the endpoint.
#[derive(Debug)]
pub(super) struct EndpointState {
    url: Option<String>,
    by: Option<String>,
    edition: Option<Edition>,
    server: Option<String>,
    /// True once a document was read.
    is_enabled: bool,
    /// True once the missing document was logged.
    logged_empty: bool,
    health: EndpointHealth,
    last_success: Option<Moment>,
}

#[derive(Debug)]
enum EndpointHealth {
    Unknown,
    Healthy,
    /// Failing, with the start and the last error.
    Failing {
        since: Instant,
        at: Moment,
        reason: String,
    },
}

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndpointFailure {
    /// No endpoint was found.
    NotFound,
    /// The endpoint does not return the machine name.
    NoName,
    NoResponse,
}

impl EndpointState {
    pub(super) fn new() -> Self {
        Self {
            url: None,
            by: None,
            edition: None,
            server: None,
            is_enabled: false,
            logged_empty: false,
            health: EndpointHealth::Unknown,
            last_success: None,
        }
    }

    pub(super) fn is_enabled(&self) -> bool {
        self.is_enabled
    }

    pub(super) fn is_healthy(&self) -> bool {
        matches!(self.health, EndpointHealth::Healthy)
    }

    pub(super) fn on_found(&mut self, url: String, by: String) {
        tracing::info!(endpoint = url, by, "endpoint found");
        (self.url, self.by) = (Some(url), Some(by));
        self.health = EndpointHealth::Unknown;
    }

    pub(super) fn on_name(&mut self, name: &str) {
        tracing::info!(name, "machine name resolved");
        self.health = EndpointHealth::Unknown;
    }

    /// Records the edition of the request and the name of the server.
    pub(super) fn set_server(&mut self, edition: Edition, server: Option<String>) {
        (self.edition, self.server) = (Some(edition), server);
    }

    /// Records a response, with or without a document.
    pub(super) fn on_response(&mut self, has_document: bool) {
        if let EndpointHealth::Failing { since, .. } = &self.health {
            let after = show_duration(since.elapsed());
            tracing::info!(after, "endpoint responds again");
        }
        self.health = EndpointHealth::Healthy;
        self.last_success = Some(Moment(clock::wall()));
        if has_document && !std::mem::replace(&mut self.is_enabled, true) {
            let edition = self.edition.map(Edition::as_str).unwrap_or_default();
            let server = one_line(self.server.as_deref().unwrap_or_default());
            tracing::info!(edition, server, "Scheduled Events enabled");
        }
        if !self.is_enabled && !std::mem::replace(&mut self.logged_empty, true) {
            tracing::info!("no document yet: Scheduled Events are being enabled, which may take two minutes");
        }
    }

    pub(super) fn on_failure(&mut self, failure: EndpointFailure, reason: &str) {
        let reason = flat(reason);
        match &mut self.health {
            EndpointHealth::Failing { reason: last, .. } => *last = reason,
            EndpointHealth::Unknown | EndpointHealth::Healthy => {
                match failure {
                    EndpointFailure::NotFound => tracing::warn!(reason, "no endpoint found, retrying"),
                    EndpointFailure::NoName => {
                        tracing::warn!(reason, "endpoint returns no machine name, retrying");
                    }
                    EndpointFailure::NoResponse => {
                        tracing::warn!(reason, "endpoint does not respond, retrying");
                    }
                }
                let at = Moment(clock::wall());
                self.health = EndpointHealth::Failing { since: Instant::now(), at, reason };
            }
        }
    }

    pub(super) fn view(&self) -> EndpointView {
        let (failing_since, error) = match &self.health {
            EndpointHealth::Unknown | EndpointHealth::Healthy => (None, None),
            EndpointHealth::Failing { at, reason, .. } => (Some(*at), Some(reason.clone())),
        };
        EndpointView {
            url: self.url.clone(),
            found: self.by.clone(),
            server: self.server.clone(),
            edition: self.edition.map(|edition| edition.as_str().to_owned()),
            enabled: self.is_enabled,
            reachable: self.is_healthy(),
            last_response: self.last_success,
            failing_since,
            error,
        }
    }
}
