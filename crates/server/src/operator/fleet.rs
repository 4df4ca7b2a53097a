//! The fleet as a whole: shown, and made what a file says.

use std::collections::BTreeSet;

use axum::Json;
use axum::body::Bytes;
use axum::extract::Query;
use forewarn_control::{
    BadFleet, Difference, DifferenceState, DifferenceView, Fleet, FleetReport, MachineDetails, NamedCommand,
    Unmentioned, difference, find_machine, fleet_of,
};
use forewarn_lifecycle::{Cause, Cluster, MachineId};
use schemars::JsonSchema;
use serde::Deserialize;

use super::body::read;
use super::fault::Fault;
use super::tagged::Tagged;
use super::visit::Visit;
use crate::refused_entry::refused_place;
use forewarn_control::request::{CommandBatch, RequestContext};

/// How a fleet is applied.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct How {
    /// What happens to things that the file does not mention; they stay, if not said.
    unmentioned: UnmentionedWord,
    /// Whether moves are recorded of machines that the file has on other hosts; they are only listed, if not said.
    moves: bool,
    /// Whether it is only asked what would be done.
    dry_run: bool,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum UnmentionedWord {
    #[default]
    Keep,
    Remove,
    Forget,
}

impl How {
    /// Whether a difference is only listed.
    fn skips(self, difference: &Difference) -> bool {
        !self.moves && matches!(difference.command, Some(NamedCommand::Move { .. }))
    }
}

pub(super) async fn show(visit: Visit) -> Result<Tagged<Fleet>, Fault> {
    Ok(visit.tagged(visit.engine.look(fleet)?))
}

/// Makes the fleet what a file says. What can only go when something else is gone is tried once more at the end.
pub(super) async fn apply(
    visit: Visit,
    Query(how): Query<How>,
    body: Bytes,
) -> Result<Json<FleetReport>, Fault> {
    let wanted: Fleet = read(&body)?;
    let differences = match compare(&visit, &wanted, how)? {
        Ok(differences) => differences,
        Err(BadFleet::Entry { place, text }) => return Err(Fault::conflict(text).at(&place, &body)),
        Err(bad @ (BadFleet::TooLong | BadFleet::Malformed(_))) => return Err(bad.into()),
    };
    let applied: Vec<_> = differences.iter().filter(|one| !how.skips(one)).cloned().collect();
    let commands: Vec<_> = applied.iter().filter_map(|one| one.command.clone()).collect();
    if how.dry_run {
        if let Some(refused) = visit.engine.find_refused(&commands) {
            let place = refused_place(&applied, &refused);
            return Err(Fault::from(refused.error).at(&place, &body));
        }
        return Ok(Json(report(&differences, |one| match one.command {
            Some(_) if how.skips(one) => DifferenceState::Skipped,
            Some(_) => DifferenceState::Planned,
            None => DifferenceState::Later,
        })));
    }
    let mut because = None;
    if !commands.is_empty() {
        because = match visit.order(commands.clone(), &body).await {
            Ok(outcome) => outcome.entry,
            Err(fault) => return Err(located(&visit, &applied, &commands, fault, &body)),
        };
    }
    let left = compare(&visit, &wanted, how)??;
    let removals: Vec<_> = left.into_iter().filter(is_removal_of_container).collect();
    for Difference { command, .. } in &removals {
        // Something may have come since; then it stays, and is still there to be removed next time.
        if let Some(command) = command {
            let context = RequestContext { because, ..visit.permit.context() };
            let outcome = visit.engine.order(CommandBatch { commands: vec![command.clone()], context }).await;
            because = because.or(outcome.ok().and_then(|outcome| outcome.entry));
        }
    }
    let still: BTreeSet<_> =
        compare(&visit, &wanted, how)??.into_iter().map(|one| subject(&one.text)).collect();
    Ok(Json(report(&differences, |one| {
        // What was asked for before under the same key is not done again.
        match still.contains(&subject(&one.text)) {
            _ if how.skips(one) => DifferenceState::Skipped,
            true => DifferenceState::Later,
            false => DifferenceState::Done,
        }
    })))
}

/// The same fault, with the entry of the file that made the driver refuse the order, if it is still the one.
fn located(
    visit: &Visit,
    differences: &[Difference],
    commands: &[NamedCommand],
    fault: Fault,
    body: &[u8],
) -> Fault {
    match visit.engine.find_refused(commands) {
        Some(refused) if Fault::from(refused.error.clone()) == fault => {
            fault.at(&refused_place(differences, &refused), body)
        }
        Some(_) | None => fault,
    }
}

fn compare(visit: &Visit, wanted: &Fleet, how: How) -> Result<Result<Vec<Difference>, BadFleet>, Fault> {
    let unmentioned = match how.unmentioned {
        UnmentionedWord::Keep => Unmentioned::Keep,
        UnmentionedWord::Remove => Unmentioned::Remove,
        UnmentionedWord::Forget => Unmentioned::Forget,
    };
    let wanted = wanted.clone();
    let compare = move |state: &crate::snapshot::State<'_>| {
        let mut differences = difference(&fleet(state), &wanted, unmentioned)?;
        differences.iter_mut().for_each(|one| wait_for_an_end(state.cluster, one));
        Ok(differences)
    };
    Ok(visit.engine.look(compare)?)
}

/// A machine that is being deleted is not deleted again; one that the driver is at work on is forgotten later.
fn wait_for_an_end(cluster: &Cluster, difference: &mut Difference) {
    let (waits, machine): (fn(&Cluster, MachineId) -> bool, _) = match &difference.command {
        Some(NamedCommand::Delete { machine }) => (is_ending, machine),
        Some(NamedCommand::Forget { machine }) => (is_worked_on, machine),
        Some(_) | None => return,
    };
    if find_machine(cluster, machine).is_ok_and(|id| waits(cluster, id)) {
        difference.command = None;
    }
}

fn is_worked_on(cluster: &Cluster, machine: MachineId) -> bool {
    cluster.pending_of(machine).any(|work| work.action(machine).is_some())
}

fn is_ending(cluster: &Cluster, machine: MachineId) -> bool {
    let mut work = cluster.maintenances().filter(|work| matches!(work.plan.cause, Cause::UserDelete(_)));
    work.any(|work| work.plan.machines().any(|one| one == machine))
}

fn is_removal_of_container(difference: &Difference) -> bool {
    matches!(
        difference.command,
        Some(
            NamedCommand::RemoveTenant { .. }
                | NamedCommand::RemoveScaleSet { .. }
                | NamedCommand::RemoveHost { .. }
                | NamedCommand::ForgetHost { .. }
        )
    )
}

fn report(differences: &[Difference], state: impl Fn(&Difference) -> DifferenceState) -> FleetReport {
    let view = |one: &Difference| DifferenceView { text: one.text.clone(), state: state(one) };
    FleetReport { differences: differences.iter().map(view).collect() }
}

/// What a difference is about, whatever is said of it besides.
fn subject(text: &str) -> String {
    text.split(',').next().unwrap_or(text).to_owned()
}

fn fleet(state: &crate::snapshot::State<'_>) -> Fleet {
    let nothing = MachineDetails::default();
    fleet_of(state.cluster, state.site, |id| state.details.get(&id).unwrap_or(&nothing))
}
