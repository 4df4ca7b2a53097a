//! A running server: driver, metadata endpoint, operator API and extensions.
//!
//! ```text
//!   control thread     operator API, extensions, signals
//!   streams            responses without an end, with a low priority
//!   metadata-0 … n     one thread per core, each with its own sockets
//! ```

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use forewarn_control::{DriverKind, Fleet, ServerView};
use forewarn_lifecycle::Seed;
use forewarn_metadata::{
    Endpoint, EndpointCounts, Identity, ListenAddress, ListenError, Listener, Settings, Threads,
};
use forewarn_url::OwnHosts;
use tokio::sync::watch;

use crate::api_listener::{ApiListener, RunningListener};
use crate::bound_extension::{BoundExtension, OpenExtension};
use crate::clients::{ClientCounts, ClientLimits, LimitsCell, ListenerContext};
use crate::clock::{Clock, ClockPlan};
use crate::control_handle::ControlHandle;
use crate::descriptors::{Descriptors, OpenConnections};
use crate::extension::{ExtensionMount, ExtensionSettings, HttpExtension};
use crate::first_token::first_token;
use crate::fleet_loading::{load_fleet, load_realm_fleet};
use crate::hypervisor::{Hypervisor, MachineDriver};
use crate::operator::{self, HostNames};
use crate::realm::RealmPlan;
use crate::realm_secrets::{extension_secret, share_authority};
use crate::start_error::StartError;
use crate::stream_thread::StreamThread;
use crate::telemetry::Telemetry;
use crate::tls::{PendingCertificate, Source, Tls, TlsError};
use crate::webhooks::{WebhookSettings, WebhookSupervisor, WebhooksShared};

/// Configuration of a server.
#[derive(Debug)]
pub struct Plan {
    /// `dev`, `test` or `serve`, as clients see it.
    pub mode: &'static str,
    /// Data directory. `None`: in memory.
    pub data_dir: Option<PathBuf>,
    /// Seed of ids, for a new store.
    pub seed: Seed,
    pub clock: ClockPlan,
    /// Hypervisor of the machines.
    pub hypervisor: Hypervisor,
    /// Initial fleet of a new store.
    pub fleet: Fleet,
    /// Settings of the metadata endpoint.
    pub settings: Settings,
    /// Listeners of the metadata endpoint, and the identification of their callers.
    pub metadata_listeners: Vec<(ListenAddress, Identity)>,
    /// Threads of the metadata endpoint.
    pub threads: NonZeroUsize,
    /// Listeners of the operator API: at least one; the first one is announced.
    pub api: Vec<ApiListener>,
    /// Host names that requests to the API may have.
    pub api_hosts: OwnHosts,
    /// The file that gets the first token, if only clients with a token are admitted and there is none yet.
    pub first_token_file: Option<PathBuf>,
    /// Limits of the listeners of operators.
    pub api_limits: ClientLimits,
    /// Limits of the listeners of extensions.
    pub extension_limits: ClientLimits,
    /// File descriptors that the process may have.
    pub descriptors: Descriptors,
    /// HTTP APIs besides the operator API.
    pub extensions: Vec<HttpExtension>,
    /// Retention time of audit entries in a data directory.
    pub audit_keep: Duration,
    pub webhooks: WebhookSettings,
    /// The place in a realm of several servers, which needs a data directory. `None`: a server of its own.
    pub realm: Option<RealmPlan>,
}

/// Settings that may change while a server runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adjustable {
    /// Settings of the metadata endpoint, for new connections.
    pub settings: Settings,
    /// Host names that requests to the API may have.
    pub api_hosts: OwnHosts,
    /// Limits of the operator listeners, for new connections.
    pub api_limits: ClientLimits,
    /// Limits of the listeners of extensions, for new connections.
    pub extension_limits: ClientLimits,
    /// Source of the certificates of the API; they are read again.
    pub certificates: Option<Source>,
    /// Settings of the extensions, in the order of the plan.
    pub extensions: Vec<ExtensionSettings>,
}

#[derive(Debug)]
pub struct Service {
    control: ControlHandle,
    endpoint: Arc<Endpoint<ControlHandle>>,
    host_names: HostNames,
    tls: Option<Arc<Tls>>,
    extensions: Vec<OpenExtension>,
    budget: Budget,
    threads: Threads,
    api: Vec<RunningListener>,
    stop: watch::Sender<bool>,
    supervisor: WebhookSupervisor,
    /// Ends when it is dropped.
    _streams: StreamThread,
    metadata_url: Option<String>,
    first_token_file: Option<PathBuf>,
}

/// Deadline of open requests when the server stops.
const STOP_MAX: Duration = Duration::from_secs(2);

impl Plan {
    /// Number of listeners of operators and extensions.
    #[must_use]
    pub fn listeners(&self) -> u32 {
        let extensions = self.extensions.iter().filter(|extension| extension.listen.is_some()).count();
        u32::try_from(self.api.len() + extensions).unwrap_or(u32::MAX)
    }
}

/// Lets operators inject faults into the answers of a test server, and return to the state of its start.
async fn prepare_for_tests(mode: &str, control: &ControlHandle) {
    if !matches!(mode, "dev" | "test") {
        return;
    }
    control.directory().permit_faults();
    // It fails if the server stops, which it does not.
    control.keep_state().await.ok();
}

/// The kind of the driver, for operators.
fn driver_kind(hypervisor: &Hypervisor) -> DriverKind {
    match hypervisor.machines {
        MachineDriver::Simulated => DriverKind::Simulated,
        MachineDriver::Program(_) => DriverKind::Program,
    }
}

/// Opens or joins the state of a server. The fleet is loaded into a new one; in a realm by the server that has created it.
async fn open_control(plan: &Plan) -> Result<ControlHandle, StartError> {
    let (seed, clock, keep) = (plan.seed, plan.clock, plan.audit_keep);
    let (data_dir, hypervisor) = (plan.data_dir.as_deref(), plan.hypervisor.clone());
    if let Some(realm) = plan.realm.clone() {
        let data_dir = data_dir.ok_or(StartError::NoRealmDirectory)?;
        let joined = ControlHandle::join_realm(data_dir, realm, hypervisor, keep).await;
        let (control, is_new) = joined.map_err(StartError::Realm)?;
        load_realm_fleet(&control, &plan.fleet, data_dir, is_new).await?;
        control.announcements_are_settled().await;
        return Ok(control);
    }
    let control = match data_dir {
        Some(data) => ControlHandle::open_keeping(data, seed, clock, hypervisor, keep)?,
        None => ControlHandle::start_in_memory(seed, Clock::new_for(clock), hypervisor)
            .map_err(StartError::Threads)?,
    };
    load_fleet(&control, &plan.fleet, data_dir).await?;
    Ok(control)
}

impl Service {
    /// Starts the server. When this returns, all listeners accept connections.
    ///
    /// # Errors
    /// Returns an error if the fleet is rejected, or a listener cannot be opened.
    pub async fn start(plan: Plan) -> Result<Self, StartError> {
        let driver = driver_kind(&plan.hypervisor);
        let budget = Budget::new(&plan);
        let control = open_control(&plan).await?;
        prepare_for_tests(plan.mode, &control).await;
        let telemetry = Telemetry::new();
        let (prefix, default_machine) = prefix(&plan.metadata_listeners);
        let metadata_listeners: Vec<_> = open(plan.metadata_listeners, plan.threads)?;
        let addresses: Vec<_> =
            metadata_listeners.iter().filter_map(|group| group.first()?.address()).collect();
        let settings = budget.set(plan.settings, plan.api_limits, plan.extension_limits);
        let endpoint = Endpoint::new(control.clone(), settings, Arc::clone(telemetry.metadata()));
        let threads =
            Threads::start(&endpoint, plan.threads, metadata_listeners).map_err(StartError::Threads)?;
        control.documents_are_readable().await;
        let (stop, stopped) = watch::channel(false);
        share_authority(&control, &plan.api, &plan.extensions).await?;
        let extensions = bind_extensions(&control, plan.extensions).await?;
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
        let first_token_file = first_token(&control, &plan.api, plan.first_token_file.as_deref()).await?;
        let host_names = HostNames::new(plan.api_hosts);
        let webhooks = WebhooksShared::new(control.clone(), &plan.webhooks, &telemetry);
        let supervisor = WebhookSupervisor::start(Arc::clone(&webhooks), stop.subscribe());
        let counts = telemetry.register(ClientCounts::new);
        let streams = StreamThread::start().map_err(StartError::Threads)?;
        let context = |limits: &LimitsCell| ListenerContext {
            control: control.clone(),
            counts: counts.clone(),
            limits: Arc::clone(limits),
            stop: stop.subscribe(),
            streams: streams.handle(),
        };
        let shared = operator::api(control.clone(), about, telemetry, webhooks, plan.data_dir);
        streams.handle().spawn(shared.run_feed(stopped));
        let operators = OperatorListeners { shared, host_names, extensions: &extensions };
        let (api, tls) = operators.start(&control, &plan.api, &context(&budget.api))?;
        let host_names = operators.host_names;
        let open = |one: BoundExtension| one.open(&control, context(&budget.extensions));
        let extensions = extensions.into_iter().map(open).collect();
        Ok(Self {
            control,
            endpoint,
            host_names,
            tls,
            extensions,
            budget,
            threads,
            api,
            stop,
            supervisor,
            _streams: streams,
            metadata_url,
            first_token_file,
        })
    }

    /// Changes the settings: all of them, or none.
    ///
    /// # Errors
    /// Returns an error if certificates cannot be loaded.
    pub fn adjust(&self, to: Adjustable) -> Result<(), TlsError> {
        let (names, sources): (Vec<_>, Vec<_>) =
            to.extensions.into_iter().map(|one| (one.hosts, one.certificates)).unzip();
        let own = self.extensions.iter().map(|extension| &extension.tls).zip(sources);
        let pairs = std::iter::once((&self.tls, to.certificates)).chain(own);
        let pairs = pairs.filter_map(|(tls, source)| tls.as_ref().zip(source));
        let read = pairs.map(|(tls, source)| tls.read(source)).collect::<Result<Vec<_>, _>>()?;
        read.into_iter().for_each(PendingCertificate::use_now);
        self.host_names.set(to.api_hosts);
        self.extensions.iter().zip(names).for_each(|(extension, names)| extension.host_names.set(names));
        self.endpoint.adjust(self.budget.set(to.settings, to.api_limits, to.extension_limits));
        Ok(())
    }

    #[must_use]
    pub fn control(&self) -> &ControlHandle {
        &self.control
    }

    /// Counts of the metadata endpoint.
    #[must_use]
    pub fn metadata_counts(&self) -> &Arc<EndpointCounts> {
        self.endpoint.counts()
    }

    /// URL of the first metadata listener: `http://ADDRESS`.
    #[must_use]
    pub fn metadata_url(&self) -> Option<&str> {
        self.metadata_url.as_deref()
    }

    /// URL of the first API listener: `http://ADDRESS`, `https://ADDRESS` or `unix:PATH`.
    #[must_use]
    pub fn api_url(&self) -> &str {
        self.api_urls().next().unwrap_or_default()
    }

    /// URLs of all API listeners.
    pub fn api_urls(&self) -> impl Iterator<Item = &str> {
        self.api.iter().map(|listener| listener.url.as_str())
    }

    /// URL of the own listener of an extension: `https://ADDRESS`.
    #[must_use]
    pub fn extension_url(&self, name: &str) -> Option<&str> {
        let extension = self.extensions.iter().find(|extension| extension.name == name)?;
        extension.opened.as_ref().map(|listener| listener.url.as_str())
    }

    /// The file with the first token, as long as it exists and its token is valid.
    #[must_use]
    pub fn first_token_file(&self) -> Option<&Path> {
        self.first_token_file.as_deref()
    }

    /// Stops: accepts no more requests, answers the open ones, and ends within a few seconds.
    pub async fn stop(self) {
        self.control.leave_realm().await;
        self.stop.send_replace(true);
        let threads = self.threads;
        let stopping = tokio::task::spawn_blocking(move || threads.stop());
        let deadline = tokio::time::Instant::now() + STOP_MAX;
        let extensions = self.extensions.into_iter().filter_map(|extension| extension.opened);
        for mut listener in self.api.into_iter().chain(extensions) {
            if tokio::time::timeout_at(deadline, &mut listener.serving).await.is_err() {
                // A stream would go on for ever.
                listener.serving.abort();
            }
        }
        if stopping.await.is_err() {
            tracing::error!("cannot stop the threads of the metadata endpoint");
        }
        self.supervisor.stopped().await;
        self.control.stop().await;
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

    /// Sets the limits of the listeners of operators and extensions, and returns the settings of the metadata
    /// endpoint. All of them are lowered to the available file descriptors.
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

/// Dependencies of the operator listeners.
struct OperatorListeners<'a> {
    shared: operator::Api,
    host_names: HostNames,
    extensions: &'a [BoundExtension],
}

impl OperatorListeners<'_> {
    /// Starts the listeners. Returns the certificates of the first one with TLS.
    fn start(
        &self,
        control: &ControlHandle,
        listeners: &[ApiListener],
        context: &ListenerContext,
    ) -> Result<(Vec<RunningListener>, Option<Arc<Tls>>), StartError> {
        let (mut opened, mut tls) = (Vec::new(), None);
        for listener in listeners {
            let (access, host_names) = (listener.access(), &self.host_names);
            let router = operator::router(self.shared.clone(), access, listener.scheme(), host_names.clone());
            let mount = ExtensionMount::Operators {
                scheme: listener.scheme(),
                access,
                host_names: host_names.clone(),
            };
            let add = |router, extension: &BoundExtension| extension.add_to(router, control, mount.clone());
            let router = self.extensions.iter().fold(router, add);
            let certificates = listener.certificates()?;
            opened.push(listener.open(certificates.as_ref(), router, context.clone())?);
            tls = tls.or(certificates);
        }
        Ok((opened, tls))
    }
}

async fn bind_extensions(
    control: &ControlHandle,
    extensions: Vec<HttpExtension>,
) -> Result<Vec<BoundExtension>, StartError> {
    let mut bound = Vec::with_capacity(extensions.len());
    for extension in extensions {
        let secret = extension_secret(control, extension.name).await?;
        bound.push(BoundExtension::bind(extension, secret.as_deref())?);
    }
    Ok(bound)
}

fn open(
    listeners: Vec<(ListenAddress, Identity)>,
    threads: NonZeroUsize,
) -> Result<Vec<Vec<Listener>>, ListenError> {
    listeners.into_iter().map(|(listener, identity)| listener.open(identity, threads.get())).collect()
}

/// True if a listener identifies callers by a path prefix, and its default machine.
fn prefix(listeners: &[(ListenAddress, Identity)]) -> (bool, Option<String>) {
    let mut defaults = listeners.iter().filter_map(|(_, identity)| match identity {
        Identity::Prefix { default } | Identity::AddressOrPrefix { default } => Some(default.clone()),
        Identity::Address { .. } | Identity::Machine(_) => None,
    });
    defaults.next().map_or((false, None), |default| (true, default))
}
