//! An audit entry as an event of the stream. Its JSON is rendered once, for all clients.

use std::fmt::Display;
use std::sync::{Arc, OnceLock};

use axum::body::Bytes;
use forewarn_control::AuditEntry;
use forewarn_store::LoggedEntry;
use prometheus_client::metrics::counter::Counter;
use serde_json::json;

/// An audit entry that clients may get.
#[derive(Debug)]
pub(super) struct StreamEvent {
    pub(super) position: u64,
    pub(super) entry: Arc<AuditEntry>,
    /// The lines after the id: they are the same for every client.
    data: OnceLock<Bytes>,
}

impl StreamEvent {
    pub(super) fn new(LoggedEntry { position, entry }: LoggedEntry) -> Self {
        Self { position, entry, data: OnceLock::new() }
    }

    /// Appends the event with an id. The first call renders the entry, and counts that.
    pub(super) fn write(&self, text: &mut Vec<u8>, id: impl Display, renderings: &Counter) {
        let data = self.data.get_or_init(|| {
            renderings.inc();
            render(&self.entry)
        });
        text.extend_from_slice(format!("id: {id}\n").as_bytes());
        text.extend_from_slice(data);
    }

    /// Bytes of the rendered entry; 0 before that.
    pub(super) fn rendered_bytes(&self) -> usize {
        self.data.get().map_or(0, Bytes::len)
    }
}

fn render(entry: &AuditEntry) -> Bytes {
    match serde_json::to_string(entry) {
        Ok(json) => format!("data: {json}\n\n").into(),
        Err(error) => missed(&error.to_string()).into(),
    }
}

/// The event that tells a client that it has missed entries, which are not in the audit log.
pub(super) fn missed(text: &str) -> Vec<u8> {
    format!("data: {}\n\n", json!({ "kind": "missed", "text": text })).into()
}
