//! Decisions: the response of the control plane to a request.
//!
//! ```text
//!   ControlState + Environment + Request ──decide──▶ Decision: new state, records, effects, audit entries, reply
//!                                                └──▶ ControlError: nothing has changed
//! ```
//!
//! A request is decided on a draft of the state. If anything in it is refused, the draft is dropped: a request is
//! carried out completely or not at all, and never becomes visible half decided. The journal stores the records;
//! applying them to the former state gives the new state.

mod administration;
mod attribution;
mod audit;
mod commands;
mod draft;
mod receipts;
mod resources;
mod site;
mod transaction;

use std::collections::BTreeSet;
use std::sync::Arc;

use forewarn_lifecycle::{MachineId, Now, Seed};

use crate::audit::{AuditEntry, Chain};
use crate::command::NamedCommand;
use crate::error::{ControlError, RefusedCommand};
use crate::record::Record;
use crate::request::{Reply, Request};
use crate::state::{ControlState, Effect};
use crate::stream::ClusterId;
use draft::Draft;

/// Everything besides the state that a decision depends on.
#[derive(Clone, Copy, Debug)]
pub struct Environment<'a> {
    pub now: Now,
    /// The secret that names of operations are made of.
    pub identity: Seed,
    /// The end of the audit log.
    pub audit: Chain,
    /// The hypervisor that carries out actions.
    pub hypervisor: HypervisorKind,
    /// Revision of the cluster that the request is to.
    pub revision: u64,
    /// Simulated machines of the cluster whose next action fails.
    pub jammed: &'a BTreeSet<MachineId>,
}

/// The hypervisor that carries out actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HypervisorKind {
    Simulated,
    /// A program of the operator acts on real machines.
    Program,
}

/// The result of a decision.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The state after the request.
    pub state: ControlState,
    /// The changes, in order.
    pub records: Vec<Record>,
    /// Work that the driver does once the records are durable.
    pub effects: Vec<Effect>,
    /// Entries of the audit log.
    pub audit: Vec<Arc<AuditEntry>>,
    /// The end of the audit log after them.
    pub audit_end: Chain,
    /// The result for the caller.
    pub reply: Reply,
}

/// Decides a request. The state does not change; the decision holds the new one.
///
/// # Errors
/// Fails if the request is refused.
pub fn decide(
    state: &ControlState,
    environment: &Environment<'_>,
    request: &Request,
) -> Result<Decision, ControlError> {
    let mut draft = Draft::new(state.clone(), environment);
    let reply = match request {
        Request::Cluster(id, request) => draft.cluster_request(*id, request)?,
        Request::Shared(request) => draft.shared_request(request)?,
    };
    Ok(draft.finish(reply))
}

/// Finds the first of several commands that would be refused.
#[must_use]
pub fn find_refused(
    state: &ControlState,
    environment: &Environment<'_>,
    id: ClusterId,
    commands: &[NamedCommand],
) -> Option<RefusedCommand> {
    Draft::new(state.clone(), environment).carry_out_all(id, commands, None).err()
}
