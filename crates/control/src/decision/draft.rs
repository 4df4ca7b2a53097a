//! A draft of a decision: a copy of the state of one stream, and the changes so far.

use std::sync::Arc;

use forewarn_lifecycle::{Change, Cluster, Command, Now, Report};

use super::admissions::Admissions;
use super::attribution::Attribution;
use super::{Decision, Environment};
use crate::audit::{AuditEntry, Chain, describe_change};
use crate::effect::Effect;
use crate::error::ControlError;
use crate::limits::WEBHOOKS_MAX;
use crate::receipts::check_by;
use crate::record::{ClusterEntry, Record};
use crate::refusal::Refusal;
use crate::request::{ClusterRequest, DecidedChanges, IdempotencyKey, Reply, RequestContext};
use crate::shared::{self, Progress, SharedState, Webhook};
use crate::state::ClusterState;
use crate::stream::ClusterId;
use forewarn_types::Span;

/// A draft of a decision about the state of one stream.
pub(super) struct Draft<'a, S> {
    pub(super) environment: &'a Environment<'a>,
    pub(super) state: Arc<S>,
    pub(super) records: Vec<Record>,
    pub(super) effects: Vec<Effect>,
    pub(super) audit: Vec<Arc<AuditEntry>>,
    pub(super) audit_end: Chain,
    pub(super) attribution: Attribution,
}

/// A draft of a decision about the shared state.
pub(super) type SharedDraft<'a> = Draft<'a, SharedState>;

/// A draft of a decision about a cluster.
pub(super) struct ClusterDraft<'a> {
    pub(super) id: ClusterId,
    pub(super) shared: &'a SharedState,
    pub(super) draft: Draft<'a, ClusterState>,
    pub(super) claims: ClaimCheck,
    pub(super) admission_entries: AdmissionEntries,
}

/// The treatment of added objects in the audit log.
pub(super) enum AdmissionEntries {
    /// Each has an entry of its own.
    Single,
    /// Many have one entry. Those that have none yet are here.
    Collected(Option<Box<Admissions>>),
}

/// The treatment of resource groups that no cluster has claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClaimCheck {
    /// The cluster must have claimed them.
    Claimed,
    /// The cluster can claim them: nothing is committed.
    Claimable,
}

impl<'a, S> Draft<'a, S> {
    pub(super) fn new(state: &Arc<S>, environment: &'a Environment<'a>) -> Self {
        Self {
            environment,
            state: Arc::clone(state),
            records: Vec::new(),
            effects: Vec::new(),
            audit: Vec::new(),
            audit_end: environment.audit,
            attribution: Attribution::default(),
        }
    }

    pub(super) fn finish(self, reply: Reply) -> Decision<S> {
        let Self { state, records, effects, audit, audit_end, .. } = self;
        Decision { state, records, effects, audit, audit_end, reply }
    }

    pub(super) fn now(&self) -> Now {
        self.environment.now
    }

    /// Rejects a request that was planned for another state of the stream.
    pub(super) fn check_revision(&self, context: &RequestContext) -> Result<(), ControlError> {
        check_revision(self.environment.revision, context)
    }
}

impl SharedDraft<'_> {
    /// Applies a change and records it: the only way in which the draft changes its state.
    pub(super) fn write(&mut self, change: shared::Change) {
        let now = self.now();
        self.effects.append(&mut Arc::make_mut(&mut self.state).apply(now, &change));
        self.records.push(Record::shared(now, change));
    }

    /// Decides and applies a change of the shared state. Returns the number of changes.
    pub(super) fn change(&mut self, command: &shared::Command) -> Result<usize, Refusal> {
        let changes = self.state.decide(self.now(), command)?;
        let count = changes.len();
        changes.into_iter().for_each(|change| self.write(change));
        Ok(count)
    }
}

impl<'a> ClusterDraft<'a> {
    pub(super) fn new(
        (id, state): (ClusterId, &Arc<ClusterState>),
        shared: &'a SharedState,
        environment: &'a Environment<'a>,
        claims: ClaimCheck,
    ) -> Self {
        let draft = Draft::new(state, environment);
        Self { id, shared, draft, claims, admission_entries: AdmissionEntries::Single }
    }

    pub(super) fn finish(self, reply: Reply) -> Decision<ClusterState> {
        self.draft.finish(reply)
    }

    pub(super) fn now(&self) -> Now {
        self.draft.now()
    }

    pub(super) fn cluster(&self) -> &ClusterState {
        &self.draft.state
    }

    pub(super) fn rules(&self) -> &Cluster {
        self.draft.state.rules()
    }

    /// Applies a change and records it: the only way in which the draft changes its state.
    pub(super) fn write(&mut self, entry: ClusterEntry) {
        let (id, now) = (self.id, self.now());
        let state = Arc::make_mut(&mut self.draft.state);
        self.draft.effects.append(&mut state.apply(id, now, &entry));
        self.draft.records.push(Record::in_cluster(now, id, entry));
    }

    pub(super) fn request(&mut self, request: &ClusterRequest) -> Result<Reply, ControlError> {
        let is_gone = self.cluster().closed().is_some() || self.shared.cluster_name(self.id).is_none();
        if is_gone && !matches!(request, ClusterRequest::Close { .. }) {
            return Err(ControlError::NoSuchCluster);
        }
        match request {
            ClusterRequest::Rules(command) => {
                self.attribute_to_machine(command);
                self.decided(command)
            }
            ClusterRequest::Report { work, target, report, reason } => {
                self.draft.attribution = Attribution { reason: reason.clone(), ..Attribution::default() };
                let (maintenance, target, report) = (*work, *target, *report);
                self.decided(&Command::Complete { maintenance, target, report })
            }
            ClusterRequest::Suspend { work, target, reason } => {
                let reason = Some(reason.clone());
                self.draft.attribution = Attribution { reason, ..Attribution::default() };
                self.decided(&Command::Suspend { maintenance: *work, target: *target })
            }
            ClusterRequest::Remind { work, host, interval: Span(interval) } => {
                self.remind(*work, *host, *interval);
                Ok(Reply::Done)
            }
            ClusterRequest::Commands(batch) => self.command_batch(batch),
            ClusterRequest::ScaleSet { command, context } => self.scale_set_command(command, context),
            ClusterRequest::Transaction { transaction, context } => self.transaction(transaction, context),
            ClusterRequest::Sweep => {
                self.sweep();
                Ok(Reply::Done)
            }
            ClusterRequest::AdvanceWebhooks(reports) => self.advance_webhooks(reports),
            ClusterRequest::Close { by, once } => self.close(by, once.as_ref()),
        }
    }

    fn decided(&mut self, command: &Command) -> Result<Reply, ControlError> {
        let changes = self.change(command)?;
        Ok(Reply::Decided(DecidedChanges { changes, now: self.now() }))
    }

    /// Decides and applies a command of the rules, with its entries of the audit log and its consequences for
    /// resources.
    pub(super) fn change(&mut self, command: &Command) -> Result<Vec<Change>, ControlError> {
        let now = self.now();
        let changes = self.rules().decide(now, command)?;
        for change in &changes {
            if !self.joins_admissions(change) {
                self.describe(change, &changes);
            }
            self.write(ClusterEntry::Rules(change.clone()));
            self.follow_up(change);
        }
        Ok(changes)
    }

    /// Adds the audit entry of a change, if it is worth one.
    fn describe(&mut self, change: &Change, decided: &[Change]) {
        let reason = self.record_failure(change);
        let Some(fact) = describe_change(self.rules(), self.now(), change) else { return };
        let notices = self.notices(change, decided);
        if let Some(host) = self.notice_of_end(change, reason.as_deref()) {
            return self.audit_host(fact.with_reason(reason.as_deref()), notices, host);
        }
        if !notices.is_empty() {
            self.audit_admissions();
            self.begin_webhooks();
        }
        self.audit_change(change, fact.with_reason(reason.as_deref()), notices);
    }

    /// Records the reason of a failure before the change that completes the work with it. Returns the reason of a change.
    fn record_failure(&mut self, change: &Change) -> Option<String> {
        if let Change::Suspended { .. } = change {
            return self.draft.attribution.reason.clone();
        }
        let Change::Completed { maintenance, target, report: Report::Failed } = change else { return None };
        let reason = self.draft.attribution.reason.clone()?;
        let (maintenance, target) = (*maintenance, *target);
        self.write(ClusterEntry::Failed { maintenance, target, reason: reason.clone() });
        Some(reason)
    }

    /// Carries out everything in the cluster that is due at this moment.
    pub(super) fn settle(&mut self) -> Result<(), ControlError> {
        while self.tick()? || self.sweep() {}
        Ok(())
    }

    /// A silence that is due needs the time of the last poll, which the driver knows: it decides that silence first.
    fn tick(&mut self) -> Result<bool, ControlError> {
        let (rules, now) = (self.rules(), self.now());
        let is_due = rules.next_deadline().is_some_and(|deadline| deadline.is_due(now));
        if !is_due || rules.silences_due(now).next().is_some() {
            return Ok(false);
        }
        Ok(!self.change(&Command::Tick)?.is_empty())
    }

    /// Records that webhooks without progress get messages about entries from here on. They have got none: the first
    /// entry with notices since a webhook was added comes after this. No clock is compared, which may stand or go back.
    pub(super) fn begin_webhooks(&mut self) {
        let (id, cursor) = (self.id, self.draft.audit_end.number);
        let is_new = |webhook: &&Webhook| {
            webhook.filter.scope.clusters.includes(&id)
                && self.cluster().webhook_progress(webhook.number).is_none()
        };
        let new: Vec<_> = self.shared.webhooks().filter(is_new).map(|webhook| webhook.number).collect();
        for webhook in new {
            self.write(ClusterEntry::WebhookAdvanced { webhook, progress: Progress::from(cursor) });
        }
    }

    /// Ignores progress that would go back, and progress of webhooks that were removed. Webhooks without progress begin.
    fn advance_webhooks(&mut self, reports: &[(u32, Progress)]) -> Result<Reply, ControlError> {
        Refusal::check(reports.len(), WEBHOOKS_MAX, "webhooks")?;
        for (webhook, progress) in reports {
            let former = self.cluster().webhook_progress(*webhook);
            let is_news = former.is_none_or(|former| progress.continues(former));
            if is_news && self.shared.find_webhook(*webhook).is_some() {
                self.write(ClusterEntry::WebhookAdvanced { webhook: *webhook, progress: *progress });
            }
        }
        let known = self.cluster().webhooks().map(|(webhook, _)| webhook);
        let gone: Vec<_> = known.filter(|webhook| self.shared.find_webhook(*webhook).is_none()).collect();
        gone.into_iter().for_each(|webhook| self.write(ClusterEntry::WebhookForgotten(webhook)));
        self.begin_webhooks();
        Ok(Reply::Done)
    }

    /// Closes the cluster: only an empty one.
    fn close(&mut self, by: &str, once: Option<&IdempotencyKey>) -> Result<Reply, ControlError> {
        if self.cluster().closed().is_some() {
            return Ok(Reply::Done);
        }
        check_by(by)?;
        if self.id == ClusterId::DEFAULT {
            return Err(Refusal::DefaultCluster.into());
        }
        let name = self.shared.cluster_name(self.id).ok_or(ControlError::NoSuchCluster)?;
        if !self.cluster().is_empty() {
            return Err(ControlError::ClusterInUse(name.to_string()));
        }
        self.write(ClusterEntry::Closed { by: by.to_owned(), once: once.cloned() });
        Ok(Reply::Done)
    }
}

/// Rejects a request whose token was revoked or has expired since the request arrived.
pub(super) fn check_token(
    shared: &SharedState,
    now: Now,
    context: &RequestContext,
) -> Result<(), ControlError> {
    let Some(number) = context.token else { return Ok(()) };
    let token = shared.find_token(number).filter(|token| !token.is_expired(now.wall));
    token.map(drop).ok_or(ControlError::TokenGone)
}

/// Rejects a request that was planned for another state of the stream.
pub(super) fn check_revision(revision: u64, context: &RequestContext) -> Result<(), ControlError> {
    match context.if_revision {
        Some(planned) if planned != revision => Err(ControlError::Outdated),
        Some(_) | None => Ok(()),
    }
}
