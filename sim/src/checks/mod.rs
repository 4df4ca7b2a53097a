//! The observer of a simulation. It reads the log, the published documents, the effects and the answers, and keeps its
//! own records: its conclusions do not depend on the code under test.

mod documents;
mod history;
mod log;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use forewarn_control::{Chain, ClusterId, ClusterState};
use forewarn_lifecycle::{ActionName, EventId};
use forewarn_ownership::BatchId;

use crate::engine::{Engine, Written};
use crate::fleet::Fleet;
use crate::step_log::StepLog;

use documents::Documents;
pub(crate) use history::AnsweredRequest;
use history::History;
use log::ObservedLog;
pub(crate) use log::ServerCopies;

/// The observer.
#[derive(Default)]
pub(crate) struct Checks {
    violations: Vec<String>,
    documents: Documents,
    logs: BTreeMap<ClusterId, ObservedLog>,
    history: History,
    /// Batches of which a server said that they are not in the log.
    disclaimed: Vec<(ClusterId, BatchId)>,
    approvals: BTreeSet<EventId>,
    forced: BTreeSet<String>,
    effects: BTreeMap<ActionName, u32>,
    /// Number of observations of each kind, so that a test can check that a simulation has done something.
    pub(crate) seen: BTreeMap<&'static str, u64>,
}

impl Checks {
    pub(crate) fn new(fleet: &Fleet) -> Self {
        let logs = fleet.clusters.iter().map(|(id, initial)| (*id, ObservedLog::new(initial))).collect();
        Self { logs, ..Self::default() }
    }

    pub(crate) fn violation(&self) -> Option<&String> {
        self.violations.first()
    }

    pub(crate) fn fail(&mut self, now: u64, what: impl Into<String>) {
        let what = what.into();
        self.violations.push(format!("at {}.{:03} s: {what}", now / 1_000, now % 1_000));
    }

    pub(crate) fn count(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    /// A server shows a state to guests.
    pub(crate) fn published(
        &mut self,
        now: u64,
        (server, cluster): (usize, ClusterId),
        state: &Arc<ClusterState>,
        step_log: &mut StepLog,
    ) {
        if let Err(what) = self.documents.show(now, (server, cluster), state, step_log) {
            self.fail(now, what);
        }
    }

    /// The engine has written a batch.
    pub(crate) fn written(&mut self, now: u64, written: &Written, step_log: &mut StepLog) {
        self.count("batches");
        let Some(log) = self.logs.get_mut(&written.cluster) else { return };
        let starts = match log.append(now, written, step_log) {
            Ok(starts) => starts,
            Err(what) => return self.fail(now, what),
        };
        for start in starts {
            self.count(start.cause_word());
            let readable = |event: &EventId| self.documents.readable_since(*event);
            if let Err(what) = start.check(now, readable, &self.approvals, &self.forced) {
                self.fail(now, what);
            }
        }
    }

    /// Every head is at the end of its log.
    pub(crate) fn check_heads(&mut self, now: u64, engine: &Engine) {
        let heads = engine.streams().filter_map(|(id, keys)| Some((id, keys.head.as_ref()?.number)));
        let broken = heads.filter_map(|(id, number)| {
            let end = self.logs.get(&id)?.number();
            (number != end)
                .then(|| format!("the head of cluster {id} is at batch {number}, the log at {end}"))
        });
        let broken: Vec<_> = broken.collect();
        broken.into_iter().for_each(|what| self.fail(now, what));
    }

    /// A guest approves events.
    pub(crate) fn approves(&mut self, events: &[EventId]) {
        self.approvals.extend(events);
    }

    /// An operator forces the start of an event.
    pub(crate) fn forces(&mut self, event: &str) {
        self.forced.insert(event.to_owned());
    }

    /// The hypervisor carries out an action.
    pub(crate) fn effect(&mut self, now: u64, cluster: ClusterId, name: ActionName) {
        self.count("effects");
        let count = self.effects.entry(name).or_default();
        *count += 1;
        if *count > 1 {
            self.fail(now, format!("action {name} has a second effect"));
        }
        if !self.logs.get(&cluster).is_some_and(|log| log.has_action(name)) {
            self.fail(
                now,
                format!("action {name} is carried out, and is not in the log of cluster {cluster}"),
            );
        }
    }

    /// A server says that a batch is not in the log and never will be.
    pub(crate) fn claim_not_applied(&mut self, cluster: ClusterId, batch: BatchId) {
        self.disclaimed.push((cluster, batch));
    }

    pub(crate) fn answered(&mut self, request: AnsweredRequest) {
        self.count("answers");
        self.history.answered.push(request);
    }

    pub(crate) fn answered_not_done(&mut self, cluster: ClusterId, by: &str) {
        self.count("answers: not done");
        self.history.not_done.push((cluster, by.to_owned()));
    }

    pub(crate) fn read(&mut self, cluster: ClusterId, sent: u64, audit: Chain) {
        self.count("reads");
        self.history.reads.push((cluster, sent, audit));
    }

    /// True if nothing is announced or under way.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.logs.values().all(ObservedLog::is_at_rest)
    }

    /// The checks after the end: the history of clients, and the copies of all servers.
    pub(crate) fn finish(&mut self, now: u64, engine: &Engine, copies: &[ServerCopies<'_>]) {
        let mut broken = Vec::new();
        for (cluster, batch) in &self.disclaimed {
            if self.logs.get(cluster).is_some_and(|log| log.has_batch(*batch)) {
                broken.push(format!(
                    "a batch of cluster {cluster} is in the log, and its server said that it is not"
                ));
            }
        }
        for (cluster, log) in &self.logs {
            broken.extend(log.broken_promises());
            broken.extend(log.check_chain(*cluster));
            broken.extend(self.history.check(*cluster, log.audit()));
            broken.extend(log.check_copies(*cluster, engine, copies));
        }
        broken.into_iter().for_each(|what| self.fail(now, what));
    }
}
