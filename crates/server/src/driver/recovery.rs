//! Starting from a journal, and again after the journal has failed.

use std::collections::BTreeMap;
use std::sync::Arc;

use forewarn_control::shared::Change;
use forewarn_control::{Effect, Record};
use forewarn_metadata::Directory;
use forewarn_store::{AppendFailed, Recovered};
use tokio::sync::{mpsc, watch};

use super::Driver;
use super::batch::Batch;
use crate::broadcasts::Broadcasts;
use crate::clock::Clock;
use crate::clock_watch::ClockWatch;
use crate::found::{Found, Readers};
use crate::hypervisor::Hypervisor;
use crate::journal::JournalHandle;
use crate::message::{Answers, Message};

impl Driver {
    /// A driver of the state that was found. Everything is published when this returns.
    pub(crate) fn new(
        Found { state, identity, audit_end, unread, readers, recorded }: Found,
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
            noted: recorded,
            clock_watch: ClockWatch::default(),
            revision: 0,
            batch: Batch::default(),
            answers: Answers::default(),
        };
        driver.publish_all();
        driver
    }

    /// Orders actions again that have no result yet.
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
            self.readers_came();
        }
        self.commit();
    }

    /// Takes a record into the batch that no request has made.
    pub(super) fn record(&mut self, record: Record) {
        self.apply(std::slice::from_ref(&record)).into_iter().for_each(|effect| self.batch.add(effect));
        self.batch.records.push(record);
    }

    /// Applies records that no request has made: the only place where the driver changes its state itself.
    pub(super) fn apply(&mut self, records: &[Record]) -> Vec<Effect> {
        records.iter().flat_map(|record| self.state.apply(record)).collect()
    }

    /// The journal has failed: what was decided and not written never was. What was published stays.
    pub(super) fn break_off(&mut self, problem: &AppendFailed) {
        self.roll_back();
        if self.journal.is_broken() {
            // The reason is known already.
            return;
        }
        tracing::error!(%problem, "nothing can be written; documents are still answered");
        self.journal.give_up();
        self.journal.wait();
        self.broadcasts.is_troubled(Some(problem.to_string()));
    }

    /// Goes back to the state that was published last: later decisions are not durable.
    fn roll_back(&mut self) {
        let published = self.broadcasts.snapshot.load();
        self.state = published.state.clone();
        self.audit_end = self.audit_shown;
        // The record of the clocks may be among what could not be written.
        self.noted = published.clock_limit.unwrap_or(self.noted);
    }

    /// Stops writing if the journal has found by itself that it cannot be written: its directory may have been removed.
    pub(super) fn check_journal(&mut self) {
        if let Some(problem) = self.journal.failure() {
            self.break_off(&problem);
            std::mem::take(&mut self.batch).answers.reject();
        }
    }

    /// Opens the journal again, if it has failed and it is time, and continues from what is found there.
    pub(super) fn reopen_journal(&mut self) {
        let now = self.clock.now();
        let Some(Recovered { state, trail, unread, .. }) = self.journal.reopen(self.identity, now) else {
            return;
        };
        let published = self.broadcasts.published();
        (self.state, self.audit_end, self.audit_shown, self.noted) = (state, trail, trail, now);
        self.unread = unread.into_iter().collect();
        self.broadcasts.can_read(self.journal.trail_reader());
        self.publish_all();
        self.broadcasts.tell_missed(&self.journal.trail_reader(), published);
        self.broadcasts.is_troubled(None);
        tracing::info!("the journal can be written again");
        // It may fail again at once, and say so.
        self.resume();
    }
}
