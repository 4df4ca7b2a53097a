//! Messages about hosts that are ready for the work of a person.

use std::time::Duration;

use forewarn_lifecycle::{Change, HostId, MaintenanceId, Report, Target};

use super::draft::ClusterDraft;
use crate::audit::describe_ready;
use crate::audit::host_notice::{HostNotice, HostNoticeStatus, step_since};
use crate::record::ClusterEntry;

impl ClusterDraft<'_> {
    /// Writes that a host is ready for work, or reminds of it if a reminder is due. Changes nothing if the host is not in
    /// its step.
    pub(super) fn remind(&mut self, work: MaintenanceId, host: HostId, interval: Duration) {
        let now = self.now();
        let Some(since) = step_since(self.rules(), work, host) else { return };
        let former = self.cluster().reminders(work, host);
        if former.is_some_and(|former| former.next(interval) > now.wall) {
            return;
        }
        let (status, waits) = match former {
            None => (HostNoticeStatus::Ready, None),
            Some(_) => (HostNoticeStatus::Reminder, Some(now.wall.since(since))),
        };
        let Some(notice) = HostNotice::of_step(self.rules(), (work, host), status) else { return };
        let reminder = former.map(|former| former.count.saturating_add(1));
        let fact = describe_ready(self.rules(), now, (work, host), waits.map(whole_seconds));
        self.audit_host(fact, Vec::new(), HostNotice { reminder, ..notice });
        self.write(ClusterEntry::Reminded { maintenance: work, host });
    }

    /// The message about the end of a step of which a person was notified, and about every failed step.
    pub(super) fn notice_of_end(&self, change: &Change, reason: Option<&str>) -> Option<HostNotice> {
        let Change::Completed { maintenance, target: Target::Host(host), report } = change else {
            return None;
        };
        let status = match report {
            Report::Done => {
                self.cluster().reminders(*maintenance, *host).map(|_| HostNoticeStatus::Completed)?
            }
            Report::Failed => HostNoticeStatus::Failed,
        };
        let notice = HostNotice::of_step(self.rules(), (*maintenance, *host), status)?;
        Some(HostNotice { reason: reason.map(str::to_owned), ..notice })
    }
}

fn whole_seconds(span: Duration) -> Duration {
    Duration::from_secs(span.as_secs())
}
