//! The front: the state that all listeners and connections share, and the checks of a request in their order.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use forewarn_imds::Problem;
use forewarn_types::MachineId;
use prometheus_client::metrics::gauge::Gauge;

use crate::answer::Shown;
use crate::control_plane::ControlPlane;
use crate::counts::{EndpointCounts, Path};
use crate::directory::Caller;
use crate::limits::Limits;
use crate::load::{Count, Kind, Place};
use crate::memory::{Meaning, Memory};
use crate::rate::{Limiter, Rate};
use crate::request::{self, After, Body, Head, Method};
use crate::route::{Asked, route};
use crate::settings::{Identity, Recognised, Settings};
use crate::share::Share;
use crate::terms::Terms;
use crate::throttle::Throttle;

/// Whom nobody knows: all of them together have what one machine may have. There are far fewer machines than numbers.
const STRANGERS: MachineId = MachineId(u32::MAX);

/// The metadata endpoint: what all of its listeners and connections share.
#[derive(Debug)]
pub struct Front<C> {
    pub(crate) control: C,
    pub(crate) settings: Settings,
    pub(crate) limiter: Option<Arc<Limiter>>,
    errors: Option<Arc<Limiter>>,
    pub(crate) counts: Arc<EndpointCounts>,
    taken: Arc<Count>,
    taken_by_strangers: Arc<Count>,
    pub(crate) accept_failures: Arc<Throttle>,
    /// The same front with other settings: who connects from now on is answered by it.
    successor: ArcSwapOption<Self>,
}

/// What a buffer has at its start.
pub(crate) enum Reading {
    /// A part of a head.
    Partial,
    /// Nothing that could be a request; what comes after it cannot be known.
    Broken { problem: Problem, terms: Terms },
    /// A request.
    Request(Ticket),
}

/// A request that was understood, up to its body.
pub(crate) struct Ticket {
    pub asked: Result<(Arc<Caller>, Asked), Problem>,
    pub terms: Terms,
    pub head_bytes: usize,
}

/// What a connection takes up for as long as it is open.
pub(crate) struct Taken {
    open: Gauge,
    _place: Place,
    _share: Option<Share>,
    _share_of_strangers: Option<Place>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.open.dec();
    }
}

impl<C: ControlPlane> Front<C> {
    /// A front for the machines of a control plane.
    #[must_use]
    pub fn new(control: C, settings: Settings, counts: Arc<EndpointCounts>) -> Arc<Self> {
        let limiter = settings.limits.map(|limits| Arc::new(Limiter::new(limits.rate)));
        let errors = settings.limits.map(|limits| Arc::new(Limiter::new(limits.errors)));
        let (taken, taken_by_strangers, accept_failures, successor) = Default::default();
        Arc::new(Self {
            control,
            settings,
            limiter,
            errors,
            counts,
            taken,
            taken_by_strangers,
            accept_failures,
            successor,
        })
    }

    /// Other settings, for whoever connects from now on. Connections that are open keep theirs to their end: a poll pays
    /// nothing for it. What a machine has used up it has used up, unless its rate is another.
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
            counts: Arc::clone(&self.counts),
            taken: Arc::clone(&self.taken),
            taken_by_strangers: Arc::clone(&self.taken_by_strangers),
            accept_failures: Arc::clone(&self.accept_failures),
            successor: ArcSwapOption::empty(),
        })));
    }

    /// The front as it was last adjusted.
    pub(crate) fn current(self: &Arc<Self>) -> Arc<Self> {
        self.successor.load_full().unwrap_or_else(|| Arc::clone(self))
    }

    /// Room for one more connection, if the front and its machine have any left.
    pub(crate) fn place(&self, identity: &Identity, peer: Option<IpAddr>) -> Option<Taken> {
        let counts = &self.counts;
        counts.connections_taken.inc();
        let Some(place) = self.taken.take(self.settings.connections.max) else {
            counts.refused_full.inc();
            return None;
        };
        let (mut share, mut share_of_strangers) = (None, None);
        if let Some(limits) = &self.settings.limits {
            let is_full = match identity.by_network(self.control.directory(), peer) {
                Recognised::Caller(caller) => {
                    share = Share::take(&caller, Kind::Connection, limits.connections);
                    share.is_none()
                }
                Recognised::Stranger => {
                    share_of_strangers = self.taken_by_strangers.take(limits.connections);
                    share_of_strangers.is_none()
                }
                Recognised::NotYet => false,
            };
            if is_full {
                counts.refused_machine.inc();
                return None;
            }
        }
        counts.connections_open.inc();
        let open = counts.connections_open.clone();
        Some(Taken { open, _place: place, _share: share, _share_of_strangers: share_of_strangers })
    }

    /// How late a machine gets a refusal, if it has had too many of them.
    pub(crate) fn error_delay(&self, machine: MachineId) -> Option<Duration> {
        let (limits, errors) = (self.settings.limits?, self.errors.as_ref()?);
        if errors.take(machine, Instant::now()) {
            return None;
        }
        self.counts.delayed.inc();
        Some(limits.error_delay)
    }

    /// Understands what is at the start of a buffer, checks in their order.
    pub(crate) fn understand(
        &self,
        input: &[u8],
        identity: &Identity,
        peer: Option<IpAddr>,
        memory: &mut Memory<Arc<Caller>>,
    ) -> Reading {
        let generation = self.control.directory().generation();
        if let Some(Meaning { caller, asked, terms, .. }) = memory.recall(input, generation) {
            let asked = Ok((Arc::clone(caller), asked.clone()));
            return Reading::Request(Ticket { asked, terms: *terms, head_bytes: input.len() });
        }
        let recognised = identity.by_network(self.control.directory(), peer);
        match request::read(input, &self.settings.host_names) {
            Ok(None) => Reading::Partial,
            Ok(Some(head)) => {
                let ticket = self.ticket(&head, recognised, identity);
                if let Ok((caller, asked)) = &ticket.asked {
                    memory.keep(&input[..head.bytes], generation, caller, asked, ticket.terms);
                }
                Reading::Request(ticket)
            }
            Err(problem) => {
                let is_head = input.trim_ascii_start().starts_with(b"HEAD ");
                let shown = if is_head { Shown::HeadOnly } else { Shown::Whole };
                let (problem, machine) = match recognised {
                    Recognised::Stranger => (Problem::UnknownCaller, Some(STRANGERS)),
                    Recognised::Caller(caller) => (problem, Some(caller.machine)),
                    Recognised::NotYet => (problem, None),
                };
                let terms = Terms {
                    after: After::Close,
                    shown,
                    body: Body::NONE,
                    expects_continue: false,
                    path: Path::Other,
                    machine,
                };
                Reading::Broken { problem, terms }
            }
        }
    }

    fn ticket(&self, head: &Head<'_>, recognised: Recognised, identity: &Identity) -> Ticket {
        let path = head.target.path.as_ref();
        let caller = match recognised {
            Recognised::Caller(caller) => Some((caller, path)),
            Recognised::Stranger => None,
            Recognised::NotYet => identity.by_path(self.control.directory(), path),
        };
        let machine = caller.as_ref().map_or(STRANGERS, |(caller, _)| caller.machine);
        let (path, asked) = match caller {
            Some((caller, path)) => {
                let has = |version, path: &str| caller.instance.has(version, path);
                let (path, asked) = route(head, path, &self.settings, has);
                (path, asked.map(|asked| (caller, asked)))
            }
            None => (Path::Other, Err(Problem::UnknownCaller)),
        };
        let terms = Terms {
            after: head.after,
            shown: if head.method == Method::Head { Shown::HeadOnly } else { Shown::Whole },
            body: head.body,
            expects_continue: head.expects_continue && head.body != Body::NONE,
            path,
            machine: Some(machine),
        };
        Ticket { asked, terms, head_bytes: head.bytes }
    }
}
