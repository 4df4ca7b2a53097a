//! The audit log, as far as a wait needs it.

use anyhow::Result;
use forewarn_control::{AuditEntry, AuditPage};

use super::super::session::{Session, escaped};

/// Entries of a page.
const PAGE_ENTRIES: usize = 1_000;

/// Cursor of the newest entry: the live stream continues after it.
pub(super) fn end(session: &Session) -> Result<String> {
    Ok(session.get::<AuditPage>("/v1/audit?limit=1")?.head)
}

/// The newest entry of a kind; `subject` is a query parameter and its value.
pub(super) fn newest(session: &Session, kind: &str, subject: (&str, &str)) -> Result<Option<AuditEntry>> {
    let (name, value) = (subject.0, escaped(subject.1));
    let mut before = String::new();
    loop {
        let page: AuditPage =
            session.get(&format!("/v1/audit?kind={kind}&{name}={value}&limit=1{before}"))?;
        // A page may be empty although older entries follow.
        match (page.items.into_iter().next(), page.next) {
            (Some(entry), _) => return Ok(Some(entry)),
            (None, Some(next)) => before = format!("&before={next}"),
            (None, None) => return Ok(None),
        }
    }
}

/// The entries after the one with this number, oldest first.
pub(super) fn since(session: &Session, number: u64) -> Result<Vec<AuditEntry>> {
    let (mut entries, mut before) = (Vec::new(), String::new());
    loop {
        let page: AuditPage = session.get(&format!("/v1/audit?limit={PAGE_ENTRIES}{before}"))?;
        let is_reached = page.items.iter().any(|entry| entry.number <= number);
        entries.extend(page.items.into_iter().filter(|entry| entry.number > number));
        match page.next {
            Some(next) if !is_reached => before = format!("&before={next}"),
            Some(_) | None => break,
        }
    }
    entries.reverse();
    Ok(entries)
}
