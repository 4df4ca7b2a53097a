//! The history of clients. An answer names its entry, so the order is known, and the check is linear.

use std::collections::BTreeMap;
use std::sync::Arc;

use forewarn_control::{AuditEntry, Chain, ClusterId};

/// A request with its answer. Each request has a caller of its own, which the audit log shows.
#[derive(Clone, Debug)]
pub(crate) struct AnsweredRequest {
    pub(crate) cluster: ClusterId,
    pub(crate) by: String,
    pub(crate) sent: u64,
    pub(crate) answered: u64,
    /// The number of its entry in the audit log; None if it was refused, or nothing had to change.
    pub(crate) entry: Option<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) answered: Vec<AnsweredRequest>,
    /// Requests that were sent once, and answered as not carried out.
    pub(crate) not_done: Vec<(ClusterId, String)>,
    /// Reads: the time at which each was sent, and the end of the audit log that it showed.
    pub(crate) reads: Vec<(ClusterId, u64, Chain)>,
}

impl History {
    /// Compares the history of a cluster with its log.
    pub(crate) fn check(&self, cluster: ClusterId, log: &[Arc<AuditEntry>]) -> Vec<String> {
        let mut broken = Vec::new();
        let mut numbers: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for entry in log.iter().filter(|entry| entry.kind == "command") {
            numbers.entry(&entry.by).or_default().push(entry.number);
        }
        for (by, numbers) in
            numbers.iter().filter(|(by, numbers)| by.starts_with("token") && numbers.len() > 1)
        {
            broken.push(format!("the request of {by} is in the log of cluster {cluster} as {numbers:?}"));
        }
        for request in self.answered.iter().filter(|request| request.cluster == cluster) {
            let found = numbers.get(request.by.as_str()).and_then(|numbers| numbers.first()).copied();
            if request.entry.is_some() && found != request.entry {
                let AnsweredRequest { by, entry, .. } = request;
                broken.push(format!(
                    "the request of {by} was answered as entry {entry:?}, the log has {found:?}"
                ));
            }
        }
        for (_, by) in self.not_done.iter().filter(|(of, _)| *of == cluster) {
            if numbers.contains_key(by.as_str()) {
                broken
                    .push(format!("the request of {by} is in the log, and was answered as not carried out"));
            }
        }
        broken.extend(self.check_order(cluster));
        broken.extend(self.check_reads(cluster, log));
        broken
    }

    /// A request that was sent after the answer to another one has a greater number.
    fn check_order(&self, cluster: ClusterId) -> Vec<String> {
        let mut broken = Vec::new();
        let of_cluster = self.answered.iter().filter(|request| request.cluster == cluster);
        // (time, is a question, number): all answers up to a time come before the requests that were sent after it.
        let mut steps = Vec::new();
        for request in of_cluster {
            let Some(entry) = request.entry else { continue };
            steps.push((request.answered, 1, entry));
            steps.push((request.sent, 0, entry));
        }
        let reads = self.reads.iter().filter(|(of, _, _)| *of == cluster);
        steps.extend(reads.map(|(_, sent, audit)| (*sent, 0, audit.number + 1)));
        steps.sort_unstable();
        let mut highest = 0;
        for (time, kind, entry) in steps {
            match kind {
                1 => highest = highest.max(entry),
                _ if entry <= highest => broken.push(format!(
                    "cluster {cluster}: a request or read that was sent at {time} ms has number {entry}, after {highest}"
                )),
                _ => {}
            }
        }
        broken
    }

    /// Every read is a prefix of the log.
    fn check_reads(&self, cluster: ClusterId, log: &[Arc<AuditEntry>]) -> Vec<String> {
        let mut broken = Vec::new();
        let ends: BTreeMap<_, _> =
            log.iter().filter_map(|entry| Some((entry.number, Chain::at(entry).ok()?))).collect();
        for (_, sent, audit) in self.reads.iter().filter(|(of, _, _)| *of == cluster) {
            if audit.number > 0 && ends.get(&audit.number) != Some(audit) {
                broken
                    .push(format!("a read of cluster {cluster}, sent at {sent} ms, is no prefix of its log"));
            }
        }
        broken
    }
}
