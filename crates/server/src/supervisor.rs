//! The supervisor: starts the drivers of a server, opens a failed journal again, and stops everything.

use std::sync::Arc;
use std::time::Duration;

use forewarn_metadata::Throttle;
use forewarn_store::AuditCheck;
use tokio::sync::{mpsc, oneshot};

use crate::clock_driver::ClockDriver;
use crate::clusters::ClusterRegistry;
use crate::driver::DriverContext;
use crate::initial_state::{InitialState, Readers};
use crate::journal::JournalHandle;
use crate::message::{ClockMessage, ClusterMessage, SharedMessage};
use crate::replacement::ServerState;
use crate::shared_driver::SharedDriver;

/// A request to the supervisor.
pub(crate) enum SupervisorRequest {
    /// Stops the server; replied to once everything has stopped.
    Stop { reply: oneshot::Sender<()> },
    /// Replaces the whole state of a server in memory. No request is open meanwhile.
    Replace { state: Arc<ServerState>, reply: oneshot::Sender<()> },
}

pub(crate) struct Supervisor {
    journal: JournalHandle,
    context: DriverContext,
    clusters: ClusterRegistry,
    shared: mpsc::Sender<SharedMessage>,
    clock: mpsc::Sender<ClockMessage>,
    /// Position up to which audit entries are published that drivers have not published. None if all are.
    missed_to: Option<u64>,
    read_failures: Throttle,
}

/// The inboxes of the drivers that every server has.
pub(crate) struct Inboxes {
    pub(crate) shared: mpsc::Receiver<SharedMessage>,
    pub(crate) clock: mpsc::Receiver<ClockMessage>,
}

/// Interval between two checks of the journal.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

impl Supervisor {
    /// Starts the drivers on the current runtime. Everything is published when this returns.
    pub(crate) fn start(
        initial: &InitialState,
        journal: JournalHandle,
        context: DriverContext,
        clusters: ClusterRegistry,
        (shared, clock): (mpsc::Sender<SharedMessage>, mpsc::Sender<ClockMessage>),
        inboxes: Inboxes,
    ) -> Self {
        let starts = (initial.shared(&journal), initial.clusters(&journal));
        let driver = SharedDriver::start(starts.0, starts.1, context.clone(), clusters.clone());
        let is_durable = journal.is_durable();
        let clock_driver = ClockDriver::new(context.clone(), clusters.clone(), is_durable, initial.recorded);
        tokio::spawn(abort_on_panic("shared stream", driver.run(inboxes.shared)));
        tokio::spawn(abort_on_panic("clock", clock_driver.run(inboxes.clock)));
        let (missed_to, read_failures) = (None, Throttle::default());
        Self { journal, context, clusters, shared, clock, missed_to, read_failures }
    }

    /// Runs until the server is stopped, or no handle is left.
    pub(crate) async fn run(mut self, mut requests: mpsc::Receiver<SupervisorRequest>) {
        let mut write_error = self.context.broadcasts.write_error.subscribe();
        loop {
            let pause = self.journal.until_retry().unwrap_or(CHECK_INTERVAL).min(CHECK_INTERVAL);
            tokio::select! {
                request = requests.recv() => match request {
                    None => return self.stop(None).await,
                    Some(SupervisorRequest::Stop { reply }) => return self.stop(Some(reply)).await,
                    Some(SupervisorRequest::Replace { state, reply }) => {
                        self.replace(&state).await;
                        // The caller may have gone.
                        reply.send(()).ok();
                    }
                },
                // A driver reports that it could not write.
                _ = write_error.changed() => {}
                () = tokio::time::sleep(pause) => {}
            }
            self.check_journal();
            self.report_audit_check();
            self.reopen_journal().await;
            self.publish_missed_entries().await;
        }
    }

    /// Closes a journal that has failed. Documents are still served.
    fn check_journal(&mut self) {
        if self.journal.is_broken() {
            return;
        }
        if let Some(error) = self.journal.failure() {
            tracing::error!(error, "journal failed; documents are still served");
            self.context.broadcasts.set_write_error(Some(error));
            self.journal.give_up();
        }
    }

    /// Publishes the results of the verification of the audit log, and logs damage and complete passes.
    fn report_audit_check(&self) {
        let (found, before) = (self.journal.audit_check(), &self.context.broadcasts.audit_check);
        let before = before.send_replace(found.clone());
        let AuditCheck { entries, passes, damages, last_damage } = found;
        if let Some(error) = last_damage.filter(|_| damages > before.damages) {
            tracing::error!(error, damages, "audit log is damaged");
        }
        if passes > before.passes {
            tracing::info!(entries, damages, "audit log verified");
        }
    }

    /// Opens a failed journal when it is time, and gives each driver its state.
    async fn reopen_journal(&mut self) {
        let (identity, now) = (self.context.identity, self.context.clock.now());
        let Some(found) = self.journal.reopen(identity, now) else { return };
        let initial = InitialState { recorded: now, ..InitialState::recovered(found, Readers::Present) };
        let reader = self.journal.audit_reader();
        self.missed_to = Some(initial.audit_head);
        self.context.broadcasts.set_audit_reader(reader);
        let (shared, journal) = (initial.shared(&self.journal), &self.journal);
        let clusters = initial.clusters(journal);
        let (reply, done) = oneshot::channel();
        let message = SharedMessage::Reopened { start: shared, clusters, reply };
        // The driver of the shared stream ends with the process only.
        drop(self.shared.send(message).await);
        let begun = done.await.unwrap_or_default();
        let mut waiting = Vec::new();
        for (id, start) in initial.clusters(journal).into_iter().filter(|(id, _)| !begun.contains(id)) {
            let Some(link) = self.clusters.get(id) else { continue };
            let (reply, done) = oneshot::channel();
            // A cluster that has failed stays so.
            link.post(ClusterMessage::Reopened { start, reply });
            waiting.push(done);
        }
        for done in waiting {
            drop(done.await);
        }
        self.publish_missed_entries().await;
        if self.journal.failure().is_none() {
            self.context.broadcasts.set_write_error(None);
            tracing::info!("journal recovered");
        }
        self.context.finish_removals().await;
    }

    /// Publishes audit entries whose commit was taken for failed. If they cannot be read, the next check tries again, or
    /// the next reopening.
    async fn publish_missed_entries(&mut self) {
        let Some(head) = self.missed_to.filter(|_| !self.journal.is_broken()) else { return };
        let reader = self.journal.audit_reader();
        match self.context.broadcasts.publish_missed_entries(&reader, head).await {
            Ok(()) => self.missed_to = None,
            Err(error) => {
                if let Some(unlogged) = self.read_failures.pass() {
                    tracing::warn!(%error, unlogged, "cannot read missed audit entries; retrying");
                }
            }
        }
    }

    /// Replaces the whole state of a server in memory: everything ends, and begins again from the new state.
    async fn replace(&mut self, to: &ServerState) {
        let (held, is_held) = oneshot::channel();
        let (release, released) = oneshot::channel();
        // The driver of the clock ends with the process only.
        drop(self.clock.send(ClockMessage::Hold { held, release: released }).await);
        drop(is_held.await);
        self.clusters.ask_all(|reply| ClusterMessage::End { reply }).await;
        self.journal.restart_in_memory(to.log.clone());
        let initial = to.initial();
        self.missed_to = None;
        self.context.clock.set(to.clock, to.speed);
        self.context.broadcasts.restart(self.journal.audit_reader(), initial.audit_head);
        let (start, clusters) = (initial.shared(&self.journal), initial.clusters(&self.journal));
        let (reply, done) = oneshot::channel();
        let message = SharedMessage::Replaced { start, clusters, identity: to.identity, reply };
        drop(self.shared.send(message).await);
        drop(done.await);
        self.context.broadcasts.commits.send_modify(|commits| *commits += 1);
        drop(release);
    }

    async fn stop(mut self, caller: Option<oneshot::Sender<()>>) {
        // An advance of the clock ends; drivers of clusters do what is due before they stop.
        self.context.stop.send_replace(true);
        let (reply, stopped) = oneshot::channel();
        // A driver may have ended.
        drop(self.clock.send(ClockMessage::Stop { reply }).await);
        drop(stopped.await);
        self.clusters.ask_all(|reply| ClusterMessage::Stop { reply }).await;
        let (reply, stopped) = oneshot::channel();
        drop(self.shared.send(SharedMessage::Stop { reply }).await);
        drop(stopped.await);
        self.journal.close();
        // The caller may have gone.
        caller.into_iter().for_each(|reply| reply.send(()).unwrap_or_default());
    }
}

/// Aborts the process if a driver that every cluster needs panics: the service manager restarts it from the journal.
pub(crate) async fn abort_on_panic(driver: &'static str, driving: impl Future<Output = ()>) {
    let _abort_on_panic = AbortOnPanic(driver);
    driving.await;
}

struct AbortOnPanic(&'static str);

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!(driver = self.0, "driver panicked; aborting");
            std::process::abort();
        }
    }
}
