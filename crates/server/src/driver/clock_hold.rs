//! The hold for the sake of a clock: no event starts, and the audit log of each cluster that this server owns says so.

use std::sync::Arc;

use forewarn_control::request::ITSELF;
use forewarn_control::{AuditFact, ClusterEntry, ControlError, Entry, Record};
use forewarn_lifecycle::{Change, Now, StartCause};
use forewarn_types::Moment;

use super::{Driver, Role};
use crate::clock_hold::ClockHold;

impl Driver {
    /// Refuses decisions that start an event during the hold: an approval is repeated by its VM, a start by its operator.
    pub(super) fn check_hold(&self, records: &[Record]) -> Result<(), ControlError> {
        let starts_event = |record: &Record| match &record.entry {
            Entry::Cluster(_, ClusterEntry::Rules(Change::Started { cause, .. })) => match cause {
                StartCause::Approved | StartCause::Expired | StartCause::Automatic | StartCause::Forced => {
                    true
                }
                // A failed host does not wait, and the other work has no event.
                StartCause::Failure | StartCause::AtOnce => false,
            },
            Entry::Cluster(..) | Entry::Shared(_) => false,
        };
        if self.context.clock_hold.is_held() && records.iter().any(starts_event) {
            return Err(ControlError::Unavailable);
        }
        Ok(())
    }

    /// Writes an audit entry when the hold begins or ends.
    pub(super) fn note_clock_hold(&mut self, now: Now) {
        let held = self.context.clock_hold.by_millis();
        let is_writable = self.journal.role() == Role::Owner && !self.journal.is_broken();
        if held.is_some() == self.is_hold_noted || !is_writable || self.violation.is_some() {
            return;
        }
        self.is_hold_noted = held.is_some();
        let (kind, text) = match held {
            Some(by_millis) => ("clock_held", ClockHold::text(by_millis)),
            None => ("clock_agrees", "clock agrees with those of the other servers".to_owned()),
        };
        let shared = self.context.broadcasts.shared();
        let Some(name) = shared.cluster_name(self.id) else { return };
        let fact = AuditFact::plain(Moment(now.wall), kind, text);
        let entry = self.audit_end.seal(fact.into_entry((self.id.0, name.as_str()), ITSELF, None));
        self.batch.audit.push(Arc::new(entry));
    }
}
