//! The whole of a server: an engine, the metadata endpoint, the operator API and extensions, started and stopped together.
//!
//! ```text
//!   control thread     driver (owns the state), operator API, extensions, signals
//!   metadata-0 … n     one thread per core, each with its own sockets
//! ```

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use forewarn_control::{DriverKind, Fleet, ServerView, Unmentioned, difference};
use forewarn_lifecycle::Seed;
use forewarn_metadata::{Door, Front, Identity, Listener, OpenError, Settings, Threads};
use tokio::sync::watch;

use crate::api_door::{ApiDoor, Opened, first_token};
use crate::bound_extension::{BoundExtension, OpenExtension};
use crate::clients::{ClientCounts, ClientLimits, LimitsCell, ListenerContext};
use crate::clock::{Clock, ClockPlan, Speed};
use crate::control_handle::ControlHandle;
use crate::descriptors::{Descriptors, OpenConnections};
use crate::extension::{ExtensionMount, ExtensionSettings, HttpExtension};
use crate::hypervisor::Hypervisor;
use crate::operator::{self, HostNames};
use crate::refused_entry::refused_place;
use crate::snapshot::State;
use crate::start_error::StartError;
use crate::telemetry::Telemetry;
use crate::tls::{Read, Source, Tls, TlsError};
use crate::webhooks::{Office, Post, WebhookSettings};

/// What a server is to be.
#[derive(Debug)]
pub struct Plan {
    /// `dev` or `serve`: what it calls itself.
    pub mode: &'static str,
    /// Where everything is kept; `None`: in memory.
    pub data_dir: Option<PathBuf>,
    /// What event ids are made of, where nothing is kept yet.
    pub seed: Seed,
    /// The clock.
    pub clock: ClockPlan,
    /// Who takes care of machines.
    pub hands: Hypervisor,
    /// What there is at first, where nothing is kept yet.
    pub fleet: Fleet,
    /// How the metadata endpoint behaves.
    pub settings: Settings,
    /// Where machines come in, and how it is known who they are.
    pub doors: Vec<(Door, Identity)>,
    /// Threads that answer machines.
    pub threads: NonZeroUsize,
    /// Where operators come in: at least one door, of which the first is the one to name.
    pub api: Vec<ApiDoor>,
    /// Names with dots by which operators may call the API.
    pub api_host_names: Vec<String>,
    /// Limits of the listeners of operators.
    pub api_limits: ClientLimits,
    /// Limits of the listeners of extensions.
    pub extension_limits: ClientLimits,
    /// File descriptors that the process may have.
    pub descriptors: Descriptors,
    /// HTTP APIs besides the operator API.
    pub extensions: Vec<HttpExtension>,
    /// How long entries of the trail are kept, where anything is.
    pub trail_keep: Duration,
    /// How webhooks are told.
    pub webhooks: WebhookSettings,
}

/// What may change while a server runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adjustable {
    /// How the metadata endpoint behaves, for whoever connects from now on.
    pub settings: Settings,
    /// Names with dots by which operators may call the API.
    pub api_host_names: Vec<String>,
    /// Limits of the listeners of operators, for connections that are made from now on.
    pub api_limits: ClientLimits,
    /// Limits of the listeners of extensions, for connections that are made from now on.
    pub extension_limits: ClientLimits,
    /// Where certificates come from; they are read again, if the API has any.
    pub certificates: Option<Source>,
    /// Settings of the extensions, in the order of the plan.
    pub extensions: Vec<ExtensionSettings>,
}

/// A server that runs.
#[derive(Debug)]
pub struct Service {
    engine: ControlHandle,
    front: Arc<Front<ControlHandle>>,
    host_names: HostNames,
    tls: Option<Arc<Tls>>,
    extensions: Vec<OpenExtension>,
    budget: Budget,
    threads: Threads,
    api: Vec<Opened>,
    stop: watch::Sender<bool>,
    office: Office,
    metadata_url: Option<String>,
    first_token: Option<String>,
}

/// How long what is under way may take when the server stops.
const STOP_MAX: Duration = Duration::from_secs(2);

impl Plan {
    /// Number of listeners of operators and extensions.
    #[must_use]
    pub fn listeners(&self) -> u32 {
        let extensions = self.extensions.iter().filter(|extension| extension.listen.is_some()).count();
        u32::try_from(self.api.len() + extensions).unwrap_or(u32::MAX)
    }
}

impl Service {
    /// Starts everything. When this returns, both sides listen.
    ///
    /// # Errors
    /// When the fleet is refused, or an address cannot be listened on.
    pub async fn start(plan: Plan) -> Result<Self, StartError> {
        let driver = match &plan.hands {
            Hypervisor::Simulated => DriverKind::Pretend,
            Hypervisor::Program(_) => DriverKind::Program,
        };
        let budget = Budget::new(&plan);
        let engine = match &plan.data_dir {
            Some(place) => {
                ControlHandle::open_keeping(place, plan.seed, plan.clock, plan.hands, plan.trail_keep)?
            }
            None => ControlHandle::in_memory(plan.seed, Clock::new_for(plan.clock), plan.hands),
        };
        admit_fleet_if_empty(&engine, &plan.fleet).await?;
        let telemetry = Telemetry::new();
        let (prefix, default_machine) = prefix(&plan.doors);
        let doors: Vec<_> = open(plan.doors, plan.threads)?;
        let addresses: Vec<_> = doors.iter().filter_map(|door| door.first()?.address()).collect();
        let settings = budget.set(plan.settings, plan.api_limits, plan.extension_limits);
        let front = Front::new(engine.clone(), settings, Arc::clone(telemetry.metadata()));
        let threads = Threads::start(&front, plan.threads, doors).map_err(StartError::Threads)?;
        engine.documents_are_readable().await;
        let (stop, stopped) = watch::channel(false);
        let extensions = plan.extensions.into_iter().map(BoundExtension::bind);
        let extensions = extensions.collect::<Result<Vec<_>, _>>()?;
        let about = ServerView {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            mode: plan.mode.to_owned(),
            metadata: addresses.iter().map(|address| format!("http://{address}")).collect(),
            prefix,
            default_machine,
            arm: extensions.iter().find(|one| one.name() == "arm").and_then(BoundExtension::url),
            driver,
        };
        let metadata_url = about.metadata.first().cloned();
        let first_token = first_token(&engine, &plan.api).await?;
        let host_names = HostNames::new(plan.api_host_names);
        let post = Post::new(engine.clone(), &plan.webhooks, &telemetry);
        let office = Office::open(Arc::clone(&post), stop.subscribe());
        let counts = telemetry.register(ClientCounts::new);
        let context = |limits: &LimitsCell| ListenerContext {
            engine: engine.clone(),
            counts: counts.clone(),
            limits: Arc::clone(limits),
            stop: stop.subscribe(),
        };
        let shared = operator::api(engine.clone(), about, telemetry, post, plan.data_dir, stopped);
        let operators = Operators { shared, host_names, extensions: &extensions };
        let (api, tls) = operators.let_in(&engine, &plan.api, &context(&budget.api))?;
        let host_names = operators.host_names;
        let open = |one: BoundExtension| one.open(&engine, context(&budget.extensions));
        let extensions = extensions.into_iter().map(open).collect();
        Ok(Self {
            engine,
            front,
            host_names,
            tls,
            extensions,
            budget,
            threads,
            api,
            stop,
            office,
            metadata_url,
            first_token,
        })
    }

    /// Changes what may change while it runs: all of it, or nothing.
    ///
    /// # Errors
    /// When certificates cannot be used.
    pub fn adjust(&self, to: Adjustable) -> Result<(), TlsError> {
        let (names, sources): (Vec<_>, Vec<_>) =
            to.extensions.into_iter().map(|one| (one.host_names, one.certificates)).unzip();
        let own = self.extensions.iter().map(|extension| &extension.tls).zip(sources);
        let pairs = std::iter::once((&self.tls, to.certificates)).chain(own);
        let pairs = pairs.filter_map(|(tls, source)| tls.as_ref().zip(source));
        let read = pairs.map(|(tls, source)| tls.read(source)).collect::<Result<Vec<_>, _>>()?;
        read.into_iter().for_each(Read::show);
        self.host_names.set(to.api_host_names);
        self.extensions.iter().zip(names).for_each(|(extension, names)| extension.host_names.set(names));
        self.front.adjust(self.budget.set(to.settings, to.api_limits, to.extension_limits));
        Ok(())
    }

    /// The engine.
    #[must_use]
    pub fn engine(&self) -> &ControlHandle {
        &self.engine
    }

    /// Where machines come in first: `http://ADDRESS`.
    #[must_use]
    pub fn metadata_url(&self) -> Option<&str> {
        self.metadata_url.as_deref()
    }

    /// Where operators come in first: `http://ADDRESS`, `https://ADDRESS` or `unix:PATH`.
    #[must_use]
    pub fn api_url(&self) -> &str {
        self.api_urls().next().unwrap_or_default()
    }

    /// Everywhere that operators come in.
    pub fn api_urls(&self) -> impl Iterator<Item = &str> {
        self.api.iter().map(|door| door.url.as_str())
    }

    /// URL of the own listener of an extension: `https://ADDRESS`.
    #[must_use]
    pub fn extension_url(&self, name: &str) -> Option<&str> {
        let extension = self.extensions.iter().find(|extension| extension.name == name)?;
        extension.opened.as_ref().map(|listener| listener.url.as_str())
    }

    /// The first token of operators, if it has just been made: nobody will see it again.
    #[must_use]
    pub fn first_token(&self) -> Option<&str> {
        self.first_token.as_deref()
    }

    /// Takes no more requests, answers those that are under way, and ends; within a few seconds.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        let threads = self.threads;
        let stopping = tokio::task::spawn_blocking(move || threads.stop());
        let deadline = tokio::time::Instant::now() + STOP_MAX;
        let extensions = self.extensions.into_iter().filter_map(|extension| extension.opened);
        for mut door in self.api.into_iter().chain(extensions) {
            if tokio::time::timeout_at(deadline, &mut door.serving).await.is_err() {
                // Somebody watches, and would for ever.
                door.serving.abort();
            }
        }
        if stopping.await.is_err() {
            tracing::error!("the threads of the metadata endpoint could not be stopped");
        }
        self.office.close().await;
        self.engine.stop().await;
    }
}

/// File descriptors, and the listeners that share them.
#[derive(Debug)]
struct Budget {
    descriptors: Descriptors,
    listeners: u32,
    threads: NonZeroUsize,
    api: LimitsCell,
    extensions: LimitsCell,
}

impl Budget {
    fn new(plan: &Plan) -> Self {
        let listeners = plan.listeners();
        let cell = || Arc::new(ArcSwap::from_pointee(ClientLimits::default()));
        Self {
            descriptors: plan.descriptors,
            listeners,
            threads: plan.threads,
            api: cell(),
            extensions: cell(),
        }
    }

    /// Sets the limits of the listeners of operators and extensions, and returns the settings of the metadata endpoint. All of them
    /// are lowered to the available file descriptors.
    fn set(&self, mut settings: Settings, mut api: ClientLimits, mut extensions: ClientLimits) -> Settings {
        let fitted = self.descriptors.fit(OpenConnections {
            machines: settings.connections.max,
            per_listener: api.max.max(extensions.max),
            listeners: self.listeners,
            threads: self.threads,
        });
        settings.connections.max = fitted.machines;
        for (limits, cell) in [(&mut api, &self.api), (&mut extensions, &self.extensions)] {
            limits.max = limits.max.min(fitted.per_listener);
            cell.store(Arc::new(*limits));
        }
        settings
    }
}

/// What is behind every door of the operators'.
struct Operators<'a> {
    shared: operator::Api,
    host_names: HostNames,
    extensions: &'a [BoundExtension],
}

impl Operators<'_> {
    /// Opens their doors; gives the certificates that the first of those with TLS shows.
    fn let_in(
        &self,
        engine: &ControlHandle,
        doors: &[ApiDoor],
        context: &ListenerContext,
    ) -> Result<(Vec<Opened>, Option<Arc<Tls>>), StartError> {
        let (mut opened, mut tls) = (Vec::new(), None);
        for door in doors {
            let (access, host_names) = (door.access(), &self.host_names);
            let router = operator::router(self.shared.clone(), access, host_names.clone());
            let mount =
                ExtensionMount::Operators { scheme: door.scheme(), access, host_names: host_names.clone() };
            let add = |router, extension: &BoundExtension| extension.add_to(router, engine, mount.clone());
            let router = self.extensions.iter().fold(router, add);
            let certificates = door.certificates()?;
            opened.push(door.open(certificates.as_ref(), router, context.clone())?);
            tls = tls.or(certificates);
        }
        Ok((opened, tls))
    }
}

/// An engine that has this fleet and nothing besides, in memory, with machines that pretend: to find out whether the rules
/// admit it, and what is in it.
///
/// # Errors
/// When the fleet is refused.
pub async fn engine_with(fleet: &Fleet) -> Result<ControlHandle, StartError> {
    let plan = ClockPlan::Virtual { start: None, speed: Speed(0) };
    let engine = ControlHandle::pretending(Seed([0; 16]), Clock::new_for(plan));
    admit_fleet_if_empty(&engine, fleet).await?;
    Ok(engine)
}

/// Admits a fleet to an empty cluster; one that is not empty is left alone.
///
/// # Errors
/// When the fleet is refused.
pub async fn admit_fleet_if_empty(engine: &ControlHandle, fleet: &Fleet) -> Result<(), StartError> {
    let is_empty = |state: &State<'_>| {
        state.cluster.hosts().next().is_none() && state.cluster.tenants().next().is_none()
    };
    if !engine.look(is_empty)? {
        return Ok(());
    }
    let differences = difference(&Fleet::default(), fleet, Unmentioned::Keep)?;
    let commands: Vec<_> = differences.iter().filter_map(|one| one.command.clone()).collect();
    if commands.is_empty() {
        return Ok(());
    }
    let Err(problem) = engine.order(commands.clone()).await else { return Ok(()) };
    Err(match engine.find_refused(&commands) {
        Some(refused) => StartError::RefusedEntry(refused_place(&differences, &refused), refused.error),
        None => StartError::Refused(problem),
    })
}

fn open(doors: Vec<(Door, Identity)>, threads: NonZeroUsize) -> Result<Vec<Vec<Listener>>, OpenError> {
    doors.into_iter().map(|(door, identity)| door.open(identity, threads.get())).collect()
}

/// Whether callers may say who they are, and who they are if they do not.
fn prefix(doors: &[(Door, Identity)]) -> (bool, Option<String>) {
    let mut defaults = doors.iter().filter_map(|(_, identity)| match identity {
        Identity::Prefix { default } => Some(default.clone()),
        Identity::Address | Identity::Machine(_) => None,
    });
    defaults.next().map_or((false, None), |default| (true, default))
}
