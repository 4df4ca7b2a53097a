//! The endpoint: state that all listeners and connections share, and the checks of a request in their order.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use forewarn_imds::RequestError;
use forewarn_types::ClusterId;
use prometheus_client::metrics::gauge::Gauge;

use crate::callers::{Caller, CallerId, CountGuard, FaultTable, LimitedCount, LoadGuard, LoadKind};
use crate::control_plane::ControlPlane;
use crate::counts::{EndpointCounts, Path};
use crate::limits::Limits;
use crate::rate::{Limiter, Rate};
use crate::request::{self, Body, ConnectionMode, Head, Method};
use crate::request_cache::{CachedRequest, RequestCache};
use crate::response::BodyMode;
use crate::response_rules::ResponseRules;
use crate::route::{Action, route};
use crate::settings::{Identity, NetworkIdentity, Settings};
use crate::throttle::{Throttle, ThrottleByName};

/// The metadata endpoint: state that its listeners and connections share.
#[derive(Debug)]
pub struct Endpoint<C> {
    pub(crate) control: C,
    pub(crate) settings: Settings,
    pub(crate) limiter: Option<Arc<Limiter>>,
    errors: Option<Arc<Limiter>>,
    /// Faults to inject. None on a server that injects none.
    pub(crate) faults: Option<Arc<FaultTable>>,
    pub(crate) counts: Arc<EndpointCounts>,
    open_connections: Arc<LimitedCount>,
    unknown_callers: Arc<LimitedCount>,
    pub(crate) accept_failures: Arc<Throttle>,
    /// By cluster: each listener logs its own.
    unknown_clusters: Arc<ThrottleByName>,
    /// The same endpoint with newer settings, for new connections.
    successor: ArcSwapOption<Self>,
}

/// Content at the start of a buffer.
pub(crate) enum ParseOutcome {
    Partial,
    /// Not a request; the bytes after it cannot be interpreted.
    Malformed {
        problem: RequestError,
        rules: ResponseRules,
    },
    Request(ParsedRequest),
}

/// A request that was parsed up to its body.
pub(crate) struct ParsedRequest {
    pub action: Result<(Arc<Caller>, Action), RequestError>,
    pub rules: ResponseRules,
    pub head_bytes: usize,
}

/// Limits that a connection occupies for as long as it is open.
pub(crate) struct ConnectionPermit {
    open: Gauge,
    _guard: CountGuard,
    _share: Option<LoadGuard>,
    _unknown_guard: Option<CountGuard>,
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.open.dec();
    }
}

impl<C: ControlPlane> Endpoint<C> {
    /// An endpoint for the machines of a control plane.
    #[must_use]
    pub fn new(control: C, settings: Settings, counts: Arc<EndpointCounts>) -> Arc<Self> {
        let limiter = settings.limits.map(|limits| Arc::new(Limiter::new(limits.rate)));
        let errors = settings.limits.map(|limits| Arc::new(Limiter::new(limits.errors)));
        let (open_connections, unknown_callers, successor) = Default::default();
        let (accept_failures, unknown_clusters) = Default::default();
        let faults = control.faults();
        Arc::new(Self {
            control,
            settings,
            limiter,
            errors,
            faults,
            counts,
            open_connections,
            unknown_callers,
            accept_failures,
            unknown_clusters,
            successor,
        })
    }

    /// Applies other settings to new connections. Open connections keep theirs, which costs a poll nothing. Rate
    /// limiters keep their state unless their rate changes.
    pub fn adjust(self: &Arc<Self>, settings: Settings) {
        let (is, will_be) = (self.current(), settings.limits);
        let was = |limit: fn(Limits) -> Rate| is.settings.limits.map(limit) == will_be.map(limit);
        let limiter = |rate: Rate| Arc::new(Limiter::new(rate));
        let rate = if was(|limits| limits.rate) {
            is.limiter.clone()
        } else {
            will_be.map(|limits| limiter(limits.rate))
        };
        let errors = if was(|limits| limits.errors) {
            is.errors.clone()
        } else {
            will_be.map(|limits| limiter(limits.errors))
        };
        self.successor.store(Some(Arc::new(Self {
            control: self.control.clone(),
            settings,
            limiter: rate,
            errors,
            faults: self.faults.clone(),
            counts: Arc::clone(&self.counts),
            open_connections: Arc::clone(&self.open_connections),
            unknown_callers: Arc::clone(&self.unknown_callers),
            accept_failures: Arc::clone(&self.accept_failures),
            unknown_clusters: Arc::clone(&self.unknown_clusters),
            successor: ArcSwapOption::empty(),
        })));
    }

    /// The endpoint with the newest settings.
    pub(crate) fn current(self: &Arc<Self>) -> Arc<Self> {
        self.successor.load_full().unwrap_or_else(|| Arc::clone(self))
    }

    /// Admits one more connection, if the endpoint and the machine are within their limits.
    pub(crate) fn admit_connection(
        &self,
        identity: &Identity,
        peer: Option<IpAddr>,
    ) -> Option<ConnectionPermit> {
        let counts = &self.counts;
        counts.connections_taken.inc();
        let Some(guard) = self.open_connections.take(self.settings.connections.max) else {
            counts.refused_full.inc();
            return None;
        };
        let (mut share, mut unknown_guard) = (None, None);
        if let Some(limits) = &self.settings.limits {
            let is_full = match self.network_identity(identity, peer) {
                NetworkIdentity::Caller(caller) => {
                    share = LoadGuard::take(&caller, LoadKind::Connection, limits.connections);
                    share.is_none()
                }
                NetworkIdentity::Unknown => {
                    unknown_guard = self.unknown_callers.take(limits.connections);
                    unknown_guard.is_none()
                }
                NetworkIdentity::Undetermined => false,
            };
            if is_full {
                counts.refused_machine.inc();
                return None;
            }
        }
        counts.connections_open.inc();
        let open = counts.connections_open.clone();
        Some(ConnectionPermit { open, _guard: guard, _share: share, _unknown_guard: unknown_guard })
    }

    /// Delay of a rejection for a machine that has had too many of them.
    pub(crate) fn error_delay(&self, caller: CallerId) -> Option<Duration> {
        let (limits, errors) = (self.settings.limits?, self.errors.as_ref()?);
        if errors.take(caller, Instant::now()) {
            return None;
        }
        self.counts.delayed.inc();
        Some(limits.error_delay)
    }

    /// Identifies the caller by listener and address.
    fn network_identity(&self, identity: &Identity, peer: Option<IpAddr>) -> NetworkIdentity {
        let caller = match identity {
            Identity::Address { cluster } => match self.control.cluster_named(cluster.as_str()) {
                Some(id) => peer.and_then(|peer| self.control.caller_at(id, peer)),
                None => {
                    if let Some(unlogged) = self.unknown_clusters.pass(cluster) {
                        tracing::warn!(%cluster, unlogged, "machine rejected: its listener names an unknown cluster");
                    }
                    None
                }
            },
            Identity::Machine(name) => self.control.caller_named(name),
            Identity::Prefix { .. } => return NetworkIdentity::Undetermined,
            Identity::AddressOrPrefix { .. } => {
                let found = peer.and_then(|peer| self.control.caller_at(ClusterId::DEFAULT, peer));
                let is_here = peer.is_none_or(|peer| peer.to_canonical().is_loopback());
                if found.is_none() && (is_here || !self.control.has_addresses(ClusterId::DEFAULT)) {
                    return NetworkIdentity::Undetermined;
                }
                found
            }
        };
        caller.map_or(NetworkIdentity::Unknown, NetworkIdentity::Caller)
    }

    /// Parses the start of a buffer, with all checks in their order.
    pub(crate) fn parse(
        &self,
        input: &[u8],
        identity: &Identity,
        peer: Option<IpAddr>,
        cache: &mut RequestCache<Arc<Caller>>,
    ) -> ParseOutcome {
        let generation = self.control.generation();
        if let Some(CachedRequest { caller, action, rules, .. }) = cache.get(input, generation) {
            let action = Ok((Arc::clone(caller), action.clone()));
            return ParseOutcome::Request(ParsedRequest { action, rules: *rules, head_bytes: input.len() });
        }
        let network_identity = self.network_identity(identity, peer);
        match request::read(input, &self.settings.hosts) {
            Ok(None) => ParseOutcome::Partial,
            Ok(Some(head)) => {
                let parsed_request = self.parsed_request(&head, network_identity, identity);
                if let Ok((caller, action)) = &parsed_request.action {
                    cache.store(&input[..head.bytes], generation, caller, action, parsed_request.rules);
                }
                ParseOutcome::Request(parsed_request)
            }
            Err(problem) => {
                let is_head = input.trim_ascii_start().starts_with(b"HEAD ");
                let body_mode = if is_head { BodyMode::HeadOnly } else { BodyMode::Whole };
                let (problem, caller) = match network_identity {
                    NetworkIdentity::Unknown => (RequestError::UnknownCaller, Some(CallerId::UNKNOWN)),
                    NetworkIdentity::Caller(caller) => (problem, Some(caller.id())),
                    NetworkIdentity::Undetermined => (problem, None),
                };
                let rules = ResponseRules {
                    connection_mode: ConnectionMode::Close,
                    body_mode,
                    body: Body::NONE,
                    expects_continue: false,
                    path: Path::Other,
                    caller,
                };
                ParseOutcome::Malformed { problem, rules }
            }
        }
    }

    fn parsed_request(
        &self,
        head: &Head<'_>,
        network_identity: NetworkIdentity,
        identity: &Identity,
    ) -> ParsedRequest {
        let path = head.target.path.as_ref();
        let caller = match network_identity {
            NetworkIdentity::Caller(caller) => Some((caller, path)),
            NetworkIdentity::Unknown => None,
            NetworkIdentity::Undetermined => identity
                .name_in_path(path)
                .and_then(|(name, rest)| Some((self.control.caller_named(name)?, rest))),
        };
        let id = caller.as_ref().map_or(CallerId::UNKNOWN, |(caller, _)| caller.id());
        let (path, action) = match caller {
            Some((caller, path)) => {
                let has = |version, path: &str| {
                    self.control.instance(&caller).is_some_and(|instance| instance.has(version, path))
                };
                let (path, action) = route(head, path, &self.settings, has);
                (path, action.map(|action| (caller, action)))
            }
            None => (Path::Other, Err(RequestError::UnknownCaller)),
        };
        let rules = ResponseRules {
            connection_mode: head.connection_mode,
            body_mode: if head.method == Method::Head { BodyMode::HeadOnly } else { BodyMode::Whole },
            body: head.body,
            expects_continue: head.expects_continue && head.body != Body::NONE,
            path,
            caller: Some(id),
        };
        ParsedRequest { action, rules, head_bytes: head.bytes }
    }
}

#[cfg(test)]
mod tests;
