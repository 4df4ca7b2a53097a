//! Folds of the state of a cluster, and announcements that no VM may have read.

use forewarn_control::{ClusterId, Record, Stream};
use forewarn_lifecycle::{Command, Name, Now, Seed, Size};
use forewarn_store::{AUDIT_RETENTION, Journal, Options};
use tokio::sync::mpsc;

use super::Driver;
use super::tests::{context_of, solo_restart, start};
use crate::clock::{Clock, Speed};
use crate::initial_state::{InitialState, Readers};
use crate::journal::JournalHandle;

/// promise: N3
#[tokio::test]
async fn a_fold_drops_no_announcement_that_vms_may_not_have_read() {
    let (place, seed) = (tempfile::tempdir().unwrap(), Seed([5; 16]));
    let options = Options { fold_after: 1, ..Options::new(seed, Now::at_millis(0)) };
    let (journal, found) = Journal::open(place.path(), &options).unwrap();
    let mut journal = JournalHandle::in_directory(place.path().to_owned(), journal, AUDIT_RETENTION);
    let initial = InitialState::recovered(found, Readers::Absent);
    let clock = Clock::virtual_at(start().wall, Speed(0));
    let context = context_of(&initial, clock.clone());
    let (own, _) = mpsc::channel(1);
    let (_, stream) = initial.clusters(&journal).remove(0);
    let mut driver = Driver::new(ClusterId::DEFAULT, stream, context, own.downgrade());
    let hosts = (0..50).map(|number| Name::new(&format!("h-{number}")).unwrap());
    let hosts = hosts.map(|name| Command::AdmitHost { name, zone: None, capacity: Size::NONE });
    for command in solo_restart().into_iter().chain(hosts) {
        driver.submit(command).await;
    }
    driver.commit().await;
    assert_eq!(driver.unread.len(), 1);
    // Commits of other streams finish a fold.
    let shared = journal.of(Stream::Shared);
    for millis in 1..10 {
        shared.append(&mut vec![Record::clock(Now::at_millis(millis))], &[], &clock).await.unwrap();
    }
    drop((driver, shared));
    journal.close();
    let (_, found) = Journal::open(place.path(), &options).unwrap();
    assert_eq!(found.unread.len(), 1);
}
