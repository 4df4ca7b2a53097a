//! Takeovers: the head first, then the transaction, then the log, then the driver decides.

use forewarn_control::ClusterId;
use forewarn_ownership::{
    Answer, AttemptReason, ClockAnchor, HeadClock, StreamClock, StreamWriter, Takeover, TakeoverStep,
    attempts,
};

use super::Server;
use super::driver::{Driver, Local, Role, TakeoverStage};
use super::realm::CallPurpose;
use crate::context::Context;
use crate::engine::{EngineView, HeadDetails, StreamAnswer};
use crate::omission::Omission;

impl Server {
    /// Begins the takeovers that are due.
    pub(super) fn begin_takeovers(&mut self, context: &mut Context<'_>) {
        let uptime = self.clock.uptime(context.now);
        let Some(process) = &self.process else { return };
        // Before, every cluster seems to have no owner.
        if process.drivers.is_empty() {
            return;
        }
        let is_follower = |id: &ClusterId| {
            process.drivers.get(id).is_some_and(|driver| matches!(driver.role, Role::Follower))
        };
        let open: Vec<_> =
            process.standings.values().filter(|standing| is_follower(&standing.cluster)).collect();
        if open.is_empty() {
            return;
        }
        let due = attempts(&process.peers, uptime, open);
        for attempt in due.into_iter().filter(|attempt| attempt.at <= uptime) {
            let cluster = attempt.cluster;
            let id = self.look(context, CallPurpose::Head(cluster));
            self.set_stage(cluster, TakeoverStage::Head, id);
            context.step_log.add(context.now, self.name.as_str(), || {
                let reason = match attempt.reason {
                    AttemptReason::Unowned => "it has no owner".to_owned(),
                    AttemptReason::Restarted => "the owner key names this server".to_owned(),
                    AttemptReason::Suspected(reason) => format!("its owner is suspected, {reason:?}"),
                };
                format!("tries to take cluster {cluster} over: {reason}")
            });
        }
    }

    fn set_stage(&mut self, cluster: ClusterId, stage: TakeoverStage, call: u64) {
        if let Some(driver) = self.driver(cluster) {
            driver.role = Role::TakingOver(stage);
            driver.call = Some(call);
        }
    }

    fn driver(&mut self, cluster: ClusterId) -> Option<&mut Driver> {
        self.process.as_mut()?.drivers.get_mut(&cluster)
    }

    /// The head was read: writes the takeover, or accepts a move.
    pub(super) fn begin_takeover(
        &mut self,
        context: &mut Context<'_>,
        cluster: ClusterId,
        call: u64,
        view: &EngineView,
    ) {
        let uptime = self.clock.uptime(context.now);
        let Some(process) = &mut self.process else { return };
        let former_term = process.former_terms.get(&cluster).copied();
        let (Some(driver), Some(stream)) = (process.drivers.get_mut(&cluster), view.streams.get(&cluster))
        else {
            return;
        };
        if driver.call != Some(call) || !matches!(driver.role, Role::TakingOver(TakeoverStage::Head)) {
            return;
        }
        driver.call = None;
        let (boot, batch) = (Some(self.clock.boot), context.new_batch_id());
        let Some(head) = &stream.head else {
            let clock = StreamClock::new(boot, uptime);
            let details = HeadDetails { chain: driver.audit_end, records: 0 };
            let takeover = Takeover::creation(self.name.clone(), batch, details, clock.head_clock(uptime));
            driver.role = Role::TakingOver(TakeoverStage::Write(Box::new(takeover), clock));
            return self.with_driver(context, cluster, |_, _, _| {});
        };
        let mut head_clock: HeadClock = head.clock;
        if context.omits(Omission::ClockAnchor) {
            head_clock.anchor =
                head_clock.anchor.map(|anchor| ClockAnchor { boot: self.clock.boot, ..anchor });
        }
        let clock = StreamClock::resumed(&head_clock, boot, uptime);
        // This process has seen the owner before this one: no former process of this server has the term.
        let is_moved = former_term.is_some_and(|former| former + 1 == head.term.0);
        let accepted =
            StreamWriter::after_move(self.name.clone(), stream.owner.as_ref(), stream.revision, head.clone());
        if let (true, Ok(writer)) = (is_moved, accepted) {
            let call = self.look(context, CallPurpose::Log(cluster));
            return self.set_stage(cluster, TakeoverStage::Log(Box::new(writer), clock), call);
        }
        let takeover =
            Takeover::new(self.name.clone(), stream.revision, head, batch, clock.head_clock(uptime));
        match takeover {
            Ok(takeover) => driver.role = Role::TakingOver(TakeoverStage::Write(Box::new(takeover), clock)),
            Err(error) => {
                driver.role = Role::Follower;
                context.checks.fail(context.now, format!("a takeover cannot begin: {error}"));
            }
        }
        self.with_driver(context, cluster, |_, _, _| {});
    }

    /// Takes the answer to a transaction of a cluster.
    pub(super) fn take_transaction_answer(
        &mut self,
        context: &mut Context<'_>,
        cluster: ClusterId,
        call: u64,
        answer: StreamAnswer,
    ) {
        if self.driver(cluster).is_none_or(|driver| driver.call != Some(call)) {
            return;
        }
        let mut won = false;
        self.with_driver(context, cluster, |driver, local, context| {
            won = take_driver_answer(driver, local, context, answer);
        });
        if won {
            if context.omits(Omission::LogAfterTakeover) {
                return self.open(context, cluster);
            }
            let id = self.look(context, CallPurpose::Log(cluster));
            if let Some(driver) = self.driver(cluster) {
                driver.call = Some(id);
            }
        }
    }

    /// The head or the log could not be read in time.
    pub(super) fn repeat_takeover_read(&mut self, context: &mut Context<'_>, cluster: ClusterId, call: u64) {
        let Some(driver) = self.driver(cluster).filter(|driver| driver.call == Some(call)) else { return };
        driver.call = None;
        match &driver.role {
            Role::TakingOver(TakeoverStage::Head) => driver.role = Role::Follower,
            Role::TakingOver(TakeoverStage::Log(..)) => {
                let id = self.look(context, CallPurpose::Log(cluster));
                if let Some(driver) = self.driver(cluster) {
                    driver.call = Some(id);
                }
            }
            Role::TakingOver(TakeoverStage::Write(..)) | Role::Follower | Role::Owner(_) => {}
        }
    }

    /// The log was read after the takeover.
    pub(super) fn end_takeover(&mut self, context: &mut Context<'_>, cluster: ClusterId, call: u64) {
        let Some(driver) = self.driver(cluster).filter(|driver| driver.call == Some(call)) else { return };
        driver.call = None;
        self.open(context, cluster);
    }

    fn open(&mut self, context: &mut Context<'_>, cluster: ClusterId) {
        let Some(driver) = self.driver(cluster) else { return };
        let role = std::mem::replace(&mut driver.role, Role::Follower);
        let Role::TakingOver(TakeoverStage::Log(writer, clock)) = role else {
            driver.role = role;
            return;
        };
        // A later owner may have written since: this server has lost the cluster again.
        let is_complete = driver.state.log_number() == writer.head().number;
        if is_complete || context.omits(Omission::LogAfterTakeover) {
            self.with_driver(context, cluster, |driver, local, context| {
                driver.begin_ownership(local, context, *writer, clock);
            });
        }
    }
}

/// Takes an answer as owner, or as a server that takes over. Returns true if the takeover is won.
fn take_driver_answer(
    driver: &mut Driver,
    local: &mut Local<'_>,
    context: &mut Context<'_>,
    answer: StreamAnswer,
) -> bool {
    let role = std::mem::replace(&mut driver.role, Role::Follower);
    let Role::TakingOver(TakeoverStage::Write(takeover, clock)) = role else {
        driver.role = role;
        driver.take_answer(local, context, answer);
        return false;
    };
    driver.call = None;
    if answer == Answer::NoAnswer {
        context.step_log.add(context.now, local.name.as_str(), || "sends its takeover again".to_owned());
    }
    match takeover.answer(answer) {
        TakeoverStep::Won(writer) => {
            driver.role = Role::TakingOver(TakeoverStage::Log(Box::new(writer), clock));
            true
        }
        TakeoverStep::Repeat(takeover) => {
            driver.role = Role::TakingOver(TakeoverStage::Write(Box::new(takeover), clock));
            false
        }
        TakeoverStep::Lost { .. } | TakeoverStep::Rejected => false,
    }
}
