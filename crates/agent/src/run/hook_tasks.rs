//! Running hooks, each in a task of its own: a hanging hook does not delay others, and a panic counts as a failure.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forewarn_agent_core::{HookOutcome, Phase, Run, Task};
use tokio::sync::watch;
use tokio::task::{Id, JoinSet};

use crate::clock;
use crate::hooks::{HookRuntime, Job, Work};

/// A completed hook run.
#[derive(Debug)]
pub(crate) struct CompletedHook {
    pub(crate) task: Task,
    pub(crate) hook_outcome: HookOutcome,
    pub(crate) took: Duration,
}

/// The data of a running hook.
struct Running {
    task: Task,
    stop: watch::Sender<bool>,
    begun: Instant,
}

pub(crate) struct HookTasks {
    runtime: Arc<HookRuntime>,
    tasks: JoinSet<HookOutcome>,
    running: HashMap<Id, Running>,
}

impl HookTasks {
    pub(crate) fn new(runtime: HookRuntime) -> Self {
        Self { runtime: Arc::new(runtime), tasks: JoinSet::new(), running: HashMap::new() }
    }

    /// Starts a hook or its undo.
    pub(crate) fn start(&mut self, me: &str, work: Option<Work>, own_phase: Option<Phase>, run: Run) {
        let now = clock::now();
        let (stop, stopped) = watch::channel(false);
        let task = run.task.clone();
        let limit = run.until.since(now);
        let left = run.deadline.map(|deadline| deadline.since(now));
        let undoes = task.phase == Phase::Undo && own_phase != Some(Phase::Undo);
        let runtime = Arc::clone(&self.runtime);
        let job = Job { run, limit, left, me: me.to_owned() };
        let handle = self.tasks.spawn(async move {
            let Some(work) = work else {
                return HookOutcome {
                    result: Err("the hook is no longer in the settings".to_owned()),
                    memory: None,
                };
            };
            if undoes {
                work.undo(&job, &runtime, stopped).await
            } else {
                work.perform(&job, &runtime, stopped).await
            }
        });
        self.running.insert(handle.id(), Running { task, stop, begun: Instant::now() });
    }

    /// Asks a hook to stop. Its result is reported as usual.
    pub(crate) fn stop(&self, task: &Task) {
        for running in self.running.values().filter(|running| running.task == *task) {
            running.stop.send_replace(true);
        }
    }

    /// Asks all hooks to stop.
    pub(crate) fn stop_all(&self) {
        for running in self.running.values() {
            running.stop.send_replace(true);
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.running.is_empty()
    }

    /// The next result; never, if no hook runs. Cancel safe.
    pub(crate) async fn next(&mut self) -> CompletedHook {
        loop {
            let Some(joined) = self.tasks.join_next_with_id().await else {
                std::future::pending::<()>().await;
                continue;
            };
            let (id, hook_outcome) = match joined {
                Ok((id, hook_outcome)) => (id, hook_outcome),
                Err(error) => {
                    let reason = format!("internal error of the agent: {error}");
                    (error.id(), HookOutcome { result: Err(reason), memory: None })
                }
            };
            if let Some(running) = self.running.remove(&id) {
                return CompletedHook { task: running.task, hook_outcome, took: running.begun.elapsed() };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forewarn_types::EventId;

    #[tokio::test(flavor = "current_thread")]
    async fn a_hook_that_panics_has_failed_and_is_heard_of() {
        let folder = tempfile::tempdir().unwrap();
        let mut hook_tasks = HookTasks::new(HookRuntime::new(folder.path().to_owned()));
        let task =
            Task { event: EventId::from_bytes([7; 16]), phase: Phase::Scheduled, hook: "a".to_owned() };
        let handle = hook_tasks.tasks.spawn(async { panic!("a mistake") });
        let (stop, _) = watch::channel(false);
        hook_tasks.running.insert(handle.id(), Running { task: task.clone(), stop, begun: Instant::now() });
        assert!(!hook_tasks.is_idle());
        let completed = hook_tasks.next().await;
        assert_eq!(completed.task, task);
        assert!(completed.hook_outcome.result.unwrap_err().contains("internal error of the agent"));
        assert!(hook_tasks.is_idle());
    }
}
