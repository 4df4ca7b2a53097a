//! State that all connections of a listener share.

use std::sync::Arc;

use forewarn_metadata::Throttle;
use tokio::sync::{Semaphore, watch};

use super::LimitsCell;
use super::connection_state::Deadline;
use super::connection_watch::Interruption;
use super::counts::{Limit, ListenerCounts, Reason};
use super::limits::ClientLimits;
use super::refusal::RefusalFormat;
use super::table::Table;
use crate::tls::Tls;

/// State that all connections of a listener share.
#[derive(Debug)]
pub(super) struct ListenerShared {
    pub(super) router: axum::Router,
    pub(super) refusal_format: RefusalFormat,
    pub(super) tls: Option<Arc<Tls>>,
    pub(super) limits: LimitsCell,
    pub(super) counts: ListenerCounts,
    pub(super) table: Arc<Table>,
    /// Rejections that wait until their client has read them.
    pub(super) refusals: Semaphore,
    /// Repeated log lines about a full listener.
    pub(super) pressure: Throttle,
    pub(super) stop: watch::Receiver<bool>,
}

impl ListenerShared {
    pub(super) fn warn(&self, reason: Reason) {
        if let Some(unlogged) = self.pressure.pass() {
            let (listener, reason) = (self.counts.listener(), reason.as_str());
            tracing::warn!(listener, reason, unlogged, "listener is full; closing connections");
        }
    }

    pub(super) fn limits(&self) -> ClientLimits {
        **self.limits.load()
    }

    pub(super) fn count(&self, interruption: Interruption) {
        match interruption {
            Interruption::Late(Deadline { is_silence: true, .. }) => self.counts.ended(Limit::Silence),
            Interruption::Late(Deadline { stage, .. }) => self.counts.ended(Limit::of(stage)),
            // The table has counted it already.
            Interruption::Replaced | Interruption::Stopping => {}
        }
    }
}
