//! Pages of the audit log for clients that resume or are too slow. Clients at the same place share a page.

use std::collections::VecDeque;
use std::sync::Arc;

use forewarn_store::{AuditQuery, ReadError};
use tokio::sync::Mutex;

use super::event::StreamEvent;
use crate::control_handle::ControlHandle;

/// Entries of a page.
pub(super) const PAGE_ENTRIES: usize = 100;

/// Pages that are kept for further clients.
const PAGES_MAX: usize = 32;

/// Rendered bytes of the pages that are kept.
const PAGES_BYTES_MAX: usize = 8 << 20;

/// Entries of the audit log that follow each other.
#[derive(Debug)]
pub(super) struct LogPage {
    /// The entries follow this position.
    after: u64,
    /// Replacements of the audit log before it was read.
    replacements: u64,
    pub(super) events: Vec<StreamEvent>,
    /// Entries up to this position have been swept.
    pub(super) swept: u64,
}

/// The last pages that were read. One page is read at a time, so that many slow clients do not delay other readers.
#[derive(Debug, Default)]
pub(super) struct LogPages(Mutex<VecDeque<Arc<LogPage>>>);

impl LogPages {
    /// The published entries after a position.
    pub(super) async fn read(
        self: Arc<Self>,
        control: ControlHandle,
        after: u64,
    ) -> Result<Arc<LogPage>, ReadError> {
        let mut kept = self.0.lock().await;
        if let Some(page) =
            kept.iter().find(|page| page.after == after && page.replacements == control.replacements())
        {
            return Ok(Arc::clone(page));
        }
        let (page, is_full) = read_page(&control, after).await?;
        let page = Arc::new(page);
        // The last page grows.
        if is_full {
            kept.push_back(Arc::clone(&page));
            let bytes = |kept: &VecDeque<Arc<LogPage>>| kept.iter().map(|page| page.bytes()).sum::<usize>();
            while kept.len() > PAGES_MAX || (kept.len() > 1 && bytes(&kept) > PAGES_BYTES_MAX) {
                kept.pop_front();
            }
        }
        Ok(page)
    }
}

impl LogPage {
    fn bytes(&self) -> usize {
        self.events.iter().map(StreamEvent::rendered_bytes).sum()
    }
}

/// Reads a page. Returns true with it if more entries follow.
pub(super) async fn read_page(control: &ControlHandle, after: u64) -> Result<(LogPage, bool), ReadError> {
    let replacements = control.replacements();
    // Unpublished entries follow later. Until then, the snapshot may lack a revocation that precedes them.
    let before = Some(control.published_position().saturating_add(1));
    let query = AuditQuery { after: Some(after), before, limit: PAGE_ENTRIES, ..AuditQuery::default() };
    let page = control.read_audit_log(query).await?;
    let events = page.entries.into_iter().map(StreamEvent::new).collect();
    // Clients cannot get entries that are missing here.
    let swept = page.swept.max(control.skipped_position());
    Ok((LogPage { after, replacements, events, swept }, page.next.is_some()))
}
