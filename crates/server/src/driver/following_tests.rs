//! Batches of the log that a follower shows, or does not show yet.

use std::path::Path;
use std::time::Duration;

use forewarn_control::request::Reply;
use forewarn_control::{Chain, ClusterId, ClusterState, Record, Stream, StreamPosition};
use forewarn_lifecycle::{Command, Exposure, MaintenanceId, Now, Seed, Timestamp};
use forewarn_ownership::{BatchId, Term};
use forewarn_realm::{AuditMode, Batch, CommitFate};
use forewarn_store::{AUDIT_RETENTION, Journal, Options, UnreadEntries};
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};

use super::Driver;
use super::tests::{context_of, solo_restart, start};
use crate::clock::{Clock, Speed};
use crate::initial_state::{InitialState, Readers, StreamStart};
use crate::journal::JournalHandle;
use crate::realm_log::{CommitError, StreamLog};

const ID: ClusterId = ClusterId::DEFAULT;
const WORK: MaintenanceId = MaintenanceId(0);

/// A batch of an owner that decides commands, and does not know if VMs have read its announcements.
fn batch(rules: &mut forewarn_lifecycle::Cluster, number: u64, now: Now, commands: &[Command]) -> Batch {
    let position = StreamPosition { number, term: 1, records: number * 10 };
    let mut records = vec![Record::positioned(now, Stream::Cluster(ID), position)];
    for command in commands {
        for change in rules.decide(now, command).unwrap() {
            rules.evolve(now, &change);
            records.push(Record::rules(now, ID, change));
        }
    }
    records.extend(Record::unread(now, ID, &[WORK]));
    Batch {
        stream: Stream::Cluster(ID),
        number,
        term: Term(1),
        id: BatchId([7; 16]),
        records_before: 0,
        mode: AuditMode::Append,
        chain_before: Chain::default(),
        records,
        entries: Vec::new(),
    }
}

impl Driver {
    /// The time of the event as VMs read it.
    fn shown_time(&self) -> Option<Timestamp> {
        let snapshot = self.context.broadcasts.snapshot.load();
        let work = snapshot.state.cluster(ID).unwrap().rules().maintenance(WORK)?;
        Some(work.plan.not_before)
    }
}

/// The journal of a directory, and its state.
fn opened(place: &Path) -> (JournalHandle, InitialState) {
    let options = Options { unread: UnreadEntries::Hidden, ..Options::new(Seed([5; 16]), Now::at_millis(0)) };
    let (journal, found) = Journal::open(place, &options).unwrap();
    let journal = JournalHandle::in_directory(place.to_owned(), journal, AUDIT_RETENTION);
    (journal, InitialState::recovered(found, Readers::Absent))
}

/// A follower on the journal of a directory.
fn follower(place: &Path) -> (Driver, JournalHandle) {
    let (journal, initial) = opened(place);
    let context = context_of(&initial, Clock::virtual_at(start().wall, Speed(0)));
    let (own, _) = mpsc::channel(1);
    let driver = Driver::new(ID, followed(&initial, &journal), context, own.downgrade());
    (driver, journal)
}

fn followed(initial: &InitialState, journal: &JournalHandle) -> StreamStart<ClusterState> {
    let (_, mut stream) = initial.clusters(journal).remove(0);
    stream.journal.set_log(StreamLog::Followed);
    stream
}

/// The batches of an owner: an announcement, and one that moves its time; and the time that it moves to.
fn announced_and_moved(driver: &Driver) -> (Batch, Batch, Timestamp) {
    let (mut rules, later) = (driver.state.rules().clone(), start().plus(Duration::from_secs(20)));
    let announced = batch(&mut rules, 1, start(), &solo_restart());
    let exposure = Exposure::Unread { margin: Duration::ZERO };
    let ensure = Command::EnsureNotice { maintenances: vec![WORK], exposure };
    let moved = batch(&mut rules, 2, later, &[ensure]);
    let time = rules.maintenance(WORK).unwrap().plan.not_before;
    assert!(time >= later.wall.plus(Duration::from_mins(15)));
    (announced, moved, time)
}

/// promise: N5
#[tokio::test]
async fn a_follower_shows_no_time_that_the_owner_has_moved_before_it_was_shown() {
    let place = tempfile::tempdir().unwrap();
    let (mut driver, mut journal) = follower(place.path());
    let (announced, moved, time) = announced_and_moved(&driver);
    driver.follow(announced).await;
    assert_eq!(driver.shown_time(), None);
    // The owner has shown its state after the second batch, and never the one after the first.
    driver.follow_publication(2);
    assert_eq!(driver.shown_time(), None);
    driver.follow(moved).await;
    assert_eq!(driver.shown_time(), Some(time));
    journal.close();
}

impl Driver {
    /// Returns true if VMs may read what the driver has published.
    fn is_settled(&self) -> bool {
        self.context.unsettled.clusters().is_empty()
    }
}

/// promise: N5
#[tokio::test]
async fn a_follower_that_starts_is_settled_once_the_owner_shows_its_last_batch() {
    let place = tempfile::tempdir().unwrap();
    let (mut driver, mut journal) = follower(place.path());
    assert!(driver.is_settled(), "nothing is announced");
    let (announced, moved, time) = announced_and_moved(&driver);
    driver.follow(announced).await;
    assert!(driver.is_settled(), "it shows the state before");
    journal.close();

    // The owner shows the last batch: its time is final.
    let (mut driver, mut journal) = follower(place.path());
    let first = driver.shown_time().unwrap();
    driver.follow_publication(0);
    assert!(!driver.is_settled());
    driver.follow_publication(1);
    assert!(driver.is_settled() && driver.unread.is_empty());
    journal.close();

    // The owner shows a later one: it may have moved the time in between.
    let (mut driver, mut journal) = follower(place.path());
    driver.follow_publication(2);
    assert!(!driver.is_settled());
    driver.follow(moved).await;
    assert!(driver.is_settled());
    assert_eq!(driver.shown_time(), Some(time));
    assert_ne!(first, time);
    journal.close();
}

/// promise: N5
#[tokio::test]
async fn a_follower_shows_no_more_after_its_journal_was_opened_again() {
    let place = tempfile::tempdir().unwrap();
    let (mut driver, mut journal) = follower(place.path());
    let (announced, _, _) = announced_and_moved(&driver);
    driver.follow(announced).await;
    for was_shown in [false, true] {
        journal.close();
        let (reopened, initial) = opened(place.path());
        journal = reopened;
        driver.reopen(followed(&initial, &journal)).await;
        assert_eq!((driver.state.log_number(), driver.shown_time().is_some()), (1, was_shown));
        driver.follow_publication(1);
        assert!(driver.shown_time().is_some());
    }
    journal.close();
}

/// promise: C1
#[tokio::test]
async fn a_request_that_was_committed_before_a_takeover_is_answered_once_its_batch_is_shown() {
    let place = tempfile::tempdir().unwrap();
    let (mut driver, mut journal) = follower(place.path());
    let (reply, mut result) = oneshot::channel();
    let announced = batch(&mut driver.state.rules().clone(), 1, start(), &solo_restart());
    // It was the owner, has sent the batch, and learns that another server has taken over after it.
    driver.journal.set_log(StreamLog::None);
    driver.apply(&announced.records);
    let mut sent = super::batch::Batch::default();
    sent.pending.replies.push((reply, Ok(Reply::Done)));
    driver.handle_commit_error(&CommitError::Fenced(CommitFate::Applied), sent);
    driver.settle(start()).await;
    assert_eq!((result.try_recv(), driver.state.log_number()), (Err(TryRecvError::Empty), 0));
    driver.follow(announced).await;
    driver.settle(start()).await;
    assert_eq!((result.try_recv(), driver.shown_time()), (Err(TryRecvError::Empty), None));
    driver.follow_publication(1);
    driver.settle(start()).await;
    assert_eq!(result.try_recv(), Ok(Ok(Reply::Done)));
    assert!(driver.shown_time().is_some());
    journal.close();
}
