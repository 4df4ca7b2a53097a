//! What an agent does for a hook, one file per kind of work.
//!
//! ```text
//!   Run of the watcher ──▶ Job ──▶ Work::perform ──▶ Ending: done, or why not; what it has to remember
//!                                  Work::undo    ──▶ Ending
//! ```
//!
//! Whatever goes wrong is an [`Ending`]: nothing here panics or waits for ever. Work ends by itself when its limit is reached or
//! when it is told to stop, a few seconds later at most; a future that is dropped instead leaves nothing running, but has no time to
//! ask politely. What work has to know in order to be undone is kept in [`Notes`] before anything is done, so that an agent that
//! dies in the middle of it knows it in its next life.
//!
//! Deliberately absent: which hook runs when, and how often it is tried again. The watcher decides that, and the shell keeps what
//! is remembered of an [`Ending`].

mod bounds;
mod command;
mod event;
mod kubernetes;
mod notes;
mod process;
mod register;
#[cfg(test)]
mod samples;
mod signal;
mod systemd;
mod touch;
mod turns;
mod uri;
mod wait;
mod webhook;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use forewarn_agent_core::{Ending, Run};
use forewarn_client::backoff::Backoff;
use forewarn_client::http::Trust;
use serde_json::Value;
use tokio::sync::watch;

use self::bounds::Bounds;
pub(crate) use self::bounds::GRACE;
pub(crate) use self::command::CommandWork;
pub(crate) use self::kubernetes::KubernetesWork;
use self::notes::{Notes, merged};
use self::register::Register;
pub(crate) use self::signal::SignalWork;
pub(crate) use self::systemd::SystemdWork;
pub(crate) use self::touch::TouchWork;
use self::turns::{Turn, Turns};
pub(crate) use self::wait::WaitWork;
pub(crate) use self::webhook::WebhookWork;

/// What a hook does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Runs a program.
    Command(CommandWork),
    /// Stops and starts units of systemd.
    Systemd(SystemdWork),
    /// Sends a request to a URL.
    Webhook(WebhookWork),
    /// Creates a file.
    Touch(TouchWork),
    /// Sends a signal to a process.
    Signal(SignalWork),
    /// Cordons and drains the node of a Kubernetes cluster.
    Kubernetes(KubernetesWork),
    /// Waits.
    Wait(WaitWork),
}

/// A hook to run, as it looks at the moment at which it is begun.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// What the watcher wants.
    pub(crate) run: Run,
    /// How long it may take, from now on.
    pub(crate) limit: Duration,
    /// How long it is until `NotBefore`, where that is known.
    pub(crate) left: Option<Duration>,
    /// The name of this machine.
    pub(crate) me: String,
}

/// What all work shares.
#[derive(Debug)]
pub(crate) struct Hands {
    notes: Notes,
    turns: Turns,
    register: Register,
    /// Whoever the system believes. Nothing is read before somebody is asked in secret.
    trust: Arc<Trust>,
    /// The first pause before something is tried again, and the longest.
    pauses: (Duration, Duration),
}

/// What may pass is tried again after a second, then ever later.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

impl Hands {
    /// Ends programs that an agent before this one has left running; gives how many there were.
    pub(crate) async fn end_left_over(&self) -> usize {
        self.register.end_all().await
    }

    /// Hands that keep their notes in that directory, which is created when there is something to note.
    pub(crate) fn new(notes: PathBuf) -> Self {
        let register = Register::new(notes.join("running"));
        Self {
            register,
            notes: Notes::new(notes),
            turns: Turns::default(),
            trust: Trust::system(),
            pauses: PAUSES,
        }
    }

    fn backoff(&self) -> Backoff {
        Backoff::by_chance(self.pauses.0, self.pauses.1)
    }
}

/// What work is given: what for, for how long, with what.
struct Setting<'a> {
    job: &'a Job,
    hands: &'a Hands,
    /// What was remembered of it before.
    earlier: Option<Value>,
}

impl Work {
    /// Whether it can do what it says. For settings, before anything happens.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self {
            Self::Command(work) => work.check(),
            Self::Systemd(work) => work.check(),
            Self::Webhook(work) => work.check(),
            Self::Touch(work) => work.check(),
            Self::Signal(work) => work.check(),
            Self::Kubernetes(work) => work.check(),
            Self::Wait(work) => work.check(),
        }
    }

    /// Whether it can undo what it has done.
    pub(crate) fn undoes(&self) -> bool {
        match self {
            Self::Command(work) => work.undo.is_some(),
            Self::Systemd(_) | Self::Touch(_) | Self::Kubernetes(_) => true,
            Self::Signal(work) => work.undo.is_some(),
            Self::Webhook(_) | Self::Wait(_) => false,
        }
    }

    /// Does it. It ends early when `stop` becomes true.
    pub(crate) async fn perform(&self, job: &Job, hands: &Hands, stop: watch::Receiver<bool>) -> Ending {
        let bounds = Bounds::new(job.limit, stop);
        let _turn = match bounds.clone().around(self.turn(job, hands)).await {
            Ok(turn) => turn,
            Err(why) => return Ending { result: Err(why), memory: None },
        };
        let setting = Setting { job, hands, earlier: hands.notes.recall(job).await };
        let (mut memory, mut waits) = (None, String::new());
        let result = match self {
            Self::Command(work) => work.perform(&setting, bounds).await,
            Self::Systemd(work) => bounds.around(work.perform(&setting, &mut memory)).await,
            Self::Webhook(work) => bounds.around(work.perform(&setting, &mut waits)).await,
            Self::Touch(work) => bounds.around(work.perform(&setting, &mut memory)).await,
            Self::Signal(work) => bounds.around(work.perform(&setting, &mut memory)).await,
            Self::Kubernetes(work) => {
                let inner = bounds.clone();
                bounds.around(work.perform(&setting, &inner, &mut waits)).await
            }
            Self::Wait(work) => work.perform(&setting, bounds).await,
        };
        Ending { result: with_waits(result, &waits), memory }
    }

    /// Waits until it is not done for another event, if it remembers how it has found things.
    async fn turn(&self, job: &Job, hands: &Hands) -> Result<Option<Turn>, String> {
        match self {
            Self::Systemd(_) | Self::Touch(_) | Self::Signal(_) => {
                Ok(Some(hands.turns.wait(&job.run.task.hook).await))
            }
            Self::Command(_) | Self::Webhook(_) | Self::Kubernetes(_) | Self::Wait(_) => Ok(None),
        }
    }

    /// Undoes what it has done, and only that. Nothing is done meanwhile. It ends early when `stop` becomes true.
    pub(crate) async fn undo(&self, job: &Job, hands: &Hands, stop: watch::Receiver<bool>) -> Ending {
        let bounds = Bounds::new(job.limit, stop);
        let setting = Setting { job, hands, earlier: hands.notes.recall(job).await };
        let mut waits = String::new();
        let result = match self {
            Self::Command(work) => work.undo(&setting, bounds).await,
            Self::Systemd(work) => bounds.around(work.undo(&setting)).await,
            Self::Touch(work) => bounds.around(work.undo(&setting)).await,
            Self::Signal(work) => bounds.around(work.undo(&setting)).await,
            Self::Kubernetes(work) => bounds.around(work.undo(&setting, &mut waits)).await,
            Self::Webhook(_) | Self::Wait(_) => Ok(()),
        };
        let result = with_waits(result, &waits);
        if result.is_ok() {
            hands.notes.forget(job).await;
        }
        Ending { result, memory: None }
    }
}

impl Setting<'_> {
    /// Remembers something, on top of what was remembered before: what came first stays. From now on it may be done.
    async fn remember(&self, fresh: Value, memory: &mut Option<Value>) -> Result<(), String> {
        let all = match &self.earlier {
            Some(earlier) => merged(earlier.clone(), fresh),
            None => fresh,
        };
        self.hands.notes.note(self.job, &all).await?;
        *memory = Some(all);
        Ok(())
    }
}

/// Why it has failed, with what it was waiting for.
fn with_waits(result: Result<(), String>, waits: &str) -> Result<(), String> {
    result.map_err(|why| if waits.is_empty() { why } else { format!("{why}: {waits}") })
}

/// What may take long on a disk that is slow, away from everything else.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|problem| Err(format!("it could not be done: {problem}")))
}
