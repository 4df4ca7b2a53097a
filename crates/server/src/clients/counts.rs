//! Connection counts of the listeners for operators and for clients of extensions.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::stage::Stage;

type ConnectionLabels = Vec<(&'static str, &'static str)>;

/// Counts of all listeners.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientCounts {
    accepted: Family<ConnectionLabels, Counter>,
    open: Family<ConnectionLabels, Gauge>,
    refused: Family<ConnectionLabels, Counter>,
    dropped: Family<ConnectionLabels, Counter>,
    ended: Family<ConnectionLabels, Counter>,
    failures: Family<ConnectionLabels, Counter>,
}

/// Counts of one listener.
#[derive(Clone, Debug)]
pub(crate) struct ListenerCounts {
    listener: &'static str,
    all: ClientCounts,
}

/// One open connection in the counts; it leaves them when it is dropped.
#[derive(Debug)]
pub(super) struct OpenCount {
    unauthenticated: Gauge,
    authenticated: Gauge,
    is_authenticated: bool,
}

impl ClientCounts {
    pub(crate) fn new(registry: &mut Registry) -> Self {
        let counts = Self::default();
        registry.register(
            "client_connections",
            "Accepted connections of operators and Azure clients",
            counts.accepted.clone(),
        );
        registry.register(
            "client_connections_open",
            "Open connections of operators and Azure clients",
            counts.open.clone(),
        );
        registry.register(
            "client_connections_refused",
            "Connections that were rejected with 503",
            counts.refused.clone(),
        );
        registry.register(
            "client_connections_dropped",
            "Connections that were closed in favour of others",
            counts.dropped.clone(),
        );
        registry.register(
            "client_connections_ended",
            "Connections that were closed because a client reached a limit",
            counts.ended.clone(),
        );
        registry.register(
            "accept_failures",
            "Connections that could not be accepted",
            counts.failures.clone(),
        );
        counts
    }

    pub(crate) fn of(&self, listener: &'static str) -> ListenerCounts {
        let counts = ListenerCounts { listener, all: self.clone() };
        // All labels exist from the start: a rate needs a first value.
        for reason in Reason::ALL {
            counts.refused_by(reason);
            counts.dropped_by(reason);
        }
        Limit::ALL.into_iter().for_each(|limit| drop(counts.ended_by(limit)));
        counts.all.accepted.get_or_create_owned(&vec![("listener", listener)]);
        counts.failures();
        counts
    }
}

impl ListenerCounts {
    pub(crate) const fn listener(&self) -> &'static str {
        self.listener
    }

    pub(crate) fn failed(&self) {
        self.failures().inc();
    }

    pub(super) fn accepted(&self) {
        self.all.accepted.get_or_create_owned(&vec![("listener", self.listener)]).inc();
    }

    pub(super) fn refused(&self, reason: Reason) {
        self.refused_by(reason).inc();
    }

    pub(super) fn dropped(&self, reason: Reason) {
        self.dropped_by(reason).inc();
    }

    pub(super) fn ended(&self, limit: Limit) {
        self.ended_by(limit).inc();
    }

    pub(super) fn open(&self) -> OpenCount {
        let gauge = |state| {
            self.all.open.get_or_create_owned(&vec![("listener", self.listener), ("standing", state)])
        };
        let (unauthenticated, authenticated) = (gauge("unauthenticated"), gauge("authenticated"));
        unauthenticated.inc();
        OpenCount { unauthenticated, authenticated, is_authenticated: false }
    }

    fn failures(&self) -> Counter {
        self.all.failures.get_or_create_owned(&vec![("listener", self.listener)])
    }

    fn refused_by(&self, reason: Reason) -> Counter {
        let labels = vec![("listener", self.listener), ("reason", reason.as_str())];
        self.all.refused.get_or_create_owned(&labels)
    }

    fn dropped_by(&self, reason: Reason) -> Counter {
        let labels = vec![("listener", self.listener), ("reason", reason.as_str())];
        self.all.dropped.get_or_create_owned(&labels)
    }

    fn ended_by(&self, limit: Limit) -> Counter {
        let labels = vec![("listener", self.listener), ("limit", limit.as_str())];
        self.all.ended.get_or_create_owned(&labels)
    }
}

impl OpenCount {
    pub(super) fn authenticate(&mut self) {
        if !self.is_authenticated {
            self.unauthenticated.dec();
            self.authenticated.inc();
            self.is_authenticated = true;
        }
    }
}

impl Drop for OpenCount {
    fn drop(&mut self) {
        if self.is_authenticated {
            self.authenticated.dec()
        } else {
            self.unauthenticated.dec()
        };
    }
}

/// Limit that a client has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    Handshake,
    Idle,
    Head,
    HeadBytes,
    Body,
    Write,
    Silence,
}

impl Limit {
    const ALL: [Self; 7] =
        [Self::Handshake, Self::Idle, Self::Head, Self::HeadBytes, Self::Body, Self::Write, Self::Silence];

    /// The limit of time that ends a stage.
    pub(super) const fn of(stage: Stage) -> Self {
        match stage {
            Stage::Handshake => Self::Handshake,
            Stage::New | Stage::Idle => Self::Idle,
            Stage::Head => Self::Head,
            Stage::Body => Self::Body,
            Stage::Response | Stage::Flush => Self::Write,
            Stage::Handling => Self::Silence,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::Idle => "idle",
            Self::Head => "head",
            Self::HeadBytes => "head_bytes",
            Self::Body => "body",
            Self::Write => "write",
            Self::Silence => "silence",
        }
    }
}

/// Reason why the server closes a connection to make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The listener has no room.
    Full,
    /// Its address has too many connections that have not authenticated.
    Address,
    /// Its user has too many connections.
    User,
    /// Its token has too many connections.
    Token,
    /// Too many TLS handshakes are under way.
    Handshakes,
    /// The process has no file descriptor left.
    Descriptors,
}

impl Reason {
    const ALL: [Self; 6] =
        [Self::Full, Self::Address, Self::User, Self::Token, Self::Handshakes, Self::Descriptors];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Address => "address",
            Self::User => "user",
            Self::Token => "token",
            Self::Handshakes => "handshakes",
            Self::Descriptors => "descriptors",
        }
    }
}
