//! A draft of a decision: a copy of the state, and the changes so far.

use std::sync::Arc;

use forewarn_lifecycle::{Change, Cluster, Command, Now, Report};

use super::attribution::Attribution;
use super::{Decision, Environment};
use crate::audit::{AuditEntry, Chain, describe_change};
use crate::error::ControlError;
use crate::record::{ClusterEntry, Entry, Record};
use crate::request::{ClusterRequest, DecidedChanges, Reply};
use crate::state::{ClusterState, ControlState, Effect};
use crate::stream::ClusterId;

/// A draft of a decision.
pub(super) struct Draft<'a> {
    pub(super) environment: &'a Environment<'a>,
    pub(super) state: ControlState,
    pub(super) records: Vec<Record>,
    pub(super) effects: Vec<Effect>,
    pub(super) audit: Vec<Arc<AuditEntry>>,
    pub(super) audit_end: Chain,
    pub(super) attribution: Attribution,
}

impl<'a> Draft<'a> {
    pub(super) fn new(state: ControlState, environment: &'a Environment<'a>) -> Self {
        Self {
            environment,
            state,
            records: Vec::new(),
            effects: Vec::new(),
            audit: Vec::new(),
            audit_end: environment.audit,
            attribution: Attribution::default(),
        }
    }

    pub(super) fn finish(self, reply: Reply) -> Decision {
        let Self { state, records, effects, audit, audit_end, .. } = self;
        Decision { state, records, effects, audit, audit_end, reply }
    }

    pub(super) fn now(&self) -> Now {
        self.environment.now
    }

    pub(super) fn cluster(&self, id: ClusterId) -> Result<&ClusterState, ControlError> {
        self.state.cluster(id).ok_or(ControlError::NoSuchCluster)
    }

    pub(super) fn rules(&self, id: ClusterId) -> Result<&Cluster, ControlError> {
        self.cluster(id).map(ClusterState::rules)
    }

    /// Applies a change and records it: the only way in which a draft changes its state.
    pub(super) fn write(&mut self, entry: Entry) {
        let record = Record { now: self.now(), entry };
        self.effects.append(&mut self.state.apply(&record));
        self.records.push(record);
    }

    /// Applies a change of a cluster and records it.
    pub(super) fn write_in_cluster(&mut self, id: ClusterId, change: ClusterEntry) {
        self.write(Entry::Cluster(id, change));
    }

    pub(super) fn cluster_request(
        &mut self,
        id: ClusterId,
        request: &ClusterRequest,
    ) -> Result<Reply, ControlError> {
        match request {
            ClusterRequest::Rules(command) => {
                self.attribute_to_machine(id, command);
                self.decided(id, command)
            }
            ClusterRequest::Report { work, machine, report, reason } => {
                self.attribution = Attribution { reason: reason.clone(), ..Attribution::default() };
                let (maintenance, machine, report) = (*work, *machine, *report);
                self.decided(id, &Command::Complete { maintenance, machine, report })
            }
            ClusterRequest::Commands(batch) => self.command_batch(id, batch),
            ClusterRequest::ScaleSet { command, context } => self.scale_set_command(id, command, context),
            ClusterRequest::Transaction { transaction, context } => {
                self.transaction(id, transaction, context)
            }
            ClusterRequest::Sweep => {
                self.sweep(id);
                Ok(Reply::Done)
            }
        }
    }

    fn decided(&mut self, id: ClusterId, command: &Command) -> Result<Reply, ControlError> {
        let changes = self.change(id, command)?;
        Ok(Reply::Decided(DecidedChanges { changes, now: self.now() }))
    }

    /// Decides and applies a command of the rules, with its entries of the audit log and its consequences for
    /// resources.
    pub(super) fn change(&mut self, id: ClusterId, command: &Command) -> Result<Vec<Change>, ControlError> {
        let now = self.now();
        let changes = self.rules(id)?.decide(now, command)?;
        for change in &changes {
            let reason = self.record_failure(id, change);
            if let Some(fact) = describe_change(self.rules(id)?, now, change) {
                let notices = self.notices(id, change, &changes);
                self.audit_fact(id, fact.with_reason(reason.as_deref()), notices);
            }
            self.write_in_cluster(id, ClusterEntry::Rules(change.clone()));
            self.follow_up(id, change);
        }
        Ok(changes)
    }

    /// Records the reason of a failure before the change that completes the work with it.
    fn record_failure(&mut self, id: ClusterId, change: &Change) -> Option<String> {
        let Change::Completed { maintenance, machine, report: Report::Failed } = change else { return None };
        let reason = self.attribution.reason.clone()?;
        let (maintenance, machine) = (*maintenance, *machine);
        let failed = ClusterEntry::Failed { maintenance, machine, reason: reason.clone() };
        self.write_in_cluster(id, failed);
        Some(reason)
    }

    /// Carries out everything in a cluster that is due at this moment.
    pub(super) fn settle(&mut self, id: ClusterId) -> Result<(), ControlError> {
        while self.tick(id)? || self.sweep(id) {}
        Ok(())
    }

    /// A silence that is due needs the time of the last poll, which the driver knows: it decides that silence first.
    fn tick(&mut self, id: ClusterId) -> Result<bool, ControlError> {
        let (rules, now) = (self.rules(id)?, self.now());
        let is_due = rules.next_deadline().is_some_and(|deadline| deadline.is_due(now));
        if !is_due || rules.silences_due(now).next().is_some() {
            return Ok(false);
        }
        Ok(!self.change(id, &Command::Tick)?.is_empty())
    }
}
