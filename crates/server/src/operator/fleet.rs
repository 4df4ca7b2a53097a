//! Handlers of the whole fleet.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::Query;
use axum::response::{IntoResponse, Response};
use forewarn_control::{
    ControlError, CurrentFleet, Difference, DifferenceState, DifferenceView, Fleet, FleetFileError,
    FleetPosition, FleetReport, NamedCommand, UnlistedObjects, difference, find_machine, refused_place,
};
use forewarn_lifecycle::{Cause, Cluster, MachineId};
use schemars::JsonSchema;
use serde::Deserialize;

use super::body::read;
use super::context::OperatorRequest;
use super::problem::ApiProblem;
use super::tagged::Tagged;
use crate::long_work::run_long_work;
use crate::snapshot::State;
use forewarn_control::request::{ClusterRequest, CommandBatch, HostNames, Reply, RequestContext};

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
    /// The state of a difference in the report, if everything that this request can do succeeds.
    fn state_of(self, difference: &Difference) -> DifferenceState {
        match (&difference.command, self.unmentioned) {
            (Some(NamedCommand::Move { .. }), _) if !self.moves => DifferenceState::Skipped,
            (Some(_), _) if self.dry_run => DifferenceState::Planned,
            (Some(_), _) => DifferenceState::Done,
            (None, UnmentionedWord::Keep) => DifferenceState::Surplus,
            (None, UnmentionedWord::Remove | UnmentionedWord::Forget) => DifferenceState::Later,
        }
    }

    fn unmentioned(self) -> UnlistedObjects {
        match self.unmentioned {
            UnmentionedWord::Keep => UnlistedObjects::Keep,
            UnmentionedWord::Remove => UnlistedObjects::Remove,
            UnmentionedWord::Forget => UnlistedObjects::Forget,
        }
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
    if options.dry_run {
        return apart((&request, &body), move |request, body| {
            let plan = FleetPlan::of(request, options, body)?;
            match plan.find_rejected(request) {
                Some((error, place)) => Err(ApiProblem::from(error).at(&place, body)),
                None => Ok(Json(plan.split().0.report).into_response()),
            }
        })
        .await;
    }
    let Applied { wanted, mut report, reply } = carry_out(&request, options, &body).await?;
    let removes = options.unmentioned() != UnlistedObjects::Keep;
    // A repeated request under the same key is not carried out again.
    if removes || matches!(reply, Some(Reply::Repeated(_))) {
        let wanted = Arc::new(wanted);
        let left = remove_containers((&request, &body), options, &wanted, entry_of(reply.as_ref())).await?;
        let left: BTreeSet<_> = left.iter().map(|one| subject(&one.text)).collect();
        for one in &mut report.differences {
            one.state = match one.state {
                DifferenceState::Skipped | DifferenceState::Surplus => one.state,
                _ if left.contains(subject(&one.text)) => DifferenceState::Later,
                DifferenceState::Done | DifferenceState::Planned | DifferenceState::Later => {
                    DifferenceState::Done
                }
            };
        }
    }
    apart((&request, &body), move |_, _| Ok(Json(report).into_response())).await
}

/// Removes containers that have become empty. Returns the differences that are left after it.
async fn remove_containers(
    (request, body): (&Arc<OperatorRequest>, &Bytes),
    options: ApplyOptions,
    wanted: &Arc<Fleet>,
    mut because: Option<u64>,
) -> Result<Vec<Difference>, ApiProblem> {
    let compared = || {
        let wanted = Arc::clone(wanted);
        apart((request, body), move |request, _| Ok::<_, ApiProblem>(compare(request, &wanted, options)??.1))
    };
    let left = compared().await?;
    let containers = left.iter().filter(|one| is_removal_of_container(one));
    let containers: Vec<_> = containers.filter_map(|one| one.command.clone()).collect();
    if containers.is_empty() {
        return Ok(left);
    }
    for command in containers {
        // A container that is not empty stays until the next time.
        let context = RequestContext { because, ..request.permit.context() };
        let outcome = request.control.run_commands(CommandBatch { commands: vec![command], context }).await;
        because = because.or(outcome.ok().and_then(|outcome| outcome.entry));
    }
    compared().await
}

/// Attempts to place instances while the cluster changes.
const PLANS_MAX: usize = 8;

/// A file whose commands were carried out.
struct Applied {
    wanted: Fleet,
    report: FleetReport,
    /// None if there was nothing to do.
    reply: Option<Reply>,
}

/// Plans and carries out the commands of a file. If they are rejected because the cluster has changed since the server
/// chose hosts for instances, they are planned again.
async fn carry_out(
    request: &Arc<OperatorRequest>,
    options: ApplyOptions,
    body: &Bytes,
) -> Result<Applied, ApiProblem> {
    let mut attempts = 1..;
    loop {
        let planned = apart((request, body), move |request, body| {
            let plan = FleetPlan::of(request, options, body)?;
            let context = request.checked_context(body, HostNames::FromCaller)?;
            Ok::<_, ApiProblem>((plan.split(), context))
        });
        let ((PlannedFleet { wanted, revision, report }, commands), context) = planned.await?;
        if commands.is_empty() {
            return Ok(Applied { wanted, report, reply: None });
        }
        let batch = ClusterRequest::Commands(CommandBatch { commands, context });
        let reply = request.control.request(request.control.to_cluster(batch)).await;
        let may_repeat = attempts.next().is_some_and(|attempt| attempt < PLANS_MAX);
        let places_instances = wanted.scale_sets.iter().any(|set| set.count.is_some());
        if reply.is_err() && may_repeat && places_instances {
            let is_outdated = request.control.look(|state| state.revision)? != revision;
            if is_outdated {
                continue;
            }
        }
        return match request.count_outcome(reply) {
            Ok(reply) => Ok(Applied { wanted, report, reply: Some(reply) }),
            Err(problem) => {
                Err(apart((request, body), move |request, body| located(request, options, problem, body))
                    .await)
            }
        };
    }
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
    /// Revision of the cluster that the file was compared with.
    revision: u64,
    /// Each with its state in the report.
    differences: Vec<(Difference, DifferenceState)>,
}

/// A plan without its commands.
struct PlannedFleet {
    wanted: Fleet,
    revision: u64,
    /// The report, if the commands are carried out.
    report: FleetReport,
}

impl FleetPlan {
    fn of(request: &OperatorRequest, options: ApplyOptions, body: &Bytes) -> Result<Self, ApiProblem> {
        let wanted: Fleet = read(body)?;
        let (revision, differences) = match compare(request, &wanted, options)? {
            Ok(compared) => compared,
            Err(FleetFileError::Entry { place, text }) => {
                return Err(ApiProblem::conflict(text).at(&place, body));
            }
            Err(bad @ FleetFileError::Malformed(_)) => return Err(bad.into()),
        };
        let with_state = |one: Difference| {
            let state = options.state_of(&one);
            (one, state)
        };
        let differences = differences.into_iter().map(with_state).collect();
        Ok(Self { wanted, revision, differences })
    }

    /// The commands to carry out, and the rest of the plan. Nothing is copied: a plan may have many commands.
    fn split(self) -> (PlannedFleet, Vec<NamedCommand>) {
        let Self { wanted, revision, differences } = self;
        let (mut report, mut commands) = (FleetReport { differences: Vec::new() }, Vec::new());
        for (Difference { text, command, .. }, state) in differences {
            commands.extend(command.filter(|_| is_applied(state)));
            report.differences.push(DifferenceView { text, state });
        }
        (PlannedFleet { wanted, revision, report }, commands)
    }

    /// The reason why the first command would be rejected, and the position of its entry.
    fn find_rejected(&self, request: &OperatorRequest) -> Option<(ControlError, FleetPosition)> {
        let applied = || self.differences.iter().filter(|(_, state)| is_applied(*state)).map(|(one, _)| one);
        let commands: Vec<_> = applied().filter_map(|one| one.command.clone()).collect();
        let refused = request.control.find_refused(&commands)?;
        let place = refused_place(applied(), &refused);
        Some((refused.error, place))
    }
}

/// Adds the position of the rejected entry to a problem, if it is still rejected. The commands are gone, so the file
/// is compared again.
fn located(
    request: &OperatorRequest,
    options: ApplyOptions,
    problem: ApiProblem,
    body: &Bytes,
) -> ApiProblem {
    let again = FleetPlan::of(request, options, body).ok().and_then(|plan| plan.find_rejected(request));
    match again.map(|(error, place)| (ApiProblem::from(error), place)) {
        Some((again, place)) if again == problem => problem.at(&place, body),
        Some(_) | None => problem,
    }
}

/// Returns true if the request carries out the command of the difference.
fn is_applied(state: DifferenceState) -> bool {
    match state {
        DifferenceState::Done | DifferenceState::Planned => true,
        DifferenceState::Later | DifferenceState::Skipped | DifferenceState::Surplus => false,
    }
}

/// The audit entry of commands.
fn entry_of(reply: Option<&Reply>) -> Option<u64> {
    match reply? {
        Reply::Outcome(outcome) | Reply::Repeated(outcome) => outcome.entry,
        Reply::Transacted(_) | Reply::Decided(_) | Reply::Done => None,
    }
}

fn compare(
    request: &OperatorRequest,
    wanted: &Fleet,
    options: ApplyOptions,
) -> Result<Result<(u64, Vec<Difference>), FleetFileError>, ApiProblem> {
    let compare = |state: &State<'_>| {
        let compare = |current: CurrentFleet<'_>| difference(current, wanted, options.unmentioned());
        let mut differences = state.with_fleet(compare)?;
        differences.iter_mut().for_each(|one| skip_if_busy(state.cluster, one));
        Ok((state.revision, differences))
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

/// The subject of a difference: the part before the comma.
fn subject(text: &str) -> &str {
    text.split(',').next().unwrap_or(text)
}
