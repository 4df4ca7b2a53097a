//! Execution of hooks, one file per kind of work.
//!
//! ```text
//!   Run of the watcher ──▶ Job ──▶ Work::perform ──▶ HookOutcome: success or error, state for the undo
//!                                  Work::undo    ──▶ HookOutcome
//! ```
//!
//! Every error becomes a [`HookOutcome`]: nothing here panics or waits for ever. Work ends within seconds after its time
//! limit or a stop request; a dropped future leaves no process behind, but kills it without SIGTERM. State for the undo
//! is stored in [`UndoNotes`] before the work starts, so that it survives a crash of the agent.
//!
//! Out of scope: the order of hooks and their retries. The watcher decides on those, and its memory holds the state
//! from an [`HookOutcome`].

mod command;
mod event;
#[cfg(test)]
mod fixtures;
mod hook_locks;
mod kubernetes;
mod needed;
mod process;
mod register;
mod signal;
mod systemd;
mod time_limit;
mod touch;
mod undo_notes;
mod uri;
mod wait;
mod webhook;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use forewarn_agent_core::{HookOutcome, Run};
use forewarn_client::backoff::Backoff;
use forewarn_client::http::Trust;
use serde_json::Value;
use tokio::sync::watch;

pub(crate) use self::command::CommandWork;
use self::hook_locks::{HookLock, HookLocks};
pub(crate) use self::kubernetes::KubernetesWork;
use self::register::Register;
pub(crate) use self::signal::SignalWork;
pub(crate) use self::systemd::SystemdWork;
pub(crate) use self::time_limit::GRACE;
use self::time_limit::TimeLimit;
pub(crate) use self::touch::TouchWork;
use self::undo_notes::{UndoNotes, merged};
pub(crate) use self::wait::WaitWork;
pub(crate) use self::webhook::WebhookWork;

/// The work of a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Command(CommandWork),
    /// Stops and starts units of systemd.
    Systemd(SystemdWork),
    /// Sends a request to a URL.
    Webhook(WebhookWork),
    Touch(TouchWork),
    /// Sends a signal to a process.
    Signal(SignalWork),
    /// Cordons and drains the node of a Kubernetes cluster.
    Kubernetes(KubernetesWork),
    Wait(WaitWork),
}

/// A hook to run, with the values at the time of its start.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// The request of the watcher.
    pub(crate) run: Run,
    pub(crate) limit: Duration,
    /// The time until `NotBefore`, if known.
    pub(crate) left: Option<Duration>,
    /// The name of this machine.
    pub(crate) me: String,
}

/// Resources shared by all hooks.
#[derive(Debug)]
pub(crate) struct HookRuntime {
    undo_notes: UndoNotes,
    hook_locks: HookLocks,
    register: Register,
    /// The trust store of the system. It is read for the first TLS connection.
    trust: Arc<Trust>,
    /// The first and the longest pause between retries.
    pauses: (Duration, Duration),
}

/// Default pauses between retries.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

impl HookRuntime {
    /// Kills programs that a previous agent has left running; returns their number.
    pub(crate) async fn kill_leftovers(&self) -> usize {
        self.register.kill_all().await
    }

    /// Creates a runtime that stores undo notes in that directory.
    pub(crate) fn new(undo_notes: PathBuf) -> Self {
        let register = Register::new(undo_notes.join("running"));
        Self {
            register,
            undo_notes: UndoNotes::new(undo_notes),
            hook_locks: HookLocks::default(),
            trust: Trust::system(),
            pauses: PAUSES,
        }
    }

    fn backoff(&self) -> Backoff {
        Backoff::with_random_seed(self.pauses.0, self.pauses.1)
    }
}

/// The inputs of one run of a hook.
struct HookCall<'a> {
    job: &'a Job,
    runtime: &'a HookRuntime,
    /// State from earlier runs.
    earlier: Option<Value>,
}

impl Work {
    /// All errors in the settings of the work.
    pub(crate) fn errors(&self) -> Vec<String> {
        match self {
            Self::Command(work) => work.errors(),
            Self::Systemd(work) => work.errors(),
            Self::Webhook(work) => work.errors(),
            Self::Touch(work) => work.errors(),
            Self::Signal(work) => work.errors(),
            Self::Kubernetes(work) => work.errors(),
            Self::Wait(_) => Vec::new(),
        }
    }

    /// True if the work can be undone.
    pub(crate) fn undoes(&self) -> bool {
        match self {
            Self::Command(work) => work.undo.is_some(),
            Self::Systemd(_) | Self::Touch(_) | Self::Kubernetes(_) => true,
            Self::Signal(work) => work.undo.is_some(),
            Self::Webhook(_) | Self::Wait(_) => false,
        }
    }

    /// Performs the work. Ends early when `stop` becomes true.
    pub(crate) async fn perform(
        &self,
        job: &Job,
        runtime: &HookRuntime,
        stop: watch::Receiver<bool>,
    ) -> HookOutcome {
        let time_limit = TimeLimit::new(job.limit, stop);
        let _turn = match time_limit.clone().run(self.lock(job, runtime)).await {
            Ok(lock) => lock,
            Err(reason) => return HookOutcome { result: Err(reason), memory: None },
        };
        let call = HookCall { job, runtime, earlier: runtime.undo_notes.load(job).await };
        let (mut memory, mut pending_condition) = (None, String::new());
        let result = match self {
            Self::Command(work) => work.perform(&call, time_limit).await,
            Self::Systemd(work) => time_limit.run(work.perform(&call, &mut memory)).await,
            Self::Webhook(work) => time_limit.run(work.perform(&call, &mut pending_condition)).await,
            Self::Touch(work) => time_limit.run(work.perform(&call, &mut memory)).await,
            Self::Signal(work) => time_limit.run(work.perform(&call, &mut memory)).await,
            Self::Kubernetes(work) => {
                let inner = time_limit.clone();
                time_limit.run(work.perform(&call, &inner, &mut pending_condition)).await
            }
            Self::Wait(work) => work.perform(&call, time_limit).await,
        };
        HookOutcome { result: with_condition(result, &pending_condition), memory }
    }

    /// Waits until the same work is not running for another event, if it records the earlier state.
    async fn lock(&self, job: &Job, runtime: &HookRuntime) -> Result<Option<HookLock>, String> {
        match self {
            Self::Systemd(_) | Self::Touch(_) | Self::Signal(_) => {
                Ok(Some(runtime.hook_locks.wait(&job.run.task.hook).await))
            }
            Self::Command(_) | Self::Webhook(_) | Self::Kubernetes(_) | Self::Wait(_) => Ok(None),
        }
    }

    /// Undoes the work of this hook and nothing else. Ends early when `stop` becomes true.
    pub(crate) async fn undo(
        &self,
        job: &Job,
        runtime: &HookRuntime,
        stop: watch::Receiver<bool>,
    ) -> HookOutcome {
        let time_limit = TimeLimit::new(job.limit, stop);
        let call = HookCall { job, runtime, earlier: runtime.undo_notes.load(job).await };
        let mut pending_condition = String::new();
        let result = match self {
            Self::Command(work) => work.undo(&call, time_limit).await,
            Self::Systemd(work) => time_limit.run(work.undo(&call)).await,
            Self::Touch(work) => time_limit.run(work.undo(&call)).await,
            Self::Signal(work) => time_limit.run(work.undo(&call)).await,
            Self::Kubernetes(work) => time_limit.run(work.undo(&call, &mut pending_condition)).await,
            Self::Webhook(_) | Self::Wait(_) => Ok(()),
        };
        let result = with_condition(result, &pending_condition);
        if result.is_ok() {
            runtime.undo_notes.delete(job).await;
        }
        HookOutcome { result, memory: None }
    }
}

impl HookCall<'_> {
    /// Stores state for the undo, merged with earlier state, which takes precedence. Must be called before the work is
    /// done.
    async fn store_undo_state(&self, state: Value, memory: &mut Option<Value>) -> Result<(), String> {
        let all = match &self.earlier {
            Some(earlier) => merged(earlier.clone(), state),
            None => state,
        };
        self.runtime.undo_notes.store(self.job, &all).await?;
        *memory = Some(all);
        Ok(())
    }
}

/// Checks that the path in a setting is absolute.
fn check_path(name: &str, path: &Path) -> Result<(), String> {
    if path.is_absolute() {
        Ok(())
    } else {
        Err(format!("`{name}` is not an absolute path: {}", path.display()))
    }
}

/// Adds the condition that was being waited for to an error.
fn with_condition(result: Result<(), String>, pending_condition: &str) -> Result<(), String> {
    result.map_err(|reason| {
        if pending_condition.is_empty() { reason } else { format!("{reason}: {pending_condition}") }
    })
}

/// Runs blocking file operations on a separate thread.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(format!("internal error: {error}")))
}
