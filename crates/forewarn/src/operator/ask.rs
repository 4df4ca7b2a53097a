//! Asking for something by a command, and saying what came of it.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use clap::Args;
use forewarn_control::{EndedView, Ending, FailureView, NamedCommand, Outcome, Unfinished};
use serde::Serialize;
use serde_json::Value;

use super::session::{Session, print, understand};
use super::{Output, enrol, say, visible, wait};
use crate::client::Refused;

/// Something to ask for.
pub(super) struct Errand {
    request: Request,
    /// What it is called in sentences: `restart of web_0`.
    phrase: String,
    /// The machine that it is about, if it is about one.
    machine: Option<String>,
}

/// What is sent.
enum Request {
    /// One command.
    Command(NamedCommand),
    /// What makes several commands: where, and of what.
    Post(String, Value),
    /// What makes a part of something another.
    Patch(String, Value),
}

/// How long a command takes.
#[derive(Args, Clone, Copy)]
pub(crate) struct Patience {
    /// Wait until it is over, not only until it is announced.
    #[arg(long)]
    pub(super) wait: bool,
}

impl Patience {
    /// What is done at once needs none.
    pub(super) const NONE: Self = Self { wait: false };
}

impl Errand {
    pub(super) fn new(phrase: impl Into<String>, command: NamedCommand) -> Self {
        Self { request: Request::Command(command), phrase: phrase.into(), machine: None }
    }

    /// The same, about one machine.
    pub(super) fn about(self, machine: String) -> Self {
        Self { machine: Some(machine), ..self }
    }

    /// Something that is more than one command.
    pub(super) fn post(phrase: String, place: String, body: &impl Serialize) -> Result<Self> {
        Ok(Self { request: Request::Post(place, serde_json::to_value(body)?), phrase, machine: None })
    }

    /// A change of a part of something.
    pub(super) fn patch(phrase: String, place: String, body: &impl Serialize) -> Result<Self> {
        Ok(Self { request: Request::Patch(place, serde_json::to_value(body)?), phrase, machine: None })
    }
}

/// Asks for each of them, then waits for all of them if that is wanted.
///
/// One that is refused does not keep the others from being done: they are as independent as their names.
///
/// As JSON, what came of something that is waited for is printed when it is over, with how it ended.
pub(super) fn all(session: &Session, errands: &[Errand], patience: Patience) -> Result<()> {
    let (mut unfinished, mut unsuccessful) = (Unfinished::default(), 0);
    let (mut awaited, mut refused) = (Vec::new(), 0);
    for errand in errands {
        match send(session, errand) {
            Ok((answer, outcome)) => {
                let is_awaited = !outcome.work.is_empty() || !outcome.rollouts.is_empty();
                if is_awaited && patience.wait && session.output() == Output::Json {
                    wait::add(&mut unfinished, &outcome);
                    awaited.push(Awaited { errand, work: outcome.work, answer: Some(answer) });
                    continue;
                }
                show(session, errand, answer, &outcome)?;
                if is_awaited {
                    wait::add(&mut unfinished, &outcome);
                    awaited.push(Awaited { errand, work: outcome.work, answer: None });
                }
            }
            Err(problem) if problem.is::<Refused>() && errands.len() > 1 => {
                eprintln!("forewarn: {}", visible(&problem.to_string()));
                refused += 1;
            }
            Err(problem) => return Err(problem),
        }
    }
    if patience.wait {
        let over = wait::until_over(session, unfinished);
        let endings = over.as_ref().ok();
        awaited.iter_mut().try_for_each(|awaited| awaited.print_answer(endings))?;
        let endings = over?;
        for Awaited { errand, work, .. } in &awaited {
            let (ending, is_failure) = ended(work, &endings);
            let (phrase, why) = (say::capital(&errand.phrase), reasons(errand, work, &endings));
            match session.output() {
                _ if is_failure => eprintln!("forewarn: {}", visible(&format!("{phrase} {ending}{why}."))),
                Output::Table | Output::Wide => print(&visible(&format!("{phrase} {ending}.\n")))?,
                Output::Json => {}
            }
            unsuccessful += usize::from(is_failure);
        }
    }
    if refused > 0 {
        bail!("{refused} of {} were refused", errands.len());
    }
    if unsuccessful > 0 {
        bail!("{unsuccessful} of {} did not come about", errands.len());
    }
    Ok(())
}

/// Something that was asked for, and is waited for.
struct Awaited<'a> {
    errand: &'a Errand,
    work: Vec<u64>,
    /// The answer of the server, if it is not printed yet.
    answer: Option<Value>,
}

impl Awaited<'_> {
    /// Prints the answer as JSON, with the endings of its work as far as they are known.
    fn print_answer(&mut self, endings: Option<&BTreeMap<u64, EndedView>>) -> Result<()> {
        let Some(mut answer) = self.answer.take() else { return Ok(()) };
        if let Some(endings) = endings {
            let of_work: Vec<_> = self.work.iter().filter_map(|id| endings.get(id)).collect();
            answer["ended"] = serde_json::to_value(of_work)?;
        }
        print(&format!("{answer:#}\n"))
    }
}

/// The reasons why work failed, after a colon. The machine is named, unless it is the one that the errand is about.
fn reasons(errand: &Errand, work: &[u64], endings: &BTreeMap<u64, EndedView>) -> String {
    let failures: Vec<_> =
        work.iter().filter_map(|id| endings.get(id)).flat_map(|ended| &ended.failures).collect();
    match (failures.as_slice(), &errand.machine) {
        ([], _) => String::new(),
        ([only], Some(_)) => format!(": {}", only.reason),
        (several, _) => {
            let each = several.iter().map(|FailureView { machine, reason }| format!("{machine}: {reason}"));
            format!(": {}", each.collect::<Vec<_>>().join("; "))
        }
    }
}

/// How work ended, in words, and whether that is a failure.
fn ended(work: &[u64], endings: &BTreeMap<u64, EndedView>) -> (&'static str, bool) {
    let has = |how| work.iter().any(|id| endings.get(id).is_some_and(|ended| ended.how == how));
    match (has(Ending::Failed), has(Ending::Withdrawn)) {
        (true, _) => ("has failed", true),
        (false, true) => ("was cancelled", true),
        (false, false) => ("is over", false),
    }
}

/// Asks for one thing and says what came of it.
pub(super) fn one(session: &Session, errand: &Errand) -> Result<Outcome> {
    let (answer, outcome) = send(session, errand)?;
    show(session, errand, answer, &outcome)?;
    Ok(outcome)
}

/// Asks for one thing: the answer, and what it means.
fn send(session: &Session, errand: &Errand) -> Result<(Value, Outcome)> {
    let answer = match &errand.request {
        Request::Command(command) => session.post("/v1/commands", command)?,
        Request::Post(place, body) => session.post(place, body)?,
        Request::Patch(place, body) => session.patch(place, body)?,
    };
    let outcome = understand(answer.clone())?;
    Ok((answer, outcome))
}

/// Says what came of one thing.
fn show(session: &Session, errand: &Errand, answer: Value, outcome: &Outcome) -> Result<()> {
    session.present(answer, |outcome: Outcome| Ok(say::outcome(&outcome, &errand.phrase)))?;
    match session.output() {
        Output::Table | Output::Wide => enrol::hints(session, &outcome.untold, errand.machine.as_deref())?,
        Output::Json => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_piece_of_work_that_fails_fails_the_whole() {
        let endings = endings();
        assert_eq!(ended(&[1], &endings), ("is over", false));
        assert_eq!(ended(&[1, 2], &endings), ("has failed", true));
        assert_eq!(ended(&[3, 2], &endings), ("has failed", true));
        assert_eq!(ended(&[1, 3], &endings), ("was cancelled", true));
        assert_eq!(ended(&[9], &endings), ("is over", false), "nobody remembers");
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
        let errand = Errand {
            request: Request::Post(String::new(), Value::Null),
            phrase: String::new(),
            machine: None,
        };
        let reasons_of = |errand: &Errand, work: &[u64]| reasons(errand, work, &endings());
        assert_eq!(reasons_of(&errand, &[1, 3]), "");
        assert_eq!(reasons_of(&errand, &[1, 2]), ": web/web_0: no web/web_0");
        assert_eq!(reasons_of(&errand, &[2, 4]), ": web/web_0: no web/web_0; a/a: no a/a; b/b: no b/b");
        assert_eq!(reasons_of(&errand.about("web_0".to_owned()), &[2]), ": no web/web_0");
    }
}
