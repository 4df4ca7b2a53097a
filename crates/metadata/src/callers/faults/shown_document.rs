//! The document that a caller with a fault sees.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::Guard;
use forewarn_types::{Event, Phase, Timestamp};

use crate::published::PublishedDocument;

/// Difference between the true incarnation and one that jumps.
const JUMP: u64 = 1_000;

/// The differences between the document of a caller and the published one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DocumentView {
    /// Scheduled events are hidden until this time before their `NotBefore`.
    pub(crate) hide: Option<Duration>,
    pub(crate) jumps: bool,
}

impl DocumentView {
    /// The document as the caller sees it. The incarnation grows by one when a hidden event appears, as if it had been
    /// announced then.
    pub(crate) fn of(
        self,
        published: Guard<Arc<PublishedDocument>>,
        now: Timestamp,
    ) -> Guard<Arc<PublishedDocument>> {
        if self == Self::default() {
            return published;
        }
        let PublishedDocument { document, duty, last_audit_entry, .. } = &**published;
        let mut document = document.clone();
        if let Some(span) = self.hide {
            let all = document.events.len();
            document.events.retain(|event| !is_hidden(event, span, now));
            let hidden = u64::try_from(all - document.events.len()).unwrap_or(u64::MAX);
            document.incarnation = document.incarnation.saturating_sub(hidden);
        }
        if self.jumps {
            document.incarnation = document.incarnation.saturating_add(JUMP);
        }
        Guard::from_inner(Arc::new(PublishedDocument::new(document, duty.clone(), *last_audit_entry)))
    }
}

fn is_hidden(event: &Event, span: Duration, now: Timestamp) -> bool {
    match event.phase {
        Phase::Scheduled { not_before, .. } => now.plus(span) < not_before,
        Phase::Started { .. } => false,
    }
}
