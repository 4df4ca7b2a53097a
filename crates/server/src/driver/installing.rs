//! A follower that lacks batches which the log no longer has continues from a later state of the log.

use std::sync::Arc;

use forewarn_control::ClusterState;
use forewarn_store::{InstalledState, StreamState};

use super::Driver;
use super::following::HeldBatches;
use crate::log_length::{LogLimits, WrittenLog};
use crate::message::LoggedState;
use crate::role::Role;

impl Driver {
    /// Continues from a state of the log, if it is later than the copy. Documents are those of the new state at once:
    /// their incarnations only grow.
    pub(super) async fn install(&mut self, logged: LoggedState<ClusterState>) {
        let LoggedState { state, position, clock } = logged;
        let is_later = position.number > self.state.log_number();
        if self.journal.role() != Role::Follower || self.journal.is_broken() || !is_later {
            return;
        }
        let (records, chain) = (position.records, position.chain);
        let installed =
            InstalledState { state: StreamState::Cluster(Arc::clone(&state)), records, chain, clock };
        let first_position = match self.journal.install(installed).await {
            Ok(installed) => installed.first_position,
            Err(error) => return self.handle_copy_error(&error),
        };
        let (from, to) = (self.state.log_number(), position.number);
        tracing::info!(cluster = self.id.0, from, to, "continued from a stored state of the log");
        self.logged = (Arc::clone(&state), position.chain);
        self.held = HeldBatches::default();
        self.state = state;
        (self.audit_end, self.audit_shown) = (position.chain, position.chain);
        self.unread.clear();
        self.durable = None;
        self.publish_all();
        self.settle_start();
        self.journal.show_all_entries();
        self.context.broadcasts.skip_entries(first_position - 1);
    }

    /// The log, if this server writes it, and the beginning of a stored state if it is long. A state with announcements
    /// that no VM may have read is not stored: its reader could not know them.
    pub(super) async fn written_log(&self, limits: &LogLimits) -> Option<WrittenLog> {
        if self.journal.role() != Role::Owner || self.journal.is_broken() || self.holds_batches() {
            return None;
        }
        let log = self.journal.log().clone();
        let (state, clock) = (&self.logged.0, self.context.clock.clone());
        let writing = if self.unread.is_empty() {
            let rows = || StreamState::Cluster(Arc::clone(state));
            log.begin_snapshot(limits, state.log_number(), rows).await
        } else {
            None
        };
        Some(WrittenLog { log, clock, writing })
    }
}
