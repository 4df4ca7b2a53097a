//! Queries of the audit log of another server.

use std::sync::Arc;
use std::time::Duration;

use forewarn_control::{Chain, NewAuditEntry, Stream, Subject};
use forewarn_peers::{AuditSearch, EntryOrder, FoundEntries, PeerClient, PeerError, PeerLimits};

use crate::support::{Realm, TestServer, patient};

fn search() -> AuditSearch {
    AuditSearch {
        groups: vec![vec![Subject::Kind("command".to_owned())]],
        since: None,
        until: None,
        stream: None,
        after: Some(7),
        before: None,
        order: EntryOrder::OldestFirst,
        limit: 2,
    }
}

fn found() -> FoundEntries {
    let mut chain = Chain::default();
    let new = || NewAuditEntry { stream: Some(Stream::Shared), ..NewAuditEntry::default() };
    let entries = [8, 11].map(|position| (position, chain.seal(new())));
    FoundEntries { entries: entries.into(), next: Some(11), head: 20, end: 21, swept: 3 }
}

async fn servers() -> (TestServer, TestServer) {
    let realm = Realm::new();
    (realm.server("a").await, realm.server("b").await)
}

#[tokio::test]
async fn a_server_answers_from_its_own_log() {
    let (a, b) = servers().await;
    *b.handler.found.lock().unwrap() = Some(found());
    let client = a.client(&b);
    assert_eq!(client.search(&search()).await, Ok(found()));
    assert_eq!(b.handler.searches.wait(1, |_| true).await, search());
    b.handler.found.lock().unwrap().take();
    let unavailable = PeerError::Rejected { status: 503, reason: "the log is closed".to_owned() };
    assert_eq!(client.search(&search()).await, Err(unavailable));
    let many = AuditSearch { groups: vec![vec![Subject::By("x".repeat(2 << 20))]], ..search() };
    assert!(matches!(client.search(&many).await, Err(PeerError::TooLarge { .. })));
}

#[tokio::test]
async fn queries_have_limits_of_their_own() {
    let (a, b) = servers().await;
    let (search_max, queue) = (Duration::from_millis(100), Duration::from_millis(20));
    let limits = PeerLimits { search: search_max, ..patient() };
    let client = PeerClient::new(b.peer(), Arc::clone(&a.identity), limits);
    b.handler.holds_searches.send_replace(true);
    assert_eq!(client.search(&search()).await, Err(PeerError::TimedOut(search_max)));
    let limits = PeerLimits { searches: 1, queue, ..patient() };
    let client = PeerClient::new(b.peer(), Arc::clone(&a.identity), limits);
    *b.handler.found.lock().unwrap() = Some(found());
    let query = search();
    let second = async {
        // The one that timed out, and the first of this client.
        b.handler.searches.wait(2, |_| true).await;
        let answer = client.search(&query).await;
        // A request does not wait for queries.
        let outcome = client.forward(1, Default::default(), &crate::requests::admission()).await;
        b.handler.holds_searches.send_replace(false);
        (answer, outcome)
    };
    let (first, (second, outcome)) = tokio::join!(client.search(&query), second);
    assert_eq!((first, second), (Ok(found()), Err(PeerError::Busy)));
    assert!(matches!(outcome, forewarn_peers::ForwardOutcome::Answered(_)), "{outcome:?}");
}
