//! Commits of the owner of a cluster: first durable, then published, answered and carried out.

use std::sync::Arc;
use std::time::Duration;

use forewarn_control::notice::MovedTimes;
use forewarn_control::{Record, Stream, StreamPosition};
use forewarn_lifecycle::{MaintenanceId, Now};
use forewarn_ownership::{Answer, BatchFate, Commit, OwnerRecord, StreamWriter, WriterStep};

use super::batch::{Batch, CommitStage, PendingCommit};
use super::driver::{Driver, Local, Role};
use crate::context::Context;
use crate::engine::{AuditMode, HeadDetails, LogBatch, StreamAnswer, StreamHead};
use crate::message::{Message, Node, RequestAnswer};
use crate::names::{index_of, name_of};
use crate::omission::Omission;

impl Driver {
    /// Begins the commit of everything that is decided.
    pub(crate) fn begin_commit(&mut self, local: &mut Local<'_>, context: &mut Context<'_>) {
        let Some(now) = self.now(local, context) else { return };
        let mut batch = std::mem::take(&mut self.batch);
        let unread: Vec<_> = self.unread.union(&batch.announced).copied().collect();
        batch.records.extend(Record::unread(now, self.id, &unread));
        self.add_position(&mut batch.records, now);
        let payload = LogBatch {
            records: batch.records.clone(),
            entries: batch.audit.clone(),
            mode: AuditMode::Append,
        };
        if context.omits(Omission::CommitBeforeAnswer) {
            self.publish(local, context);
            let pending = std::mem::take(&mut batch.pending).into_iter();
            self.answered.extend(pending.map(|(to, reply)| (to, RequestAnswer::Decided(Box::new(reply)))));
            std::mem::take(&mut batch.actions)
                .into_iter()
                .for_each(|action| self.perform(local, context, action));
        }
        let stage = CommitStage::First;
        self.send(local, context, payload, (batch, unread, now, Duration::ZERO, stage));
    }

    /// Puts the place of a batch before its records.
    fn add_position(&mut self, records: &mut Vec<Record>, now: Now) {
        let Role::Owner(ownership) = &self.role else { return };
        let head = ownership.writer.head();
        let position = StreamPosition {
            number: head.number + 1,
            term: head.term.0,
            records: head.details.records + records.len() as u64 + 1,
        };
        let record = Record::positioned(now, Stream::Cluster(self.id), position);
        self.apply(std::slice::from_ref(&record));
        records.insert(0, record);
    }

    fn send(
        &mut self,
        local: &Local<'_>,
        context: &mut Context<'_>,
        payload: LogBatch,
        (batch, unread, began, margin, stage): (Batch, Vec<MaintenanceId>, Now, Duration, CommitStage),
    ) {
        let (id, chain) = (context.new_batch_id(), self.audit_end);
        let Role::Owner(ownership) = &mut self.role else { return };
        let before = Box::new(ownership.writer.clone());
        let details = HeadDetails {
            chain,
            records: ownership.writer.head().details.records + payload.records.len() as u64,
        };
        let clock = ownership.clock.head_clock(local.clock.uptime(context.now));
        let number = ownership.writer.head().number + 1;
        let commit = Commit { batch: id, payload: Some(Arc::new(payload)), details, clock };
        if let Err(error) = ownership.writer.begin(commit) {
            context.checks.fail(context.now, format!("a commit cannot begin: {error}"));
            return;
        }
        ownership.commit = Some(PendingCommit { batch, unread, began, margin, stage, id, before });
        self.call = None;
        let cluster = self.id;
        context.step_log.add(context.now, local.name.as_str(), || {
            format!("sends batch {number} of cluster {cluster}: {}", stage.as_str())
        });
    }

    /// Takes an answer to the transaction of an owner.
    pub(crate) fn take_answer(
        &mut self,
        local: &mut Local<'_>,
        context: &mut Context<'_>,
        answer: StreamAnswer,
    ) {
        if answer == Answer::NoAnswer && context.omits(Omission::RepeatUntilKnown) {
            return self.forget_commit(local, context);
        }
        let Role::Owner(ownership) = &mut self.role else { return };
        match ownership.writer.answer(answer) {
            Ok(WriterStep::Committed { number, payload, .. }) => {
                let commit = ownership.commit.take();
                self.call = None;
                if let (Some(commit), Some(payload)) = (commit, payload) {
                    local.journal.push(payload);
                    let cluster = self.id;
                    context.step_log.add(context.now, local.name.as_str(), || {
                        format!("batch {number} of cluster {cluster} is durable")
                    });
                    self.complete(local, context, commit);
                }
            }
            Ok(WriterStep::Moved { to, .. }) => self.give_away(local, context, &to),
            Ok(WriterStep::Repeat) => self.call = None,
            Ok(WriterStep::Fenced { fate, head, revision, .. }) => {
                if context.omits(Omission::Fencing)
                    && let Some(head) = head
                {
                    return self.adopt(local, context, revision, &head);
                }
                self.end_after_fence(local, context, fate);
            }
            Ok(WriterStep::Rejected { .. }) => {
                context.checks.fail(context.now, "the engine has rejected a commit".to_owned());
            }
            Err(error) => context.checks.fail(context.now, format!("an unexpected answer: {error}")),
        }
        self.pump(local, context);
    }

    /// A batch is durable: moves times, or publishes, answers and acts.
    fn complete(&mut self, local: &mut Local<'_>, context: &mut Context<'_>, commit: PendingCommit) {
        self.logged = (Arc::clone(&self.state), self.audit_end);
        let PendingCommit { mut batch, unread, began, margin, .. } = commit;
        let Some(now) = self.now(local, context) else { return };
        let announced = &batch.announced;
        let mut times = MovedTimes::decide(self.id, &self.state, now, margin, announced, &batch.records);
        if times.is_empty() || context.omits(Omission::NoticeFromReadable) {
            return self.show(local, context, batch, now);
        }
        context.checks.count("moved announcements");
        let margin = margin.saturating_mul(2).max(now.steady.since(began.steady));
        let replies = batch.pending.iter_mut().filter_map(|(_, reply)| reply.as_mut().ok());
        replies.for_each(|reply| times.show_in_reply(reply));
        let mut records = std::mem::take(&mut times.records);
        self.apply(&records).into_iter().for_each(|effect| batch.add(&effect));
        records.extend(Record::unread(now, self.id, &unread));
        self.add_position(&mut records, now);
        let moved = times.move_in_audit(&mut batch.audit, self.audit_shown);
        let first = moved.map_or(batch.audit.len(), |(first, _)| first);
        self.audit_end = moved.map_or(self.audit_end, |(_, end)| end);
        let entries = batch.audit[first..].to_vec();
        let payload = LogBatch { records: records.clone(), entries, mode: AuditMode::Rewrite };
        batch.records.extend(records);
        self.send(local, context, payload, (batch, unread, now, margin, CommitStage::MovesTimes));
    }

    fn show(&mut self, local: &Local<'_>, context: &mut Context<'_>, batch: Batch, readable: Now) {
        self.publish(local, context);
        let pending =
            batch.pending.into_iter().map(|(to, reply)| (to, RequestAnswer::Decided(Box::new(reply))));
        self.replies.extend(pending);
        batch.actions.into_iter().for_each(|action| self.perform(local, context, action));
        if !context.omits(Omission::NoticeFromReadable) {
            self.hold_starts(context, readable, batch.announced);
        }
    }

    /// Another server has taken the cluster over.
    fn end_after_fence(&mut self, local: &Local<'_>, context: &mut Context<'_>, fate: BatchFate) {
        let commit = match &mut self.role {
            Role::Owner(ownership) => ownership.commit.take(),
            Role::Follower | Role::TakingOver(_) => None,
        };
        if let Some(commit) = commit {
            let answer = match fate {
                BatchFate::NotApplied => {
                    context.checks.claim_not_applied(self.id, commit.id);
                    RequestAnswer::NotDone
                }
                BatchFate::Unknown { .. } => RequestAnswer::Unknown,
            };
            self.fail(commit, &answer);
        }
        self.was_fenced = true;
        let cluster = self.id;
        context
            .step_log
            .add(context.now, local.name.as_str(), || format!("is fenced in cluster {cluster}: {fate:?}"));
        self.end_ownership(local, context);
    }

    /// A commit has failed. A part of its batch may be in the log: it is held, and its requests are carried out.
    fn fail(&mut self, commit: PendingCommit, answer: &RequestAnswer) {
        let PendingCommit { batch, stage, .. } = commit;
        (self.state, self.audit_end) = self.logged.clone();
        let answer = match stage {
            CommitStage::First => answer,
            CommitStage::MovesTimes => {
                self.is_held = true;
                self.unread.extend(batch.announced);
                &RequestAnswer::Unknown
            }
        };
        self.answered.extend(batch.pending.into_iter().map(|(to, _)| (to, answer.clone())));
    }

    /// Omission of rule 2: a commit without an answer counts as not made.
    fn forget_commit(&mut self, local: &mut Local<'_>, context: &mut Context<'_>) {
        let Role::Owner(ownership) = &mut self.role else { return };
        let Some(commit) = ownership.commit.take() else {
            self.call = None;
            return;
        };
        ownership.writer = StreamWriter::clone(&commit.before);
        context.checks.claim_not_applied(self.id, commit.id);
        self.fail(commit, &RequestAnswer::NotDone);
        self.call = None;
        self.pump(local, context);
    }

    /// Omission of rule 4: the server goes on with its own state.
    fn adopt(
        &mut self,
        local: &mut Local<'_>,
        context: &mut Context<'_>,
        revision: forewarn_ownership::Revision,
        head: &StreamHead,
    ) {
        let Role::Owner(ownership) = &mut self.role else { return };
        let owner = OwnerRecord { server: local.name.clone(), term: head.term };
        let adopted = StreamWriter::after_move(local.name.clone(), Some(&owner), revision, head.clone());
        let uptime = local.clock.uptime(context.now);
        let Ok(writer) = adopted else { return };
        ownership.writer = writer;
        ownership.clock =
            forewarn_ownership::StreamClock::resumed(&head.clock, Some(local.clock.boot), uptime);
        let commit = ownership.commit.take();
        self.call = None;
        if let Some(commit) = commit {
            self.batch.pending.extend(commit.batch.pending);
            self.batch.records.extend(commit.batch.records.into_iter().skip(1));
            self.batch.audit.extend(commit.batch.audit);
            self.batch.announced.extend(commit.batch.announced);
            self.batch.actions.extend(commit.batch.actions);
        }
        self.pump(local, context);
    }

    /// Begins a move that an operator wants.
    pub(crate) fn begin_move_if_wanted(&mut self, local: &Local<'_>, context: &mut Context<'_>) -> bool {
        let Some(to) = self.move_to.take().filter(|to| *to != local.server) else { return false };
        let batch = context.new_batch_id();
        let Role::Owner(ownership) = &mut self.role else { return false };
        let clock = ownership.clock.head_clock(local.clock.uptime(context.now));
        let name = name_of(to);
        let begun = ownership.writer.begin_move(name, batch, clock).is_ok();
        ownership.is_moving = begun;
        let cluster = self.id;
        context
            .step_log
            .add(context.now, local.name.as_str(), || format!("moves cluster {cluster} to {}", name_of(to)));
        begun
    }

    fn give_away(&mut self, local: &Local<'_>, context: &mut Context<'_>, to: &OwnerRecord) {
        context.checks.count("moves");
        self.end_ownership(local, context);
        if let Some(index) = index_of(&to.server) {
            context.send(Node::Server(index), Message::Moved { cluster: self.id });
        }
    }
}
