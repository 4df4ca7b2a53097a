//! How it goes with the endpoint, told once for each change and not for each try.

use std::time::Instant;

use forewarn_cli_support::visible::{flat, one_line};
use forewarn_imds::Edition;
use forewarn_types::{Moment, show_duration};

use crate::clock;
use crate::status::EndpointView;

/// How it goes with the endpoint.
#[derive(Debug)]
pub(super) struct EndpointState {
    url: Option<String>,
    by: Option<String>,
    edition: Option<Edition>,
    server: Option<String>,
    /// Whether a document was read in this life.
    is_enabled: bool,
    /// Whether that there is no document yet was told.
    told_empty: bool,
    standing: Standing,
    last: Option<Moment>,
}

#[derive(Debug)]
enum Standing {
    /// Nothing is known yet.
    New,
    /// It answers.
    Well,
    /// It does not, for that long, and this is why.
    Failing { since: Instant, at: Moment, why: String },
}

/// What goes wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It is nowhere.
    Nowhere,
    /// It does not say what this machine is called.
    Nameless,
    /// It does not tell of events.
    Silent,
}

impl EndpointState {
    pub(super) fn new() -> Self {
        Self {
            url: None,
            by: None,
            edition: None,
            server: None,
            is_enabled: false,
            told_empty: false,
            standing: Standing::New,
            last: None,
        }
    }

    pub(super) fn is_enabled(&self) -> bool {
        self.is_enabled
    }

    pub(super) fn is_well(&self) -> bool {
        matches!(self.standing, Standing::Well)
    }

    pub(super) fn found(&mut self, url: String, by: String) {
        tracing::info!(endpoint = url, by, "the endpoint is found");
        (self.url, self.by) = (Some(url), Some(by));
        self.standing = Standing::New;
    }

    pub(super) fn named(&mut self, name: &str) {
        tracing::info!(name, "this machine has a name");
        self.standing = Standing::New;
    }

    /// What it was asked with, and what it calls itself.
    pub(super) fn asked(&mut self, edition: Edition, server: Option<String>) {
        (self.edition, self.server) = (Some(edition), server);
    }

    /// It has answered; with a document, or with nothing new.
    pub(super) fn answered(&mut self, has_document: bool) {
        if let Standing::Failing { since, .. } = &self.standing {
            let after = show_duration(since.elapsed());
            tracing::info!(after, "the endpoint answers again");
        }
        self.standing = Standing::Well;
        self.last = Some(Moment(clock::wall()));
        if has_document && !std::mem::replace(&mut self.is_enabled, true) {
            let edition = self.edition.map(Edition::as_str).unwrap_or_default();
            let server = one_line(self.server.as_deref().unwrap_or_default());
            tracing::info!(edition, server, "Scheduled Events are enabled");
        }
        if !self.is_enabled && !std::mem::replace(&mut self.told_empty, true) {
            tracing::info!(
                "there is no document yet: Scheduled Events are being enabled, which may take two minutes"
            );
        }
    }

    /// It has not answered.
    pub(super) fn failed(&mut self, trouble: Trouble, why: &str) {
        let why = flat(why);
        match &mut self.standing {
            Standing::Failing { why: last, .. } => *last = why,
            Standing::New | Standing::Well => {
                match trouble {
                    Trouble::Nowhere => tracing::warn!(why, "no endpoint is found: it is searched for again"),
                    Trouble::Nameless => {
                        tracing::warn!(
                            why,
                            "the endpoint does not say what this machine is called: it is asked again"
                        );
                    }
                    Trouble::Silent => tracing::warn!(why, "the endpoint does not answer: it is asked again"),
                }
                let at = Moment(clock::wall());
                self.standing = Standing::Failing { since: Instant::now(), at, why };
            }
        }
    }

    pub(super) fn view(&self) -> EndpointView {
        let (failing_since, error) = match &self.standing {
            Standing::New | Standing::Well => (None, None),
            Standing::Failing { at, why, .. } => (Some(*at), Some(why.clone())),
        };
        EndpointView {
            url: self.url.clone(),
            found: self.by.clone(),
            server: self.server.clone(),
            edition: self.edition.map(|edition| edition.as_str().to_owned()),
            enabled: self.is_enabled,
            reachable: self.is_well(),
            answered: self.last,
            failing_since,
            error,
        }
    }
}
