//! How the rest of the shell speaks to the driver.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use forewarn_hypervisor::Program;
use forewarn_lifecycle::{Change, Cluster, Command, MachineId, Now, Refusal, Seed};
use forewarn_store::Journal;
use forewarn_wire::Instance;
use tokio::sync::{mpsc, oneshot};

use crate::clock::{Clock, Kind, Speed};
use crate::directory::Directory;
use crate::driver::Driver;

/// A handle to the task that owns a cluster.
#[derive(Clone, Debug)]
pub struct Engine {
    requests: mpsc::Sender<Request>,
    clock: Clock,
    directory: Arc<Directory>,
}

/// What a command has changed, once it is durable and published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// The changes; none means "already so".
    pub changes: Vec<Change>,
    /// When.
    pub now: Now,
}

/// Why a request to the driver had no success.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// A rule says no.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The real clock goes as it goes.
    #[error("the clock is real: it cannot be driven\n  hint: `forewarn dev` has a virtual one")]
    RealClock,
    /// Nothing can be written now, or the server is stopping.
    #[error("not available now; try again")]
    Unavailable,
}

/// What an operator does to a virtual clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockCommand {
    /// Lets it run at that speed; 0 freezes it.
    Run(Speed),
    /// Sets it forward, stopping at everything that is due on the way.
    Advance(Duration),
    /// Sets it forward to the next moment at which a document changes, if there will be one.
    Next,
}

/// What the shell knows of a machine and the rules do not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Details {
    /// The addresses from which it calls.
    pub addresses: Vec<IpAddr>,
    /// What it is told of itself.
    pub instance: Instance,
}

/// Who carries out what was decided.
#[derive(Clone, Debug)]
pub(crate) enum Hands {
    Pretend,
    Program(Program),
}

type Look = Box<dyn FnOnce(&Cluster, Now) + Send>;

pub(crate) enum Request {
    Submit { command: Command, reply: oneshot::Sender<Result<Decided, Problem>> },
    Describe { machine: MachineId, details: Box<Details> },
    Look(Look),
    Drive { command: ClockCommand, reply: oneshot::Sender<Result<Now, Problem>> },
}

/// Requests that wait for the driver.
const REQUESTS_WAITING_MAX: usize = 1_024;

impl Engine {
    /// Starts the task that owns a new cluster, kept in memory, whose machines pretend.
    #[must_use]
    pub fn pretending(seed: Seed, clock: Clock) -> Self {
        Self::start(seed, clock, Hands::Pretend)
    }

    /// Starts the task that owns a new cluster, kept in memory, whose machines a program takes care of.
    #[must_use]
    pub fn with_program(seed: Seed, clock: Clock, program: Program) -> Self {
        Self::start(seed, clock, Hands::Program(program))
    }

    fn start(seed: Seed, clock: Clock, hands: Hands) -> Self {
        let (requests, inbox) = mpsc::channel(REQUESTS_WAITING_MAX);
        let directory = Arc::new(Directory::default());
        let engine = Self { requests, clock: clock.clone(), directory: Arc::clone(&directory) };
        let driver = Driver::new(Cluster::new(seed), Journal::memory(), clock, hands, directory);
        tokio::spawn(driver.run(inbox, engine.downgrade()));
        engine
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

    /// Asks the rules. Answered when the changes are durable and published.
    ///
    /// # Errors
    /// When the rules refuse, or nothing can be written.
    pub async fn submit(&self, command: Command) -> Result<Decided, Problem> {
        self.ask(|reply| Request::Submit { command, reply }).await?
    }

    /// Tells what a machine is called from, and what it is told of itself.
    ///
    /// # Errors
    /// When the server is stopping.
    pub async fn describe(&self, machine: MachineId, details: Details) -> Result<(), Problem> {
        let request = Request::Describe { machine, details: Box::new(details) };
        self.requests.send(request).await.map_err(|_| Problem::Unavailable)
    }

    /// Looks at the state. For operators: readers of documents have no need to.
    ///
    /// # Errors
    /// When the server is stopping.
    pub async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Cluster, Now) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        self.ask(|reply| {
            // Whoever asked may have gone; then nobody needs the answer.
            Request::Look(Box::new(move |cluster, now| drop(reply.send(look(cluster, now)))))
        })
        .await
    }

    /// Drives a virtual clock. Answered when everything that was due on the way is done.
    ///
    /// # Errors
    /// When the clock is real.
    pub async fn drive(&self, command: ClockCommand) -> Result<Now, Problem> {
        if self.clock.kind() == Kind::Real {
            return Err(Problem::RealClock);
        }
        self.ask(|reply| Request::Drive { command, reply }).await?
    }

    async fn ask<T>(&self, request: impl FnOnce(oneshot::Sender<T>) -> Request) -> Result<T, Problem> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(request(reply)).await.map_err(|_| Problem::Unavailable)?;
        answer.await.map_err(|_| Problem::Unavailable)
    }
}
