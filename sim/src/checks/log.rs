//! The log of a cluster: numbers, terms, starts, and the promises of the rules.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use forewarn_control::{AuditEntry, AuditVerifier, ClusterEntry, ClusterId, ClusterState, Entry, Record};
use forewarn_lifecycle::{
    ActionName, Approver, Change, Cluster, Command, EventId, EventKind, MaintenanceId, Now, StartCause,
    Target,
};
use forewarn_observer::observer::Observer;
use forewarn_ownership::{BatchId, ServerName};

use crate::engine::{Engine, Payload, Written};
use crate::fleet::InitialCluster;
use crate::step_log::StepLog;

pub(crate) struct ObservedLog {
    initial: Arc<ClusterState>,
    rules: Cluster,
    observer: Observer,
    number: u64,
    term: u64,
    batches: BTreeSet<BatchId>,
    events: BTreeSet<EventId>,
    works: BTreeSet<MaintenanceId>,
    actions: BTreeSet<ActionName>,
    audit: Vec<Arc<AuditEntry>>,
}

/// The copies of a server on disk, and the states that it shows.
pub(crate) struct ServerCopies<'a> {
    pub(crate) server: &'a ServerName,
    pub(crate) logs: &'a BTreeMap<ClusterId, Vec<Payload>>,
    pub(crate) states: BTreeMap<ClusterId, &'a ClusterState>,
}

/// The start of some work.
pub(crate) struct ObservedStart {
    work: MaintenanceId,
    cause: StartCause,
    events: Vec<(EventId, EventKind)>,
}

/// The promised notice, written down independently.
const fn minimum_notice_millis(kind: EventKind) -> u64 {
    match kind {
        EventKind::Freeze | EventKind::Reboot => 900_000,
        EventKind::Redeploy => 600_000,
        EventKind::Preempt => 30_000,
        EventKind::Terminate => 300_000,
    }
}

impl ObservedStart {
    pub(crate) fn cause_word(&self) -> &'static str {
        match self.cause {
            StartCause::Approved => "starts: approved",
            StartCause::Expired => "starts: notice over",
            StartCause::Automatic => "starts: by policy",
            StartCause::Failure => "starts: host failure",
            StartCause::Forced => "starts: forced",
            StartCause::AtOnce => "starts: without an event",
        }
    }

    /// Checks the notice from the moment at which guests could read the events on some server.
    pub(crate) fn check(
        &self,
        now: u64,
        readable_since: impl Fn(&EventId) -> Option<u64>,
        approvals: &BTreeSet<EventId>,
        forced: &BTreeSet<String>,
    ) -> Result<(), String> {
        let work = self.work.0;
        for (event, kind) in &self.events {
            let minimum = minimum_notice_millis(*kind);
            let is_permitted = match self.cause {
                StartCause::Expired => match readable_since(event) {
                    Some(since) if now >= since + minimum => true,
                    Some(since) => {
                        let given = now - since;
                        return Err(format!(
                            "work {work} starts {given} ms after {} was readable",
                            kind.as_str()
                        ));
                    }
                    None => return Err(format!("work {work} starts, and its event was never readable")),
                },
                StartCause::Approved => approvals.contains(event),
                StartCause::Forced => forced.contains(&event.to_string()),
                StartCause::Automatic | StartCause::Failure | StartCause::AtOnce => true,
            };
            if !is_permitted {
                return Err(format!("work {work} starts as {:?}, and no client wanted it", self.cause));
            }
        }
        Ok(())
    }
}

impl ObservedLog {
    pub(crate) fn new(initial: &InitialCluster) -> Self {
        let mut log = Self {
            initial: Arc::clone(&initial.state),
            rules: initial.empty.rules().clone(),
            observer: Observer::default(),
            number: 0,
            term: 0,
            batches: BTreeSet::new(),
            events: BTreeSet::new(),
            works: BTreeSet::new(),
            actions: BTreeSet::new(),
            audit: initial.entries.clone(),
        };
        for record in &initial.records {
            log.observe(record, &mut Vec::new());
        }
        log
    }

    pub(crate) fn audit(&self) -> &[Arc<AuditEntry>] {
        &self.audit
    }

    /// The number of the last batch.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn has_batch(&self, batch: BatchId) -> bool {
        self.batches.contains(&batch)
    }

    pub(crate) fn has_action(&self, name: ActionName) -> bool {
        self.actions.contains(&name)
    }

    pub(crate) fn is_at_rest(&self) -> bool {
        self.rules.maintenances().next().is_none()
    }

    /// Takes a batch. Returns the starts in it.
    pub(crate) fn append(
        &mut self,
        now: u64,
        written: &Written,
        step_log: &mut StepLog,
    ) -> Result<Vec<ObservedStart>, String> {
        let Written { cluster, number, batch, payload, term } = written;
        if *number != self.number + 1 {
            return Err(format!(
                "batch {number} of cluster {cluster} is written after batch {}",
                self.number
            ));
        }
        if !self.batches.insert(*batch) {
            return Err(format!("batch {number} of cluster {cluster} was in the log before"));
        }
        if *term < self.term {
            return Err(format!("batch {number} of cluster {cluster} has term {term} after {}", self.term));
        }
        (self.number, self.term) = (*number, *term);
        payload.extend_audit(&mut self.audit);
        let mut starts = Vec::new();
        for record in &payload.records {
            if let Err(what) = self.check_ids(record) {
                return Err(format!("cluster {cluster}: {what}"));
            }
            self.observe(record, &mut starts);
        }
        for start in &starts {
            step_log.add(now, "log", || {
                format!(
                    "cluster {cluster}, batch {number}: work {} starts, {}",
                    start.work.0,
                    start.cause_word()
                )
            });
        }
        Ok(starts)
    }

    /// No id of an event or of work occurs twice.
    fn check_ids(&mut self, record: &Record) -> Result<(), String> {
        let Entry::Cluster(_, ClusterEntry::Rules(Change::Planned(plan))) = &record.entry else {
            return Ok(());
        };
        let announcements = plan.parts.iter().filter_map(|part| part.announcement.as_ref());
        for id in announcements.map(|announcement| announcement.id) {
            if !self.events.insert(id) {
                return Err(format!("event id {id} is used twice"));
            }
        }
        if self.works.insert(plan.id) {
            Ok(())
        } else {
            Err(format!("the id of work {} is used twice", plan.id.0))
        }
    }

    /// Applies a record, and has the observer of the rules look at it.
    fn observe(&mut self, record: &Record, starts: &mut Vec<ObservedStart>) {
        let Entry::Cluster(_, ClusterEntry::Rules(change)) = &record.entry else { return };
        self.report_command(record.now, change);
        if let Change::Started { maintenance, cause, actions } = change {
            let parts = self.rules.maintenance(*maintenance).into_iter().flat_map(|known| &known.plan.parts);
            let announcements = parts.filter_map(|part| part.announcement.as_ref());
            let events = announcements.map(|announcement| (announcement.id, announcement.kind)).collect();
            starts.push(ObservedStart { work: *maintenance, cause: *cause, events });
            let name = |target: Target| self.rules.action_name(*maintenance, target);
            self.actions.extend(actions.iter().map(|action| name(action.target)));
        }
        let before = self.observer.look(&self.rules, change);
        let effects = self.rules.evolve(record.now, change);
        self.observer.changed(&before, &self.rules, record.now, change, &effects);
    }

    /// The observer of the rules learns of commands by their changes.
    fn report_command(&mut self, now: Now, change: &Change) {
        let command = if let Change::Approved { tenant, event, .. } = change {
            Command::Approve { tenant: *tenant, events: vec![*event], by: Approver::Owner }
        } else if let Change::Started { maintenance, cause: StartCause::Forced, .. } = change {
            Command::ForceStart(*maintenance)
        } else {
            return;
        };
        self.observer.asked(&self.rules, now, &command, &Ok(vec![change.clone()]));
    }

    pub(crate) fn broken_promises(&self) -> Vec<String> {
        self.observer.broken.iter().map(|(promise, what)| format!("promise {promise:?}: {what}")).collect()
    }

    /// The audit log has no gap, and its hashes are right.
    pub(crate) fn check_chain(&self, cluster: ClusterId) -> Option<String> {
        let mut verifier = AuditVerifier::new();
        let broken = self.audit.iter().find_map(|entry| verifier.verify(entry).err());
        broken.map(|broken| format!("the audit log of cluster {cluster} is broken: {broken}"))
    }

    /// The copies of all servers, and their states, are those of the log.
    pub(crate) fn check_copies(
        &self,
        cluster: ClusterId,
        engine: &Engine,
        copies: &[ServerCopies<'_>],
    ) -> Vec<String> {
        let mut broken = Vec::new();
        let Some(keys) = engine.stream(cluster) else { return broken };
        let log: Vec<_> = keys.log.values().map(|(_, payload)| payload).collect();
        if keys.head.as_ref().map_or(0, |head| head.number) != log.len() as u64 {
            broken.push(format!("the head of cluster {cluster} is not at the end of its log"));
        }
        let mut state = ClusterState::clone(&self.initial);
        for record in log.iter().flat_map(|payload| &payload.records) {
            if let Entry::Cluster(id, entry) = &record.entry {
                state.apply(*id, record.now, entry);
            }
        }
        for ServerCopies { server, logs, states } in copies {
            let copy = logs.get(&cluster);
            let is_copy = copy.is_some_and(|copy| {
                copy.len() == log.len() && copy.iter().zip(&log).all(|(one, other)| same(one, other))
            });
            if !is_copy {
                broken.push(format!("the copy of cluster {cluster} on {server} is not the log"));
            }
            if states.get(&cluster).is_none_or(|shown| **shown != state) {
                broken.push(format!("the state of cluster {cluster} on {server} is not that of the log"));
            }
        }
        broken
    }
}

fn same<T: PartialEq>(one: &Arc<T>, other: &Arc<T>) -> bool {
    Arc::ptr_eq(one, other) || one == other
}
