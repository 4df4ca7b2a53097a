//! Starting from a journal, and again after the journal has failed.

use std::collections::BTreeMap;
use std::sync::Arc;

use forewarn_control::shared::Change;
use forewarn_control::{Effect, Record};
use forewarn_metadata::Directory;
use forewarn_store::{AppendError, Recovered};
use tokio::sync::{mpsc, watch};

use super::Driver;
use super::batch::Batch;
use crate::broadcasts::Broadcasts;
use crate::clock::Clock;
use crate::clock_watch::ClockWatch;
use crate::hypervisor::Hypervisor;
use crate::initial_state::{InitialState, Readers};
use crate::journal::JournalHandle;
use crate::message::{Message, PendingReplies};

impl Driver {
    /// A driver of an initial state. Everything is published when this returns.
    pub(crate) fn new(
        InitialState { state, identity, audit_end, unread, readers, recorded }: InitialState,
        journal: JournalHandle,
        (clock, hypervisor): (Clock, Hypervisor),
        directory: Arc<Directory>,
        broadcasts: Broadcasts,
        own: mpsc::WeakSender<Message>,
    ) -> Self {
        let mut driver = Self {
            state,
            journal,
            identity,
            clock,
            hypervisor,
            runtimes: BTreeMap::new(),
            own,
            stopping: None,
            stop: watch::Sender::new(false),
            directory,
            broadcasts,
            audit_end,
            audit_shown: audit_end,
            unread: unread.into_iter().collect(),
            readers,
            recorded_clock: recorded,
            clock_watch: ClockWatch::default(),
            revision: 0,
            batch: Batch::default(),
            replies: PendingReplies::default(),
        };
        driver.publish_all();
        driver
    }

    pub(super) fn resume(&mut self) {
        let now = self.clock.now();
        let unfinished: Vec<_> = self.state.unfinished().collect();
        unfinished.into_iter().for_each(|(id, action)| self.perform(now, id, action));
        if let Some(boot) = self.clock.boot().filter(|boot| self.state.shared().boot() != Some(*boot))
            && self.journal.is_durable()
        {
            self.record(Record::shared(now, Change::Booted(boot)));
        }
        if self.clock_limit().is_some_and(|limit| limit.steady < now.steady) {
            self.record_clock(now);
        }
        if self.readers == Readers::Present {
            self.documents_became_readable();
        }
        self.commit();
    }

    /// Adds a record that no request has made to the batch.
    pub(super) fn record(&mut self, record: Record) {
        self.apply(std::slice::from_ref(&record)).into_iter().for_each(|effect| self.batch.add(effect));
        self.batch.records.push(record);
    }

    /// Applies records that no request has made: the only place where the driver changes its state itself.
    pub(super) fn apply(&mut self, records: &[Record]) -> Vec<Effect> {
        records.iter().flat_map(|record| self.state.apply(record)).collect()
    }

    /// Handles a failure of the journal: unwritten decisions are rolled back, published state stays.
    pub(super) fn handle_journal_failure(&mut self, error: &AppendError) {
        self.roll_back();
        if self.journal.is_broken() {
            // It has been reported.
            return;
        }
        tracing::error!(%error, "journal failed; documents are still served");
        self.journal.give_up();
        self.journal.wait();
        self.broadcasts.set_write_error(Some(error.to_string()));
    }

    /// Goes back to the state that was published last: later decisions are not durable.
    fn roll_back(&mut self) {
        let published = self.broadcasts.snapshot.load();
        self.state = published.state.clone();
        self.audit_end = self.audit_shown;
        // The record of the clocks may be among the unwritten ones.
        self.recorded_clock = published.clock_limit.unwrap_or(self.recorded_clock);
    }

    /// Handles a failure that the journal found by itself: its directory may have been removed.
    pub(super) fn check_journal(&mut self) {
        if let Some(error) = self.journal.failure() {
            self.handle_journal_failure(&error);
            std::mem::take(&mut self.batch).pending.reject();
        }
    }

    /// Reopens a failed journal when it is time, and continues from its state.
    pub(super) fn reopen_journal(&mut self) {
        let now = self.clock.now();
        let Some(Recovered { state, audit_chain: audit_end, unread, .. }) =
            self.journal.reopen(self.identity, now)
        else {
            return;
        };
        let published = self.broadcasts.published();
        (self.state, self.audit_end, self.audit_shown, self.recorded_clock) =
            (state, audit_end, audit_end, now);
        self.unread = unread.into_iter().collect();
        self.broadcasts.set_audit_reader(self.journal.audit_reader());
        self.publish_all();
        self.broadcasts.publish_missed_entries(&self.journal.audit_reader(), published);
        self.broadcasts.set_write_error(None);
        tracing::info!("journal recovered");
        // It may fail again at once.
        self.resume();
    }
}
