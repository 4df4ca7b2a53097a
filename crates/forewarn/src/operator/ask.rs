//! Asking for something by a command, and saying what came of it.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use clap::Args;
use forewarn_wire::operator::{Ending, NamedCommand, Outcome, Unfinished};
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
pub(super) fn all(session: &Session, errands: &[Errand], patience: Patience) -> Result<()> {
    let (mut unfinished, mut unsuccessful) = (Unfinished::default(), 0);
    let (mut awaited, mut refused) = (Vec::new(), 0);
    for errand in errands {
        match one(session, errand) {
            Ok(outcome) if outcome.work.is_empty() && outcome.rollouts.is_empty() => {}
            Ok(outcome) => {
                wait::add(&mut unfinished, &outcome);
                awaited.push((say::capital(&errand.phrase), outcome.work));
            }
            Err(problem) if problem.is::<Refused>() && errands.len() > 1 => {
                eprintln!("forewarn: {}", visible(&problem.to_string()));
                refused += 1;
            }
            Err(problem) => return Err(problem),
        }
    }
    if patience.wait {
        let endings = wait::until_over(session, unfinished)?;
        for (phrase, work) in &awaited {
            let (ending, is_failure) = ended(work, &endings);
            match session.output() {
                _ if is_failure => eprintln!("forewarn: {}", visible(&format!("{phrase} {ending}."))),
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

/// How work ended, in words, and whether that is a failure.
fn ended(work: &[u64], endings: &BTreeMap<u64, Ending>) -> (&'static str, bool) {
    let has = |how| work.iter().any(|id| endings.get(id) == Some(&how));
    match (has(Ending::Failed), has(Ending::Withdrawn)) {
        (true, _) => ("has failed", true),
        (false, true) => ("was cancelled", true),
        (false, false) => ("is over", false),
    }
}

/// Asks for one thing and says what came of it.
pub(super) fn one(session: &Session, errand: &Errand) -> Result<Outcome> {
    let answer = match &errand.request {
        Request::Command(command) => session.post("/v1/commands", command)?,
        Request::Post(place, body) => session.post(place, body)?,
        Request::Patch(place, body) => session.patch(place, body)?,
    };
    let outcome: Outcome = understand(answer.clone())?;
    session.present(answer, |outcome: Outcome| Ok(say::outcome(&outcome, &errand.phrase)))?;
    match session.output() {
        Output::Table | Output::Wide => enrol::hints(session, &outcome.untold, errand.machine.as_deref())?,
        Output::Json => {}
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_piece_of_work_that_fails_fails_the_whole() {
        let endings = BTreeMap::from([(1, Ending::Done), (2, Ending::Failed), (3, Ending::Withdrawn)]);
        assert_eq!(ended(&[1], &endings), ("is over", false));
        assert_eq!(ended(&[1, 2], &endings), ("has failed", true));
        assert_eq!(ended(&[3, 2], &endings), ("has failed", true));
        assert_eq!(ended(&[1, 3], &endings), ("was cancelled", true));
        assert_eq!(ended(&[9], &endings), ("is over", false), "nobody remembers");
    }
}
