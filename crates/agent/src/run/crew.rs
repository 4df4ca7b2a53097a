//! Hooks that run, each as a task of its own: one that hangs does not hold up the others, one that panics has failed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forewarn_agent_core::{Ending, Phase, Run, Task};
use tokio::sync::watch;
use tokio::task::{Id, JoinSet};

use crate::clock;
use crate::hands::{Hands, Job, Work};

/// A hook that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) task: Task,
    pub(crate) ending: Ending,
    /// How long it took.
    pub(crate) took: Duration,
}

/// What is known of a hook while it runs.
struct Running {
    task: Task,
    stop: watch::Sender<bool>,
    begun: Instant,
}

/// Those who do the work.
pub(crate) struct Crew {
    hands: Arc<Hands>,
    tasks: JoinSet<Ending>,
    running: HashMap<Id, Running>,
}

impl Crew {
    pub(crate) fn new(hands: Hands) -> Self {
        Self { hands: Arc::new(hands), tasks: JoinSet::new(), running: HashMap::new() }
    }

    /// Runs a hook: what it does, or what undoes what it has done.
    pub(crate) fn start(&mut self, me: &str, work: Option<Work>, own_phase: Option<Phase>, run: Run) {
        let now = clock::now();
        let (stop, stopped) = watch::channel(false);
        let task = run.task.clone();
        let limit = run.until.since(now);
        let left = run.deadline.map(|deadline| deadline.since(now));
        let undoes = task.phase == Phase::Undo && own_phase != Some(Phase::Undo);
        let hands = Arc::clone(&self.hands);
        let job = Job { run, limit, left, me: me.to_owned() };
        let handle = self.tasks.spawn(async move {
            let Some(work) = work else {
                return Ending { result: Err("there is no such hook any more".to_owned()), memory: None };
            };
            if undoes {
                work.undo(&job, &hands, stopped).await
            } else {
                work.perform(&job, &hands, stopped).await
            }
        });
        self.running.insert(handle.id(), Running { task, stop, begun: Instant::now() });
    }

    /// Tells a hook to end. It will be heard of as always.
    pub(crate) fn stop(&self, task: &Task) {
        for running in self.running.values().filter(|running| running.task == *task) {
            running.stop.send_replace(true);
        }
    }

    /// Tells all of them.
    pub(crate) fn stop_all(&self) {
        for running in self.running.values() {
            running.stop.send_replace(true);
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.running.is_empty()
    }

    /// The next one that ends; never, if none runs. Nothing is lost if it is not waited for to the end.
    pub(crate) async fn next(&mut self) -> Ended {
        loop {
            let Some(joined) = self.tasks.join_next_with_id().await else {
                std::future::pending::<()>().await;
                continue;
            };
            let (id, ending) = match joined {
                Ok((id, ending)) => (id, ending),
                Err(problem) => {
                    let why = format!("the agent itself has failed at it: {problem}");
                    (problem.id(), Ending { result: Err(why), memory: None })
                }
            };
            if let Some(running) = self.running.remove(&id) {
                return Ended { task: running.task, ending, took: running.begun.elapsed() };
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
        let mut crew = Crew::new(Hands::new(folder.path().to_owned()));
        let task =
            Task { event: EventId::from_bytes([7; 16]), phase: Phase::Scheduled, hook: "a".to_owned() };
        let handle = crew.tasks.spawn(async { panic!("a mistake") });
        let (stop, _) = watch::channel(false);
        crew.running.insert(handle.id(), Running { task: task.clone(), stop, begun: Instant::now() });
        assert!(!crew.is_idle());
        let ended = crew.next().await;
        assert_eq!(ended.task, task);
        assert!(ended.ending.result.unwrap_err().contains("the agent itself has failed at it"));
        assert!(crew.is_idle());
    }
}
