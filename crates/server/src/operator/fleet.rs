//! Handlers of the whole fleet.

use std::collections::BTreeSet;

use axum::Json;
use axum::body::Bytes;
use axum::extract::Query;
use forewarn_control::{
    Difference, DifferenceState, DifferenceView, Fleet, FleetFileError, FleetReport, MachineDetails,
    NamedCommand, UnlistedObjects, difference, find_machine, fleet_of,
};
use forewarn_lifecycle::{Cause, Cluster, MachineId};
use schemars::JsonSchema;
use serde::Deserialize;

use super::body::read;
use super::context::OperatorRequest;
use super::problem::ApiProblem;
use super::tagged::Tagged;
use crate::refused_entry::refused_place;
use forewarn_control::request::{CommandBatch, RequestContext};

/// Options of applying a fleet.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct ApplyOptions {
    /// Treatment of resources that the file does not mention; default: `keep`.
    unmentioned: UnmentionedWord,
    /// Record moves of machines that the file has on other hosts; default: only list them.
    moves: bool,
    /// Only report the differences.
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

impl ApplyOptions {
    /// Returns true if a difference is listed and not applied.
    fn skips(self, difference: &Difference) -> bool {
        !self.moves && matches!(difference.command, Some(NamedCommand::Move { .. }))
    }
}

pub(super) async fn show(request: OperatorRequest) -> Result<Tagged<Fleet>, ApiProblem> {
    Ok(request.tagged(request.control.look(fleet)?))
}

/// Changes the fleet to match a file. Containers are removed in a second pass, once they are empty.
pub(super) async fn apply(
    request: OperatorRequest,
    Query(options): Query<ApplyOptions>,
    body: Bytes,
) -> Result<Json<FleetReport>, ApiProblem> {
    let wanted: Fleet = read(&body)?;
    let differences = match compare(&request, &wanted, options)? {
        Ok(differences) => differences,
        Err(FleetFileError::Entry { place, text }) => {
            return Err(ApiProblem::conflict(text).at(&place, &body));
        }
        Err(bad @ (FleetFileError::TooLong | FleetFileError::Malformed(_))) => return Err(bad.into()),
    };
    let applied: Vec<_> = differences.iter().filter(|one| !options.skips(one)).cloned().collect();
    let commands: Vec<_> = applied.iter().filter_map(|one| one.command.clone()).collect();
    if options.dry_run {
        if let Some(refused) = request.control.find_refused(&commands) {
            let place = refused_place(&applied, &refused);
            return Err(ApiProblem::from(refused.error).at(&place, &body));
        }
        return Ok(Json(report(&differences, |one| match one.command {
            Some(_) if options.skips(one) => DifferenceState::Skipped,
            Some(_) => DifferenceState::Planned,
            None => DifferenceState::Later,
        })));
    }
    let mut because = None;
    if !commands.is_empty() {
        because = match request.run(commands.clone(), &body).await {
            Ok(outcome) => outcome.entry,
            Err(problem) => return Err(located(&request, &applied, &commands, problem, &body)),
        };
    }
    let left = compare(&request, &wanted, options)??;
    let removals: Vec<_> = left.into_iter().filter(is_removal_of_container).collect();
    for Difference { command, .. } in &removals {
        // A container that is not empty stays until the next time.
        if let Some(command) = command {
            let context = RequestContext { because, ..request.permit.context() };
            let outcome =
                request.control.run_commands(CommandBatch { commands: vec![command.clone()], context }).await;
            because = because.or(outcome.ok().and_then(|outcome| outcome.entry));
        }
    }
    let still: BTreeSet<_> =
        compare(&request, &wanted, options)??.into_iter().map(|one| subject(&one.text)).collect();
    Ok(Json(report(&differences, |one| {
        // A repeated request under the same key is not carried out again.
        match still.contains(&subject(&one.text)) {
            _ if options.skips(one) => DifferenceState::Skipped,
            true => DifferenceState::Later,
            false => DifferenceState::Done,
        }
    })))
}

/// Adds the position of the rejected entry to a problem, if it is still rejected.
fn located(
    request: &OperatorRequest,
    differences: &[Difference],
    commands: &[NamedCommand],
    problem: ApiProblem,
    body: &[u8],
) -> ApiProblem {
    match request.control.find_refused(commands) {
        Some(refused) if ApiProblem::from(refused.error.clone()) == problem => {
            problem.at(&refused_place(differences, &refused), body)
        }
        Some(_) | None => problem,
    }
}

fn compare(
    request: &OperatorRequest,
    wanted: &Fleet,
    options: ApplyOptions,
) -> Result<Result<Vec<Difference>, FleetFileError>, ApiProblem> {
    let unmentioned = match options.unmentioned {
        UnmentionedWord::Keep => UnlistedObjects::Keep,
        UnmentionedWord::Remove => UnlistedObjects::Remove,
        UnmentionedWord::Forget => UnlistedObjects::Forget,
    };
    let wanted = wanted.clone();
    let compare = move |state: &crate::snapshot::State<'_>| {
        let mut differences = difference(&fleet(state), &wanted, unmentioned)?;
        differences.iter_mut().for_each(|one| skip_if_busy(state.cluster, one));
        Ok(differences)
    };
    Ok(request.control.look(compare)?)
}

/// Skips machines that are being deleted, and defers forgetting a machine with an order in progress.
fn skip_if_busy(cluster: &Cluster, difference: &mut Difference) {
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

/// The subject of a difference: the part before the comma.
fn subject(text: &str) -> String {
    text.split(',').next().unwrap_or(text).to_owned()
}

fn fleet(state: &crate::snapshot::State<'_>) -> Fleet {
    let nothing = MachineDetails::default();
    fleet_of(state.cluster, state.site, |id| state.details.get(&id).unwrap_or(&nothing))
}
