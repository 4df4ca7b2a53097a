//! Decisions: the response of the control plane to a request.
//!
//! ```text
//!   ClusterState, SharedState + Environment + ClusterRequest ──▶ Decision<ClusterState>
//!   SharedState               + Environment + SharedRequest  ──▶ Decision<SharedState>
//!                               Decision: new state, records, effects, audit entries, reply
//!                               ControlError: nothing has changed
//! ```
//!
//! A decision belongs to one stream: it changes one state, and continues one audit log. A decision about a cluster
//! reads the shared state (names, tokens, webhooks, claims) and never another cluster.
//!
//! A request is decided on a draft of the state. If anything in it is refused, the draft is dropped: a request is
//! carried out completely or not at all, and never becomes visible half decided. The journal stores the records;
//! applying them to the former state gives the new state.

mod administration;
mod admissions;
mod attribution;
mod audit;
mod commands;
mod draft;
mod receipts;
mod reminders;
mod required_notice;
mod resources;
mod site;
mod transaction;

use std::collections::BTreeSet;
use std::sync::Arc;

use forewarn_lifecycle::{MachineId, Now};

use crate::audit::{AuditEntry, Chain};
use crate::command::NamedCommand;
use crate::effect::Effect;
use crate::error::{ControlError, RefusedCommand};
use crate::record::Record;
use crate::request::{ClusterRequest, Reply, SharedRequest};
use crate::shared::SharedState;
use crate::state::ClusterState;
use crate::stream::ClusterId;
use draft::{ClaimCheck, ClusterDraft, Draft};

pub use administration::ClusterRemoval;
pub use audit::describe_request;

/// Everything besides the state that a decision depends on.
#[derive(Clone, Copy, Debug)]
pub struct Environment<'a> {
    pub now: Now,
    /// The end of the audit log of the stream.
    pub audit: Chain,
    /// The hypervisor that carries out actions.
    pub hypervisor: HypervisorKind,
    /// Revision of the stream that the request is to.
    pub revision: u64,
    /// Simulated machines of the cluster whose next action fails.
    pub jammed: &'a BTreeSet<MachineId>,
}

/// The hypervisor that carries out actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HypervisorKind {
    Simulated,
    /// A program of the operator acts on real machines.
    Program(Fencing),
}

/// The need to fence a failed host before its machines start elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fencing {
    /// Two copies of a machine could write to one disk.
    #[default]
    Required,
    /// An operator has ruled that out by other means.
    Off,
}

/// The result of a decision about the state of one stream.
#[derive(Clone, Debug)]
pub struct Decision<S> {
    /// The state after the request.
    pub state: Arc<S>,
    /// The changes, in order.
    pub records: Vec<Record>,
    /// Work that the driver does once the records are durable.
    pub effects: Vec<Effect>,
    /// Entries of the audit log of the stream.
    pub audit: Vec<Arc<AuditEntry>>,
    /// The end of that log after them.
    pub audit_end: Chain,
    /// The result for the caller.
    pub reply: Reply,
}

/// Decides a request to a cluster. The state does not change; the decision holds the new one.
///
/// # Errors
/// Fails if the request is refused: with [`ControlError::Unclaimed`] if the cluster has not taken the claims that
/// [`claims_needed`](crate::claims_needed) names.
pub fn decide_in_cluster(
    id: ClusterId,
    state: &Arc<ClusterState>,
    shared: &Arc<SharedState>,
    environment: &Environment<'_>,
    request: &ClusterRequest,
) -> Result<Decision<ClusterState>, ControlError> {
    let mut draft = ClusterDraft::new((id, state), shared, environment, ClaimCheck::Claimed);
    let reply = draft.request(request)?;
    Ok(draft.finish(reply))
}

/// Decides a request to the shared state. The state does not change; the decision holds the new one.
///
/// # Errors
/// Fails if the request is refused.
pub fn decide_shared(
    state: &Arc<SharedState>,
    environment: &Environment<'_>,
    request: &SharedRequest,
) -> Result<Decision<SharedState>, ControlError> {
    let mut draft = Draft::new(state, environment);
    let reply = draft.request(request)?;
    Ok(draft.finish(reply))
}

/// Finds the first of several commands that would be refused. Resource groups that no cluster has claimed are allowed.
#[must_use]
pub fn find_refused(
    id: ClusterId,
    state: &Arc<ClusterState>,
    shared: &Arc<SharedState>,
    environment: &Environment<'_>,
    commands: &[NamedCommand],
) -> Option<RefusedCommand> {
    rehearse((id, state), shared, environment, commands).err()
}

/// The state of a cluster after several commands. Resource groups that no cluster has claimed are allowed.
///
/// # Errors
/// Fails with the first command that would be refused.
pub fn rehearse(
    (id, state): (ClusterId, &Arc<ClusterState>),
    shared: &Arc<SharedState>,
    environment: &Environment<'_>,
    commands: &[NamedCommand],
) -> Result<Arc<ClusterState>, RefusedCommand> {
    let mut draft = ClusterDraft::new((id, state), shared, environment, ClaimCheck::Claimable);
    draft.collect_admissions();
    draft.carry_out_all(commands, None)?;
    Ok(draft.finish(Reply::Done).state)
}
