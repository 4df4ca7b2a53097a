//! The whole of a server: an engine, the metadata endpoint and the operator API, started and stopped together.
//!
//! ```text
//!   control thread     driver (owns the state), operator API, signals
//!   metadata-0 … n     one thread per core, each with its own sockets
//! ```

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use forewarn_catalogue::{Role, Scope};
use forewarn_lifecycle::{Name, Seed};
use forewarn_wire::operator::{BadFleet, Fleet, ServerView, Unmentioned, difference};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::clock::{Clock, ClockPlan, Speed};
use crate::engine::{Administration, Engine, Hands, Problem, State, Terms};
use crate::metadata::{Door, Front, Identity, Listener, OpenError, Settings, Threads};
use crate::operator::{self, Access, HostNames, Secret};
use crate::socket_file::SocketFile;
use crate::telemetry::Telemetry;
use crate::tls::{Counted, Source, Tls, TlsError, TlsListener};

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
    pub hands: Hands,
    /// What there is at first, where nothing is kept yet.
    pub fleet: Fleet,
    /// How the metadata endpoint behaves.
    pub settings: Settings,
    /// Where machines come in, and how it is known who they are.
    pub doors: Vec<(Door, Identity)>,
    /// Threads that answer machines.
    pub threads: NonZeroUsize,
    /// Where operators come in.
    pub api: ApiDoor,
    /// Names with dots by which operators may call the API.
    pub api_host_names: Vec<String>,
    /// How long entries of the trail are kept, where anything is.
    pub trail_keep: Duration,
}

/// What may change while a server runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adjustable {
    /// How the metadata endpoint behaves, for whoever connects from now on.
    pub settings: Settings,
    /// Names with dots by which operators may call the API.
    pub api_host_names: Vec<String>,
    /// Where certificates come from; they are read again, if the API has any.
    pub certificates: Option<Source>,
}

/// Where operators come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApiDoor {
    /// A TCP address, for whoever can connect. Port 0 is one that is free.
    Open(SocketAddr),
    /// A TCP address, for whoever has the key. Port 0 is one that is free.
    Locked(SocketAddr),
    /// The same, with TLS.
    Tls(SocketAddr, Source),
    /// A Unix-domain socket, for its owner alone.
    Unix(PathBuf),
}

/// A server that runs.
#[derive(Debug)]
pub struct Service {
    engine: Engine,
    front: Arc<Front>,
    host_names: HostNames,
    tls: Option<Arc<Tls>>,
    threads: Threads,
    api: JoinHandle<std::io::Result<()>>,
    stop: watch::Sender<bool>,
    /// Removed with the service.
    _socket: Option<SocketFile>,
    metadata_url: Option<String>,
    api_url: String,
    first_token: Option<String>,
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// What was kept cannot be read.
    #[error(transparent)]
    Store(#[from] forewarn_store::OpenError),
    /// The fleet is none.
    #[error("the fleet cannot be")]
    Fleet(#[from] BadFleet),
    /// The rules refuse the fleet.
    #[error("the fleet is refused")]
    Refused(#[from] Problem),
    /// Machines cannot come in.
    #[error(transparent)]
    Door(#[from] OpenError),
    /// Operators cannot come in.
    #[error("cannot listen for operators: {0}")]
    Api(String, #[source] std::io::Error),
    /// The first token of operators cannot be made.
    #[error("cannot make a token for operators")]
    Token(#[source] std::io::Error),
    /// Certificates cannot be used.
    #[error("operators cannot come in with TLS")]
    Tls(#[from] TlsError),
    /// There are not enough threads or file descriptors.
    #[error("cannot start the threads of the metadata endpoint")]
    Threads(#[source] std::io::Error),
}

/// What the token is called that a new server makes for whoever sets it up.
const FIRST_TOKEN: &str = "first";

/// How long what is under way may take when the server stops.
const STOP_MAX: Duration = Duration::from_secs(2);

/// Only the owner of the server may use its socket.
const API_SOCKET_MODE: u32 = 0o600;

/// Connections of operators at once; one more waits.
const API_CONNECTIONS_MAX: usize = 1_024;

impl Service {
    /// Starts everything. When this returns, both sides listen.
    ///
    /// # Errors
    /// When the fleet is refused, or an address cannot be listened on.
    pub async fn start(plan: Plan) -> Result<Self, StartError> {
        let engine = match &plan.data_dir {
            Some(place) => Engine::open_keeping(place, plan.seed, plan.clock, plan.hands, plan.trail_keep)?,
            None => Engine::in_memory(plan.seed, Clock::new_for(plan.clock), plan.hands),
        };
        fill(&engine, &plan.fleet).await?;
        let telemetry = Telemetry::new();
        let (prefix, default_machine) = prefix(&plan.doors);
        let doors: Vec<_> = open(plan.doors, plan.threads)?;
        let addresses: Vec<_> = doors.iter().filter_map(|door| door.first()?.address()).collect();
        let front = Front::new(engine.clone(), plan.settings, Arc::clone(&telemetry));
        let threads = Threads::start(&front, plan.threads, doors).map_err(StartError::Threads)?;
        let about = ServerView {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            mode: plan.mode.to_owned(),
            metadata: addresses.iter().map(|address| format!("http://{address}")).collect(),
            prefix,
            default_machine,
        };
        let metadata_url = about.metadata.first().cloned();
        let (access, first_token) = access(&engine, &plan.api).await?;
        let (stop, stopped) = watch::channel(false);
        let host_names = HostNames::new(plan.api_host_names);
        let access = (access, host_names.clone());
        let router = operator::router(engine.clone(), about, telemetry, plan.data_dir, access, stopped);
        let tls = match &plan.api {
            ApiDoor::Tls(_, source) => Some(Tls::open(source.clone())?),
            ApiDoor::Open(_) | ApiDoor::Locked(_) | ApiDoor::Unix(_) => None,
        };
        let (api, api_url, socket) = serve_operators(&plan.api, tls.as_ref(), router, stop.subscribe())?;
        let service = Self {
            engine,
            front,
            host_names,
            tls,
            threads,
            api,
            stop,
            _socket: socket,
            metadata_url,
            api_url,
            first_token,
        };
        Ok(service)
    }

    /// Changes what may change while it runs: all of it, or nothing.
    ///
    /// # Errors
    /// When certificates cannot be used.
    pub fn adjust(&self, to: Adjustable) -> Result<(), TlsError> {
        if let (Some(tls), Some(source)) = (&self.tls, to.certificates) {
            tls.reload(source)?;
        }
        self.host_names.set(to.api_host_names);
        self.front.adjust(to.settings);
        Ok(())
    }

    /// The engine.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Where machines come in first: `http://ADDRESS`.
    #[must_use]
    pub fn metadata_url(&self) -> Option<&str> {
        self.metadata_url.as_deref()
    }

    /// Where operators come in: `http://ADDRESS`, `https://ADDRESS` or `unix:PATH`.
    #[must_use]
    pub fn api_url(&self) -> &str {
        &self.api_url
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
        let abort = self.api.abort_handle();
        if tokio::time::timeout(STOP_MAX, self.api).await.is_err() {
            // Somebody watches, and would for ever.
            abort.abort();
        }
        if stopping.await.is_err() {
            tracing::error!("the threads of the metadata endpoint could not be stopped");
        }
        self.engine.stop().await;
    }
}

/// An engine that has this fleet and nothing besides, in memory, with machines that pretend: to find out whether the rules
/// admit it, and what is in it.
///
/// # Errors
/// When the fleet is refused.
pub async fn engine_with(fleet: &Fleet) -> Result<Engine, StartError> {
    let plan = ClockPlan::Virtual { start: None, speed: Speed(0) };
    let engine = Engine::pretending(Seed([0; 16]), Clock::new_for(plan));
    fill(&engine, fleet).await?;
    Ok(engine)
}

/// Admits a fleet to an empty cluster; one that is not empty is left alone.
async fn fill(engine: &Engine, fleet: &Fleet) -> Result<(), StartError> {
    let is_empty = |state: &State<'_>| {
        state.cluster.hosts().next().is_none() && state.cluster.tenants().next().is_none()
    };
    if !engine.look(is_empty).await? {
        return Ok(());
    }
    let differences = difference(&Fleet::default(), fleet, Unmentioned::Keep)?;
    let commands: Vec<_> = differences.into_iter().filter_map(|one| one.command).collect();
    if !commands.is_empty() {
        engine.order(commands).await?;
    }
    Ok(())
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

/// Who may use the API, and the first token to it, if it has just been made.
async fn access(engine: &Engine, door: &ApiDoor) -> Result<(Access, Option<String>), StartError> {
    match door {
        ApiDoor::Open(_) => Ok((Access::Open("anyone"), None)),
        ApiDoor::Unix(_) => Ok((Access::Open("socket"), None)),
        ApiDoor::Locked(_) | ApiDoor::Tls(..) => {
            let has_tokens = engine.roster().tokens().next().is_some();
            let new = if has_tokens { None } else { Some(issue_first(engine).await?) };
            Ok((Access::Tokens, new))
        }
    }
}

/// Issues a token for whoever sets the server up.
async fn issue_first(engine: &Engine) -> Result<String, StartError> {
    let number = engine.roster().next_token;
    let text = Secret::new().map_err(StartError::Token)?.text(number);
    let issue = Administration::IssueToken {
        number,
        name: Name::new(FIRST_TOKEN).map_err(|_| StartError::Refused(Problem::Unavailable))?,
        role: Role::Admin,
        scope: Scope::default(),
        hash: operator::hash(&text),
        expires: None,
    };
    engine.administer(issue, Terms::default()).await?;
    Ok(text)
}

type Operators = (JoinHandle<std::io::Result<()>>, String, Option<SocketFile>);

fn serve_operators(
    door: &ApiDoor,
    tls: Option<&Arc<Tls>>,
    router: axum::Router,
    mut stop: watch::Receiver<bool>,
) -> Result<Operators, StartError> {
    let stopped = async move {
        // It is an error if nobody is left who could say so: then it is time to stop, too.
        drop(stop.wait_for(|stop| *stop).await);
    };
    match door {
        ApiDoor::Open(address) | ApiDoor::Locked(address) | ApiDoor::Tls(address, _) => {
            let failed = |source| StartError::Api(address.to_string(), source);
            let listener = std::net::TcpListener::bind(address).map_err(failed)?;
            listener.set_nonblocking(true).map_err(failed)?;
            let listener = tokio::net::TcpListener::from_std(listener).map_err(failed)?;
            let address = listener.local_addr().map_err(failed)?;
            match tls {
                Some(tls) => {
                    let listener = TlsListener::new(listener, Arc::clone(tls));
                    Ok((spawn(listener, router, stopped), format!("https://{address}"), None))
                }
                None => Ok((spawn(listener, router, stopped), format!("http://{address}"), None)),
            }
        }
        ApiDoor::Unix(path) => {
            let failed = |source| StartError::Api(path.display().to_string(), source);
            let listen = |source| OpenError::Listen {
                door: Door::Unix { path: path.clone(), mode: API_SOCKET_MODE },
                source,
            };
            let (listener, file) = SocketFile::create(path, API_SOCKET_MODE, listen)?;
            listener.set_nonblocking(true).map_err(failed)?;
            let listener = tokio::net::UnixListener::from_std(listener).map_err(failed)?;
            Ok((spawn(listener, router, stopped), format!("unix:{}", path.display()), Some(file)))
        }
    }
}

fn spawn<L>(
    listener: L,
    router: axum::Router,
    stopped: impl Future<Output = ()> + Send + 'static,
) -> JoinHandle<std::io::Result<()>>
where
    L: axum::serve::Listener<Addr: std::fmt::Debug>,
{
    let listener = Counted::new(listener, API_CONNECTIONS_MAX);
    let serve = axum::serve(listener, router).with_graceful_shutdown(stopped);
    tokio::spawn(serve.into_future())
}
