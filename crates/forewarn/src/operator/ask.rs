//! Asking for something by a command, and saying what came of it.

use anyhow::{Result, bail};
use clap::Args;
use forewarn_wire::operator::{NamedCommand, Outcome, Unfinished};

use super::session::{Session, print, understand};
use super::{Output, enrol, say, wait};
use crate::client::Refused;

/// Something to ask for.
pub(super) struct Errand {
    pub(super) command: NamedCommand,
    /// What it is called in sentences: `restart of web_0`.
    pub(super) phrase: String,
    /// The machine that it is about, if it is about one.
    pub(super) machine: Option<String>,
}

/// How long a command takes.
#[derive(Args, Clone, Copy)]
pub(super) struct Patience {
    /// Wait until it is over, not only until it is announced.
    #[arg(long)]
    wait: bool,
}

impl Errand {
    pub(super) fn new(phrase: impl Into<String>, command: NamedCommand) -> Self {
        Self { command, phrase: phrase.into(), machine: None }
    }
}

/// Asks for each of them, then waits for all of them if that is wanted.
///
/// One that is refused does not keep the others from being done: they are as independent as their names.
pub(super) fn all(session: &Session, errands: &[Errand], patience: Patience) -> Result<()> {
    let mut unfinished = Unfinished::default();
    let (mut awaited, mut refused) = (String::new(), 0);
    for errand in errands {
        match one(session, errand) {
            Ok(outcome) if outcome.work.is_empty() && outcome.rollouts.is_empty() => {}
            Ok(outcome) => {
                awaited.push_str(&format!("{} is over.\n", say::capital(&errand.phrase)));
                wait::add(&mut unfinished, outcome);
            }
            Err(problem) if problem.is::<Refused>() && errands.len() > 1 => {
                eprintln!("forewarn: {problem}");
                refused += 1;
            }
            Err(problem) => return Err(problem),
        }
    }
    if patience.wait {
        wait::until_over(session, unfinished)?;
        match session.output() {
            Output::Table => print(&awaited)?,
            Output::Json => {}
        }
    }
    if refused > 0 {
        bail!("{refused} of {} were refused", errands.len());
    }
    Ok(())
}

/// Asks for one thing and says what came of it.
pub(super) fn one(session: &Session, errand: &Errand) -> Result<Outcome> {
    let answer = session.post("/v1/commands", &errand.command)?;
    let outcome: Outcome = understand(answer.clone())?;
    session.present(answer, |outcome: Outcome| Ok(say::outcome(&outcome, &errand.phrase)))?;
    match session.output() {
        Output::Table => enrol::hints(session, &outcome.at_once, errand.machine.as_deref())?,
        Output::Json => {}
    }
    Ok(outcome)
}
