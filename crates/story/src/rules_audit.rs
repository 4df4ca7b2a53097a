//! The audit log of a story that runs in the rules: the entries that a server writes for the same story.

use forewarn_control::push::{NoticeContext, notices};
use forewarn_control::request::ITSELF;
use forewarn_control::{AuditEntry, Chain, NamedCommand, NewAuditEntry, describe_change, describe_request};
use forewarn_lifecycle::{Change, Cluster, Now};

/// The number and the name of the cluster of a story.
const CLUSTER: (u32, &str) = (0, "default");

/// The caller of the commands of a story: a server without tokens calls it that.
const CALLER: &str = "anyone";

/// Entries so far, and the cause of those that follow.
#[derive(Default)]
pub(crate) struct AuditRecorder {
    chain: Chain,
    entries: Vec<AuditEntry>,
    cause: Cause,
    /// Starts in the current decision.
    decided: Vec<Change>,
}

/// The cause of changes.
#[derive(Default)]
enum Cause {
    /// Time has passed, or a machine is ready.
    #[default]
    Itself,
    /// The request with this number.
    Request { number: u64, reason: Option<String> },
    /// A request of the machine with this full name.
    Machine(String),
}

/// A position to which the log can return.
#[derive(Clone, Copy)]
pub(crate) struct AuditMark {
    chain: Chain,
    entries: usize,
}

impl AuditRecorder {
    /// The entries after that number, oldest first.
    pub(crate) fn after(&self, number: u64) -> &[AuditEntry] {
        let first = self.entries.partition_point(|entry| entry.number <= number);
        &self.entries[first..]
    }

    pub(crate) fn mark(&self) -> AuditMark {
        AuditMark { chain: self.chain, entries: self.entries.len() }
    }

    /// Removes the entries after the mark: what caused them was refused.
    pub(crate) fn return_to(&mut self, mark: AuditMark) {
        self.chain = mark.chain;
        self.entries.truncate(mark.entries);
    }

    /// Records a command. The changes that follow are its consequences.
    pub(crate) fn request(&mut self, cluster: &Cluster, now: Now, command: &NamedCommand) {
        self.seal(describe_request(cluster, now, CLUSTER, CALLER, command));
        self.cause = Cause::Request { number: self.chain.number, reason: None };
    }

    /// The changes that follow have failed for this reason.
    pub(crate) fn because_of(&mut self, why: &str) {
        if let Cause::Request { reason, .. } = &mut self.cause {
            *reason = Some(why.to_owned());
        }
    }

    /// The changes that follow are due to a request of the machine.
    pub(crate) fn by_machine(&mut self, full_name: String) {
        self.cause = Cause::Machine(full_name);
    }

    /// The changes that follow are due to nobody.
    pub(crate) fn by_itself(&mut self) {
        self.cause = Cause::Itself;
    }

    /// Notes which work starts with the decision that plans it: it is never announced as scheduled.
    pub(crate) fn on_decision(&mut self, changes: &[Change]) {
        let is_start = |change: &&Change| matches!(change, Change::Started { .. });
        self.decided = changes.iter().filter(is_start).cloned().collect();
    }

    /// Records a change that is about to be applied.
    pub(crate) fn on_change(&mut self, cluster: &Cluster, now: Now, change: &Change) {
        let Some(fact) = describe_change(cluster, now, change) else { return };
        let context = NoticeContext { decided: &self.decided, ..NoticeContext::NOTHING };
        let notices = notices(cluster, change, context);
        let entry = match &self.cause {
            Cause::Itself => fact.into_entry(CLUSTER, ITSELF, None),
            Cause::Request { number, reason } => {
                let failed = matches!(change, Change::Completed { .. } | Change::Suspended { .. });
                let reason = reason.as_deref().filter(|_| failed);
                fact.with_reason(reason).into_entry(CLUSTER, ITSELF, Some(*number))
            }
            Cause::Machine(name) => fact.into_entry(CLUSTER, &format!("machine {name}"), None),
        };
        self.seal(NewAuditEntry { notices, ..entry });
    }

    fn seal(&mut self, entry: NewAuditEntry) {
        let entry = self.chain.seal(entry);
        self.entries.push(entry);
    }
}
