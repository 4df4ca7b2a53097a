//! Handlers of the whole fleet.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::Query;
use axum::response::{IntoResponse, Response};
use forewarn_control::{
    Difference, DifferenceState, DifferenceView, Fleet, FleetFileError, FleetReport, NamedCommand,
    UnlistedObjects, difference, find_machine,
};
use forewarn_lifecycle::{Cause, Cluster, MachineId};
use schemars::JsonSchema;
use serde::Deserialize;

use super::body::read;
use super::context::OperatorRequest;
use super::problem::ApiProblem;
use super::tagged::Tagged;
use crate::long_work::run_long_work;
use crate::refused_entry::refused_place;
use crate::snapshot::State;
use forewarn_control::request::{CommandBatch, HostNames, RequestContext};

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
    Ok(request.tagged(request.control.look(|state| state.with_fleet(|current| current.fleet()))?))
}

/// Changes the fleet to match a file. Containers are removed in a second pass, once they are empty. Everything that
/// takes long with a large fleet is done on a thread for long work: requests of others wait for this one.
pub(super) async fn apply(
    request: OperatorRequest,
    Query(options): Query<ApplyOptions>,
    body: Bytes,
) -> Result<Response, ApiProblem> {
    let request = Arc::new(request);
    let plan = apart((&request, &body), move |request, body| FleetPlan::of(request, options, body)).await?;
    let (plan, batch) = (Arc::new(plan.0), plan.1);
    if options.dry_run {
        let plan = Arc::clone(&plan);
        return apart((&request, &body), move |request, body| {
            plan.rehearse(request, body).map(|report| Json(report).into_response())
        })
        .await;
    }
    let mut because = None;
    if !batch.commands.is_empty() {
        because = match request.run_batch(batch).await {
            Ok(outcome) => outcome.entry,
            Err(problem) => {
                let plan = Arc::clone(&plan);
                return Err(apart((&request, &body), move |request, body| {
                    plan.located(request, problem, body)
                })
                .await);
            }
        };
    }
    let compared = Arc::clone(&plan);
    let mut left = apart((&request, &body), move |request, _| compared.compare(request)).await?;
    let containers = left.iter().filter(|one| is_removal_of_container(one));
    let containers: Vec<_> = containers.filter_map(|one| one.command.clone()).collect();
    if !containers.is_empty() {
        for command in containers {
            // A container that is not empty stays until the next time.
            let context = RequestContext { because, ..request.permit.context() };
            let outcome =
                request.control.run_commands(CommandBatch { commands: vec![command], context }).await;
            because = because.or(outcome.ok().and_then(|outcome| outcome.entry));
        }
        let compared = Arc::clone(&plan);
        left = apart((&request, &body), move |request, _| compared.compare(request)).await?;
    }
    apart((&request, &body), move |_, _| Ok(Json(plan.report(&left)).into_response())).await
}

/// Runs some long work for a request.
async fn apart<T: Send + 'static>(
    (request, body): (&Arc<OperatorRequest>, &Bytes),
    work: impl FnOnce(&OperatorRequest, &Bytes) -> T + Send + 'static,
) -> T {
    let (request, body) = (Arc::clone(request), body.clone());
    run_long_work(move || work(&request, &body)).await
}

/// A fleet file, and its differences from the fleet.
struct FleetPlan {
    wanted: Fleet,
    options: ApplyOptions,
    differences: Vec<Difference>,
    /// Differences that are not skipped.
    applied: Vec<Difference>,
}

impl FleetPlan {
    /// The plan of a file, and the commands to carry out.
    fn of(
        request: &OperatorRequest,
        options: ApplyOptions,
        body: &Bytes,
    ) -> Result<(Self, CommandBatch), ApiProblem> {
        let wanted: Fleet = read(body)?;
        let differences = match compare(request, &wanted, options)? {
            Ok(differences) => differences,
            Err(FleetFileError::Entry { place, text }) => {
                return Err(ApiProblem::conflict(text).at(&place, body));
            }
            Err(bad @ (FleetFileError::TooLong | FleetFileError::Malformed(_))) => return Err(bad.into()),
        };
        let applied: Vec<_> = differences.iter().filter(|one| !options.skips(one)).cloned().collect();
        let plan = Self { wanted, options, differences, applied };
        let context = request.checked_context(body, HostNames::FromCaller)?;
        let batch = CommandBatch { commands: plan.commands(), context };
        Ok((plan, batch))
    }

    fn commands(&self) -> Vec<NamedCommand> {
        self.applied.iter().filter_map(|one| one.command.clone()).collect()
    }

    fn compare(&self, request: &OperatorRequest) -> Result<Vec<Difference>, ApiProblem> {
        Ok(compare(request, &self.wanted, self.options)??)
    }

    /// Reports the differences, and the first command that would be rejected.
    fn rehearse(&self, request: &OperatorRequest, body: &[u8]) -> Result<FleetReport, ApiProblem> {
        if let Some(refused) = request.control.find_refused(&self.commands()) {
            let place = refused_place(&self.applied, &refused);
            return Err(ApiProblem::from(refused.error).at(&place, body));
        }
        Ok(report(&self.differences, |one| match one.command {
            Some(_) if self.options.skips(one) => DifferenceState::Skipped,
            Some(_) => DifferenceState::Planned,
            None => DifferenceState::Later,
        }))
    }

    /// Reports the differences after they were applied, except those that are left.
    fn report(&self, left: &[Difference]) -> FleetReport {
        let left: BTreeSet<_> = left.iter().map(|one| subject(&one.text)).collect();
        report(&self.differences, |one| {
            // A repeated request under the same key is not carried out again.
            match left.contains(&subject(&one.text)) {
                _ if self.options.skips(one) => DifferenceState::Skipped,
                true => DifferenceState::Later,
                false => DifferenceState::Done,
            }
        })
    }

    /// Adds the position of the rejected entry to a problem, if it is still rejected.
    fn located(&self, request: &OperatorRequest, problem: ApiProblem, body: &[u8]) -> ApiProblem {
        match request.control.find_refused(&self.commands()) {
            Some(refused) if ApiProblem::from(refused.error.clone()) == problem => {
                problem.at(&refused_place(&self.applied, &refused), body)
            }
            Some(_) | None => problem,
        }
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
    let compare = |state: &State<'_>| {
        let mut differences = state.with_fleet(|current| difference(current, wanted, unmentioned))?;
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
    cluster.pending_of(machine).any(|work| matches!(work.plan.cause, Cause::UserDelete(_)))
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
