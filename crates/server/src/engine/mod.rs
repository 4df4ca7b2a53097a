//! How the rest of the shell speaks to the driver.

mod arrangement;
mod heralds;
mod opening;
mod order;
mod problem;
mod request;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use forewarn_control::shared::{
    Authorization, Catalogue, ClusterId, Filter, Progress, Role, Schema, Scope, TokenHash, WebhookCommand,
};
use forewarn_control::{Details, NamedCommand, Outcome, Site, TrailEntry};
use forewarn_hypervisor::Program;
use forewarn_lifecycle::{Change, Cluster, Command, MachineId, MaintenanceId, Name, Now, Seed, Timestamp};
use forewarn_store::{CopyError, Estate, ReadFailed, State as Kept, TrailPage, TrailQuery};
use forewarn_url::Url;
use tokio::sync::{broadcast, mpsc, oneshot, watch};

use crate::clock::{Clock, Kind, Speed};
use crate::directory::Directory;
use crate::driver::{Driver, Endings, Found, Keeping};
use crate::polls::Polls;
use crate::rejections::RecentRejections;
use crate::roster::Roster;
pub(crate) use arrangement::Arrange;
pub use arrangement::{Arranged, Arrangement, LinkTo, Paper};
pub(crate) use heralds::Heralds;
pub use order::{Condition, ITSELF, Once, Order, Terms};
pub use problem::{Problem, RefusedCommand};
pub(crate) use request::{Completion, Look, Request};

/// A handle to the task that owns the clusters, and to one of them.
#[derive(Clone, Debug)]
pub struct Engine {
    /// Whom requests are about: the first cluster, if not said otherwise.
    cluster: ClusterId,
    requests: mpsc::Sender<Request>,
    clock: Clock,
    directory: Arc<Directory>,
    heralds: Heralds,
    rejections: Arc<RecentRejections>,
}

/// What a command has changed, once it is durable and published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// The changes; none means "already so".
    pub changes: Vec<Change>,
    /// When.
    pub now: Now,
}

/// What an operator does to a virtual clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockCommand {
    /// Lets it run at that speed; 0 freezes it.
    Run(Speed),
    /// Sets it forward, stopping at everything that is due on the way.
    Advance(Duration),
    /// Sets it forward to the next moment at which a document changes, if there will be one.
    Next {
        /// But no farther than this.
        within: Option<Duration>,
    },
}

/// What is done to the server as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Administration {
    /// Another cluster.
    CreateCluster(Name),
    /// Another name for a cluster.
    RenameCluster {
        /// What it is called until now.
        cluster: Name,
        /// Its name from now on.
        name: Name,
    },
    /// A cluster goes, with nothing in it.
    RemoveCluster(Name),
    /// A token is good from now on.
    IssueToken {
        /// Its number: [`Roster::next_token`].
        number: u32,
        /// What people call it.
        name: Name,
        /// What its holder may do.
        role: Role,
        /// To what.
        scope: Scope,
        /// The SHA-256 of its text.
        hash: TokenHash,
        /// From when on it is good for nothing.
        expires: Option<Timestamp>,
    },
    /// A token is good no longer.
    RevokeToken(Name),
    /// Somebody is told of events from now on.
    AddWebhook {
        /// What people call it.
        name: Name,
        /// Where it is told.
        url: Url,
        /// In which form.
        schema: Schema,
        /// Of what.
        filter: Filter,
        /// What is sent as `Authorization`.
        authorization: Option<Authorization>,
    },
    /// Somebody is told nothing any more.
    RemoveWebhook(Name),
}

/// All that there is to see of a cluster at one moment.
#[derive(Clone, Copy, Debug)]
pub struct State<'a> {
    /// The number of the cluster.
    pub id: ClusterId,
    /// What ids of its machines are made of.
    pub seed: Seed,
    /// What the cluster is called.
    pub name: &'a Name,
    /// What belongs to no cluster: names, tokens.
    pub catalogue: &'a Catalogue,
    /// Every cluster of the server.
    pub all: &'a BTreeMap<ClusterId, Estate>,
    /// The state of the rules.
    pub cluster: &'a Cluster,
    /// When.
    pub now: Now,
    /// How long it is until time alone changes something, on the clock.
    pub next_in: Option<Duration>,
    /// What all machines are told of where they are.
    pub site: &'a Site,
    /// What is known of machines besides; of some, nothing is.
    pub details: &'a BTreeMap<MachineId, Details>,
    /// How work ended that is over.
    pub endings: &'a Endings,
    /// Why programs have to be ordered again.
    pub troubles: &'a BTreeMap<(MaintenanceId, MachineId), String>,
    /// When machines last asked.
    pub polls: Polls<'a>,
}

/// Who carries out what was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hands {
    /// Machines pretend.
    Pretend,
    /// A program of the operator's takes care of machines.
    Program(Program),
}

/// Without a driver there is no server: should it ever panic, the process ends with it, and whoever supervises it starts
/// another, which goes on from the journal.
struct Lifeline;

impl Drop for Lifeline {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!("the driver has panicked");
            std::process::abort();
        }
    }
}

/// Requests that wait for the driver.
const REQUESTS_WAITING_MAX: usize = 1_024;

impl Engine {
    /// Starts the task that owns a new cluster, kept in memory, whose machines pretend.
    #[must_use]
    pub fn pretending(seed: Seed, clock: Clock) -> Self {
        Self::pretending_on(Kept::new(seed), seed, clock)
    }

    /// Starts the task that owns these clusters, kept in memory, whose machines pretend.
    #[must_use]
    pub fn pretending_on(kept: Kept, seed: Seed, clock: Clock) -> Self {
        let keeping = Keeping::in_memory();
        let (engine, driving) = Self::prepare(Found::new(kept, seed), keeping, clock, Hands::Pretend);
        tokio::spawn(driving);
        engine
    }

    /// Starts the task that owns a new cluster, kept in memory. It lives on the runtime of whoever calls this.
    #[must_use]
    pub fn in_memory(seed: Seed, clock: Clock, hands: Hands) -> Self {
        let (engine, driving) =
            Self::prepare(Found::new(Kept::new(seed), seed), Keeping::in_memory(), clock, hands);
        tokio::spawn(driving);
        engine
    }

    fn prepare(
        found: Found,
        keeping: Keeping,
        clock: Clock,
        hands: Hands,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (requests, inbox) = mpsc::channel(REQUESTS_WAITING_MAX);
        let directory = Arc::new(Directory::default());
        let heralds = Heralds::new();
        heralds.can_read(keeping.trail_reader());
        let driver =
            Driver::new(found, keeping, clock.clone(), hands, Arc::clone(&directory), heralds.clone());
        let engine = Self {
            cluster: ClusterId::DEFAULT,
            requests,
            clock,
            directory,
            heralds,
            rejections: Arc::default(),
        };
        let own = engine.downgrade();
        let driving = async move {
            let _lifeline = Lifeline;
            driver.run(inbox, own).await;
        };
        (engine, driving)
    }

    /// A handle to another cluster. Whether there is one is found out by whoever asks.
    #[must_use]
    pub fn of(&self, cluster: ClusterId) -> Self {
        Self { cluster, ..self.clone() }
    }

    fn downgrade(&self) -> mpsc::WeakSender<Request> {
        self.requests.downgrade()
    }

    /// The clock.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Who may call.
    #[must_use]
    pub fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }

    /// Recent rejections of requests to change a resource.
    #[must_use]
    pub fn rejections(&self) -> &RecentRejections {
        &self.rejections
    }

    /// Asks the rules. Answered when the changes are durable and published.
    ///
    /// # Errors
    /// When the rules refuse, or nothing can be written.
    pub async fn submit(&self, command: Command) -> Result<Decided, Problem> {
        let cluster = self.cluster;
        self.ask(|reply| Request::Submit { cluster, command, reply }).await?
    }

    /// Asks for something by name; all of it is done, or nothing. Answered when it is durable and published.
    ///
    /// # Errors
    /// When something that is named is not there, the rules refuse, or nothing can be written.
    pub async fn order(&self, order: impl Into<Order>) -> Result<Outcome, Problem> {
        let (cluster, order) = (self.cluster, order.into());
        self.ask(|reply| Request::Order { cluster, order, reply }).await?
    }

    /// Does what is arranged with a look at the state: commands, entries and an operation in one commit, or nothing. Answered when
    /// it is durable and published. Whoever arranges may say no in words of their own.
    ///
    /// # Errors
    /// When something that is named is not there, the rules refuse, or nothing can be written.
    pub async fn arrange<T: Send + 'static, E: Send + 'static>(
        &self,
        terms: Terms,
        arrange: impl FnOnce(&State<'_>) -> Result<(Arrangement, T), E> + Send + 'static,
    ) -> Result<Result<(Arranged, T), E>, Problem> {
        let cluster = self.cluster;
        let (say, said) = oneshot::channel();
        let arrange: Arrange = Box::new(move |state| {
            let (arrangement, verdict) = match arrange(state) {
                Ok((arrangement, besides)) => (Some(arrangement), Ok(besides)),
                Err(no) => (None, Err(no)),
            };
            // Whoever asked may have gone.
            drop(say.send(verdict));
            arrangement
        });
        let arranged = self.ask(|reply| Request::Arrange { cluster, terms, arrange, reply }).await??;
        let verdict = said.await.map_err(|_| Problem::Unavailable)?;
        Ok(match (arranged, verdict) {
            (Some(arranged), Ok(besides)) => Ok((arranged, besides)),
            (None, Err(no)) => Err(no),
            (Some(_), Err(_)) | (None, Ok(_)) => return Err(Problem::Unavailable),
        })
    }

    /// Does something to the server as a whole. Answered when it is durable and published.
    ///
    /// # Errors
    /// When it is refused, or nothing can be written.
    pub async fn administer(&self, command: Administration, terms: Terms) -> Result<Outcome, Problem> {
        self.ask(|reply| Request::Administer { command, terms, reply }).await?
    }

    /// A webhook has said that it wants to be told. Answered when it is durable.
    ///
    /// # Errors
    /// When nothing can be written.
    pub(crate) async fn confirm_webhook(&self, webhook: u32, per_minute: Option<u32>) -> Result<(), Problem> {
        let command = WebhookCommand::Confirm { webhook, per_minute };
        self.ask(|reply| Request::Report { command, reply }).await?
    }

    /// Webhooks have been told that far. Answered when it is durable.
    ///
    /// # Errors
    /// When nothing can be written.
    pub(crate) async fn advance_webhooks(&self, reports: Vec<(u32, Progress)>) -> Result<(), Problem> {
        let command = WebhookCommand::Advance(reports);
        self.ask(|reply| Request::Report { command, reply }).await?
    }

    /// What the clusters are called, and who may do what.
    #[must_use]
    pub fn roster(&self) -> Arc<Roster> {
        self.heralds.roster.load_full()
    }

    /// A handle to the cluster of that name.
    ///
    /// # Errors
    /// When there is none.
    pub fn named(&self, cluster: &str) -> Result<Self, Problem> {
        let found = self.roster().cluster_named(cluster).ok_or(Problem::NoSuchCluster);
        found.map(|cluster| self.of(cluster))
    }

    /// Finds out whether [`Self::order`] would be refused, and changes nothing.
    ///
    /// # Errors
    /// When it would.
    pub async fn rehearse(&self, commands: Vec<NamedCommand>) -> Result<(), Problem> {
        self.find_refused(commands).await?.map_or(Ok(()), |refused| Err(refused.problem))
    }

    /// Finds the first command that makes the driver refuse an order, and changes nothing.
    ///
    /// # Errors
    /// When the driver cannot be asked.
    pub async fn find_refused(&self, commands: Vec<NamedCommand>) -> Result<Option<RefusedCommand>, Problem> {
        let cluster = self.cluster;
        self.ask(|reply| Request::Rehearse { cluster, commands, reply }).await?
    }

    /// What is added to the trail from now on, in all clusters.
    #[must_use]
    pub fn entries(&self) -> broadcast::Receiver<Arc<TrailEntry>> {
        self.heralds.trail.subscribe()
    }

    /// The number of the last entry of the trail whose consequences are visible, in the roster for one.
    #[must_use]
    pub(crate) fn published_entry(&self) -> u64 {
        self.heralds.published()
    }

    /// Reads the trail. The driver has nothing to do with it.
    ///
    /// # Errors
    /// When it cannot be read now.
    pub async fn read_trail(&self, query: TrailQuery) -> Result<TrailPage, ReadFailed> {
        let (reply, answer) = oneshot::channel();
        // Whoever asked may have gone.
        self.heralds.reader.load().read_then(query, move |page| drop(reply.send(page)));
        answer.await.unwrap_or(Err(ReadFailed::Closed))
    }

    /// A number that grows whenever something has changed.
    #[must_use]
    pub fn commits(&self) -> watch::Receiver<u64> {
        self.heralds.commits.subscribe()
    }

    /// Looks at the state. For operators: readers of documents have no need to.
    ///
    /// # Errors
    /// When there is no such cluster, or the server is stopping.
    pub async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&State<'_>) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let cluster = self.cluster;
        let found = self.ask(|reply| {
            // Whoever asked may have gone; then nobody needs the answer.
            let look: Look = Box::new(move |state| drop(reply.send(state.map(|state| look(&state)))));
            Request::Look { cluster, look }
        });
        found.await?.ok_or(Problem::NoSuchCluster)
    }

    /// Drives a virtual clock. Answered when everything that was due on the way is done.
    ///
    /// # Errors
    /// When the clock is real.
    pub async fn drive(&self, command: ClockCommand) -> Result<Now, Problem> {
        self.drive_for(command, Terms::default()).await
    }

    /// Drives a virtual clock for somebody.
    ///
    /// # Errors
    /// When the clock is real.
    pub async fn drive_for(&self, command: ClockCommand, terms: Terms) -> Result<Now, Problem> {
        if self.clock.kind() == Kind::Real {
            return Err(Problem::RealClock);
        }
        self.ask(|reply| Request::Drive { command, terms, reply }).await?
    }

    /// Why nothing can be written at the moment, if so.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.heralds.trouble.borrow().clone()
    }

    /// How often the wall clock was set, or the process was asleep, since the start.
    #[must_use]
    pub fn clock_steps(&self) -> u64 {
        self.heralds.clock_steps.load(Ordering::Relaxed)
    }

    /// Makes a copy of the journal in a file that is not there yet.
    ///
    /// # Errors
    /// When the journal is kept in memory, or the copy cannot be written.
    pub async fn copy(&self, to: PathBuf) -> Result<(), CopyError> {
        self.ask(|reply| Request::Copy { to, reply }).await.unwrap_or(Err(CopyError::Closed))
    }

    /// Ends the driver: everything that was answered is kept, and the journal is free for another.
    pub async fn stop(&self) {
        // If nobody answers, it has ended already.
        drop(self.ask(|reply| Request::Stop { reply }).await);
    }

    async fn ask<T>(&self, request: impl FnOnce(oneshot::Sender<T>) -> Request) -> Result<T, Problem> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(request(reply)).await.map_err(|_| Problem::Unavailable)?;
        answer.await.map_err(|_| Problem::Unavailable)
    }
}
