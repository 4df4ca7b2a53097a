//! An audit log as a server writes it.

use forewarn_control::push::{Notice, NoticeStatus};
use forewarn_control::{AuditEntry, Chain, NewAuditEntry};
use forewarn_types::{Moment, Timestamp};

/// The first second of the log.
const BEGINNING: i64 = 1_767_225_600;

#[derive(Default)]
pub(crate) struct TestLog {
    chain: Chain,
    pub(crate) entries: Vec<AuditEntry>,
    seconds: i64,
}

pub(crate) fn moment(seconds: i64) -> Moment {
    Moment(Timestamp::from_millis((BEGINNING + seconds) * 1_000))
}

impl TestLog {
    /// Lets seconds pass.
    pub(crate) fn pass(&mut self, seconds: i64) {
        self.seconds += seconds;
    }

    fn add(&mut self, new: NewAuditEntry) -> u64 {
        let entry = self.chain.seal(NewAuditEntry { at: moment(self.seconds), ..new });
        self.entries.push(entry);
        self.chain.number
    }

    pub(crate) fn command(&mut self, by: &str) -> u64 {
        let (by, kind) = (by.to_owned(), "command".to_owned());
        self.add(NewAuditEntry { by, kind, ..NewAuditEntry::default() })
    }

    /// An entry about the state of a Reboot with a notice of 15 minutes.
    pub(crate) fn event(&mut self, event: &str, status: NoticeStatus, text: &str) -> u64 {
        let notice = Notice {
            event: event.to_owned(),
            status,
            kind: "Reboot".to_owned(),
            source: "User".to_owned(),
            description: String::new(),
            duration: -1,
            not_before: (status == NoticeStatus::Scheduled).then(|| moment(self.seconds + 900)),
            tenant: "web".to_owned(),
            resource: String::new(),
            resources: vec!["web_0".to_owned()],
            failures: Vec::new(),
        };
        let kind = match status {
            NoticeStatus::Scheduled => "announced",
            NoticeStatus::Started => "started",
            NoticeStatus::Completed => "completed",
            NoticeStatus::Canceled => "withdrawn",
        };
        let (kind, text, events) = (kind.to_owned(), text.to_owned(), vec![event.to_owned()]);
        self.add(NewAuditEntry { kind, text, events, notices: vec![notice], ..NewAuditEntry::default() })
    }

    pub(crate) fn approve(&mut self, event: &str, by: &str, because: Option<u64>) -> u64 {
        let (by, kind, events) = (by.to_owned(), "approved".to_owned(), vec![event.to_owned()]);
        self.add(NewAuditEntry { by, kind, events, because, ..NewAuditEntry::default() })
    }

    /// An event that is announced, not approved, and starts after 15 minutes.
    pub(crate) fn expire(&mut self, event: &str) {
        self.event(event, NoticeStatus::Scheduled, "");
        self.pass(900);
        self.event(event, NoticeStatus::Started, "Reboot of web_0 has started, by the end of its notice");
    }
}
