//! Stand-in.
use std::process::Stdio;
use std::time::Duration;

use forewarn_watcher::{Ending, Phase, Run};

#[derive(Clone, Debug)]
pub(crate) enum Work {
    Command(CommandWork),
    Wait(WaitWork),
}

#[derive(Clone, Debug)]
pub(crate) struct WaitWork(pub(crate) forewarn_wire::Span);

#[derive(Clone, Debug)]
pub(crate) struct CommandWork {
    pub(crate) command: Vec<String>,
    pub(crate) undo: Option<Vec<String>>,
}

pub(crate) struct Job {
    pub(crate) run: Run,
    pub(crate) limit: Duration,
    pub(crate) left: Option<Duration>,
    pub(crate) me: String,
}

#[derive(Debug, Default)]
pub(crate) struct Hands {}
impl Hands {
    pub(crate) fn new(_: std::path::PathBuf) -> Self {
        Self {}
    }
}

impl Work {
    pub(crate) async fn undo(
        &self,
        job: &Job,
        h: &Hands,
        stop: tokio::sync::watch::Receiver<bool>,
    ) -> Ending {
        self.perform(job, h, stop).await
    }
    pub(crate) fn check(&self) -> Result<(), String> {
        let Self::Command(work) = self else { todo!() };
        if work.command.is_empty() { Err("no program".into()) } else { Ok(()) }
    }

    pub(crate) fn undoes(&self) -> bool {
        let Self::Command(work) = self else { todo!() };
        work.undo.is_some()
    }

    pub(crate) async fn perform(
        &self,
        job: &Job,
        _: &Hands,
        mut stop: tokio::sync::watch::Receiver<bool>,
    ) -> Ending {
        let Self::Command(work) = self else { todo!() };
        let line = match (job.run.task.phase, &work.undo) {
            (Phase::Undo, Some(undo)) => undo,
            _ => &work.command,
        };
        let mut command = tokio::process::Command::new(&line[0]);
        command.args(&line[1..]).stdin(Stdio::null()).kill_on_drop(true);
        command
            .env("EVENT_ID", job.run.seen.id.to_string())
            .env("FOREWARN_PHASE", job.run.task.phase.as_str());
        command.env("FOREWARN_NAME", &job.me);
        command.env("FOREWARN_ATTEMPT", job.run.attempt.to_string());
        let _ = job.left;
        let result = tokio::select! {
            status = command.status() => match status {
                Ok(status) if status.success() => Ok(()),
                Ok(status) => Err(format!("it ended with {status}")),
                Err(problem) => Err(problem.to_string()),
            },
            _ = stop.wait_for(|stop| *stop) => Err("it was told to stop".to_owned()),
            () = tokio::time::sleep(job.limit) => Err("it took too long".to_owned()),
        };
        Ending { result, memory: None }
    }
}
