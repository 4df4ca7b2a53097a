//! Tasks: sends the request of a command, prints its outcome, and waits for its work.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};
use clap::Args;
use forewarn_control::{EndedView, Ending, FailureView, NamedCommand, Outcome};
use serde::Serialize;
use serde_json::Value;

use super::sentences::Wording;
use super::session::{Session, parse, print};
use super::visible::one_line;
use super::wait::Awaited;
use super::{OutputFormat, enrolment_hint, sentences, visible, wait};
use crate::client::ApiError;

/// One request of a command, with its words.
pub(super) struct Task {
    request: TaskRequest,
    wording: Wording,
    /// The machine that the task concerns. None for a task on another resource.
    machine: Option<String>,
    notice: NoticeRequirement,
}

/// The option of commands that announce events.
#[derive(Args, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NoticeRequirement {
    /// Fail, and change nothing, if no machine would be notified because none of the affected tenants is enrolled
    #[arg(long)]
    require_notice: bool,
}

enum TaskRequest {
    Command(NamedCommand),
    /// A request for several commands: path and body.
    Post(String, Value),
    /// A change of a resource: path and body.
    Patch(String, Value),
}

#[derive(Args, Clone, Copy)]
pub(crate) struct WaitArgs {
    /// Wait until the operations are completed, not only announced
    #[arg(long)]
    pub(super) wait: bool,
}

impl WaitArgs {
    /// For tasks that complete at once.
    pub(super) const NONE: Self = Self { wait: false };
}

impl Task {
    pub(super) fn new(wording: Wording, command: NamedCommand) -> Self {
        Self {
            request: TaskRequest::Command(command),
            wording,
            machine: None,
            notice: NoticeRequirement::default(),
        }
    }

    /// The task with the machine that it concerns.
    pub(super) fn about(self, machine: String) -> Self {
        Self { machine: Some(machine), ..self }
    }

    /// The task with the requirement of notice.
    pub(super) fn requiring(self, notice: NoticeRequirement) -> Self {
        Self { notice, ..self }
    }

    /// The path of its request, with the requirement of notice.
    fn path(&self, path: &str) -> String {
        let query = if self.notice.require_notice { "?require_notice=true" } else { "" };
        format!("{path}{query}")
    }

    pub(super) fn post(wording: Wording, path: String, body: &impl Serialize) -> Result<Self> {
        Ok(Self {
            request: TaskRequest::Post(path, serde_json::to_value(body)?),
            wording,
            machine: None,
            notice: NoticeRequirement::default(),
        })
    }

    pub(super) fn patch(wording: Wording, path: String, body: &impl Serialize) -> Result<Self> {
        Ok(Self {
            request: TaskRequest::Patch(path, serde_json::to_value(body)?),
            wording,
            machine: None,
            notice: NoticeRequirement::default(),
        })
    }
}

/// Sends every task; with `--wait`, then waits for the work of all.
///
/// A rejected task does not stop the others: they are independent.
///
/// In JSON, the outcome of a task with work is printed when the work has ended, with its result.
pub(super) fn run_all(session: &Session, tasks: &[Task], waiting: WaitArgs) -> Result<()> {
    let (mut awaited, mut failed) = (Awaited::default(), 0);
    let (mut pending, mut rejected) = (Vec::new(), 0);
    for task in tasks {
        match send(session, task) {
            Ok((response, outcome)) => {
                let has_work = !outcome.work.is_empty() || !outcome.rollouts.is_empty();
                if has_work && waiting.wait && session.output() == OutputFormat::Json {
                    awaited.add(&outcome);
                    pending.push(PendingTask { task, work: outcome.work, response: Some(response) });
                    continue;
                }
                show(session, task, response, &outcome)?;
                if has_work {
                    awaited.add(&outcome);
                    pending.push(PendingTask { task, work: outcome.work, response: None });
                }
            }
            Err(error) if error.is::<ApiError>() && tasks.len() > 1 => {
                eprintln!("forewarn: {}", visible(&error.to_string()));
                rejected += 1;
            }
            Err(error) => return Err(error),
        }
    }
    if waiting.wait {
        let ended = wait::until_over(session, awaited);
        let endings = ended.as_ref().ok();
        pending.iter_mut().try_for_each(|pending| pending.print_response(endings))?;
        let endings = ended?;
        for PendingTask { task, work, .. } in &pending {
            let (result, is_failure) = result(work, &endings);
            let (phrase, why) = (sentences::capital(&task.wording.noun), reasons(task, work, &endings));
            match session.output() {
                _ if is_failure => eprintln!("forewarn: {}", visible(&format!("{phrase} {result}{why}."))),
                OutputFormat::Table | OutputFormat::Wide => {
                    print(&visible(&format!("{phrase} {result}.\n")))?;
                }
                OutputFormat::Json => {}
            }
            failed += usize::from(is_failure);
        }
    }
    if rejected > 0 {
        bail!("{rejected} of {} operations were rejected", tasks.len());
    }
    if failed > 0 {
        bail!("{failed} of {} operations failed", tasks.len());
    }
    Ok(())
}

/// A task that waits for the end of its work.
struct PendingTask<'a> {
    task: &'a Task,
    work: Vec<u64>,
    /// The response of the server. None if it is already printed.
    response: Option<Value>,
}

impl PendingTask<'_> {
    /// Prints the response as JSON, with the known results of its work.
    fn print_response(&mut self, endings: Option<&BTreeMap<u64, EndedView>>) -> Result<()> {
        let Some(mut response) = self.response.take() else { return Ok(()) };
        if let Some(endings) = endings {
            let of_work: Vec<_> = self.work.iter().filter_map(|id| endings.get(id)).collect();
            response["ended"] = serde_json::to_value(of_work)?;
        }
        print(&format!("{response:#}\n"))
    }
}

/// The reasons of failed work, after a colon. Names the machine, unless it is the one of the task.
fn reasons(task: &Task, work: &[u64], endings: &BTreeMap<u64, EndedView>) -> String {
    let failures: Vec<_> =
        work.iter().filter_map(|id| endings.get(id)).flat_map(|ended| &ended.failures).collect();
    match (failures.as_slice(), &task.machine) {
        ([], _) => String::new(),
        ([only], Some(_)) => format!(": {}", only.reason),
        (several, _) => {
            let each = several.iter().map(|FailureView { machine, reason }| format!("{machine}: {reason}"));
            format!(": {}", each.collect::<Vec<_>>().join("; "))
        }
    }
}

/// The result of work, in words, and true if it is a failure.
fn result(work: &[u64], endings: &BTreeMap<u64, EndedView>) -> (&'static str, bool) {
    let has = |how| work.iter().any(|id| endings.get(id).is_some_and(|ended| ended.how == how));
    match (has(Ending::Failed), has(Ending::Withdrawn)) {
        (true, _) => ("failed", true),
        (false, true) => ("was cancelled", true),
        (false, false) => ("completed", false),
    }
}

/// Sends one task and prints its outcome.
pub(super) fn run(session: &Session, task: &Task) -> Result<Outcome> {
    let (response, outcome) = send(session, task)?;
    show(session, task, response, &outcome)?;
    Ok(outcome)
}

/// Sends a task. Returns the response, raw and parsed.
fn send(session: &Session, task: &Task) -> Result<(Value, Outcome)> {
    let response = match &task.request {
        TaskRequest::Command(command) => session.post(&task.path("/v1/commands"), command),
        TaskRequest::Post(path, body) => session.post(&task.path(path), body),
        TaskRequest::Patch(path, body) => session.patch(&task.path(path), body),
    };
    let response =
        response.map_err(|error| enrolment_hint::with_poll(session, error, task.machine.as_deref()))?;
    let outcome = parse(response.clone())?;
    Ok((response, outcome))
}

fn show(session: &Session, task: &Task, response: Value, outcome: &Outcome) -> Result<()> {
    session.present(response, |outcome: Outcome| Ok(sentences::outcome(&outcome, &task.wording)))?;
    match session.output() {
        OutputFormat::Table | OutputFormat::Wide => {
            enrolment_hint::hints(session, &outcome.unnotified, task.machine.as_deref())?;
            remedies(outcome).iter().for_each(|remedy| eprintln!("{}", one_line(&format!("hint: {remedy}"))));
        }
        OutputFormat::Json => {}
    }
    Ok(())
}

/// Deletions without notice that a hint names.
const REMEDIES_MAX: usize = 3;

/// The changes that let the next deletions be announced.
fn remedies(outcome: &Outcome) -> BTreeSet<&str> {
    outcome.starts.iter().filter_map(|start| start.remedy.as_deref()).take(REMEDIES_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_piece_of_work_that_fails_fails_the_whole() {
        let endings = endings();
        assert_eq!(result(&[1], &endings), ("completed", false));
        assert_eq!(result(&[1, 2], &endings), ("failed", true));
        assert_eq!(result(&[3, 2], &endings), ("failed", true));
        assert_eq!(result(&[1, 3], &endings), ("was cancelled", true));
        assert_eq!(result(&[9], &endings), ("completed", false), "the server no longer knows");
    }

    fn endings() -> BTreeMap<u64, EndedView> {
        let failure =
            |machine: &str| FailureView { machine: machine.to_owned(), reason: format!("no {machine}") };
        let ended = |(work, how, failed): (u64, Ending, &[&str])| {
            (work, EndedView { work, how, failures: failed.iter().map(|machine| failure(machine)).collect() })
        };
        let all = [
            (1, Ending::Done, &[][..]),
            (2, Ending::Failed, &["web/web_0"]),
            (3, Ending::Withdrawn, &[]),
            (4, Ending::Failed, &["a/a", "b/b"]),
        ];
        all.into_iter().map(ended).collect()
    }

    #[test]
    fn the_reasons_of_a_failure_name_machines_unless_there_is_one_that_is_meant() {
        let task = Task {
            request: TaskRequest::Post(String::new(), Value::Null),
            wording: Wording::update("web"),
            machine: None,
            notice: NoticeRequirement::default(),
        };
        let reasons_of = |task: &Task, work: &[u64]| reasons(task, work, &endings());
        assert_eq!(reasons_of(&task, &[1, 3]), "");
        assert_eq!(reasons_of(&task, &[1, 2]), ": web/web_0: no web/web_0");
        assert_eq!(reasons_of(&task, &[2, 4]), ": web/web_0: no web/web_0; a/a: no a/a; b/b: no b/b");
        assert_eq!(reasons_of(&task.about("web_0".to_owned()), &[2]), ": no web/web_0");
    }
}
