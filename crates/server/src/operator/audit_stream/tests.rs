//! The stream of a client, and the feed behind all of them.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use forewarn_control::request::{CommandBatch, RequestContext};
use forewarn_control::{Chain, NewAuditEntry};
use forewarn_lifecycle::{Seed, Timestamp};
use forewarn_store::LoggedEntry;
use prometheus_client::metrics::counter::Counter;
use tokio::sync::{broadcast, watch};
use tokio_stream::{Stream, StreamExt};

use super::super::seen_entries::BEYOND_MAX;
use super::event::StreamEvent;
use super::feed_state::{FeedState, StreamAdmission};
use super::group::NextChunk;
use super::log_pages::PAGE_ENTRIES;
use super::*;
use crate::broadcasts::ENTRIES_BUFFERED_MAX;
use crate::clock::{Clock, Speed};
use crate::control_handle::ControlHandle;

async fn admit_host(control: &ControlHandle, name: &str) {
    let json = format!(r#"{{"command":"admit_host","name":"{name}"}}"#);
    let commands = vec![serde_json::from_str(&json).unwrap()];
    let context = RequestContext::default();
    control.run_commands(CommandBatch { commands, context }).await.unwrap();
}

/// Adds an even number of entries to the audit log: a command and its effect each time. Returns the last position.
async fn add_entries(control: &ControlHandle, count: u64) -> u64 {
    let last = control.published_position() + count;
    while control.published_position() < last {
        admit_host(control, &format!("h{}", control.published_position())).await;
    }
    assert_eq!(control.published_position(), last);
    last
}

/// A server whose audit log has as many entries, an even number.
async fn control(entries: u64) -> ControlHandle {
    let clock = Clock::virtual_at(Timestamp::from_millis(1_767_225_600_000), Speed(0));
    let control = ControlHandle::simulated(Seed([7; 16]), clock);
    add_entries(&control, entries).await;
    control
}

fn feed(control: &ControlHandle) -> Arc<AuditFeed> {
    AuditFeed::new(control.clone(), StreamMetrics::default())
}

/// A feed that runs until the sender is dropped.
fn running_feed(control: &ControlHandle) -> (Arc<AuditFeed>, watch::Sender<bool>) {
    let (feed, stop) = (feed(control), watch::Sender::new(false));
    tokio::spawn(Arc::clone(&feed).run(stop.subscribe()));
    (feed, stop)
}

fn stream(feed: &Arc<AuditFeed>, last_id: Option<&str>) -> AuditStream {
    let seen = last_id.map(|id| SeenEntries::parse(id).unwrap());
    AuditStream::new(Arc::clone(feed), EntryFilter::default(), (seen, IdOrigin::ThisLog))
}

fn ids(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8(text.to_vec()).unwrap();
    text.lines().filter_map(|line| line.strip_prefix("id: ").map(str::to_owned)).collect()
}

/// Reads a stream up to an event with this id. Returns all ids.
async fn ids_to(stream: &mut AuditStream, last: &str) -> Vec<String> {
    let mut all = Vec::new();
    while all.last().is_none_or(|id| id != last) {
        all.extend(ids(&stream.next().await.unwrap().unwrap()));
    }
    all
}

fn logged(position: u64) -> LoggedEntry {
    let entry = Chain { number: position, ..Chain::default() }.seal(NewAuditEntry::default());
    LoggedEntry { position, entry: Arc::new(entry) }
}

fn seen(id: &str) -> SeenEntries {
    SeenEntries::parse(id).unwrap()
}

/// A feed of its own that has examined all entries up to a position.
struct TestFeed {
    state: FeedState,
    sender: broadcast::Sender<LoggedEntry>,
    renderings: Counter,
}

impl TestFeed {
    fn at(position: u64) -> Self {
        let (sender, entries) = broadcast::channel(1_024);
        let renderings = Counter::default();
        Self { state: FeedState::new(entries, position, renderings.clone()), sender, renderings }
    }

    fn broadcast(&mut self, positions: impl IntoIterator<Item = u64>) {
        positions.into_iter().for_each(|position| drop(self.sender.send(logged(position))));
        self.state.drain();
    }

    fn admit(&mut self, id: &str) -> StreamAdmission {
        self.state.admit(&Arc::default(), &mut seen(id))
    }
}

/// promise: C5
#[test]
fn a_client_that_comes_back_keeps_what_it_has_beyond_a_hidden_entry() {
    // Entry 11 is hidden for a moment: the client got entry 12 from another cluster.
    let log = AuditBatch { entries: Vec::new(), next: None, head: 10, end: 12, swept: 0 };
    assert_eq!(resumed(seen("10+12"), &log), (seen("10+12"), IdOrigin::ThisLog));
    for other in ["13", "10+13"] {
        assert_eq!(resumed(seen(other), &log), (seen("10"), IdOrigin::AnotherLog), "{other}");
    }
}

/// promise: C5
#[tokio::test]
async fn entries_between_the_request_and_the_first_read_of_the_response_are_sent() {
    let control = control(4).await;
    let (feed, _stop) = running_feed(&control);
    let mut stream = stream(&feed, None);
    add_entries(&control, 2).await;
    assert_eq!(ids_to(&mut stream, "6").await, ["4", "5", "6"]);
}

/// promise: C5
#[tokio::test]
async fn a_client_of_another_log_is_told_that_it_has_missed_entries() {
    let control = control(4).await;
    let begin = (Some(seen("4")), IdOrigin::AnotherLog);
    let mut stream = AuditStream::new(feed(&control), EntryFilter::default(), begin);
    let text = stream.next().await.unwrap().unwrap();
    let text = String::from_utf8(text.to_vec()).unwrap();
    let missed = r#"data: {"kind":"missed","text":"the id is of another audit log"}"#;
    assert_eq!(text, format!("id: 4\n: listening\n\n{missed}\n\n"));
}

/// promise: C5
#[test]
fn entries_that_come_out_of_order_are_sent_once_and_named_by_the_id() {
    let mut feed = TestFeed::at(4);
    let StreamAdmission::Joined(place, text) = feed.admit("4") else { panic!("not admitted") };
    assert!(text.is_empty());
    feed.broadcast([6, 7, 5, 7, 6, 9]);
    let Some(NextChunk::Chunk(text)) = feed.state.take(place, Waker::noop()) else { panic!("no chunk") };
    assert_eq!(ids(&text), ["4+6", "4+6,7", "7", "7+9"]);
    // A client that comes now gets the same from the newest events, whatever it has.
    let StreamAdmission::Joined(_, text) = feed.admit("5+7") else { panic!("not admitted") };
    assert_eq!(ids(&text), ["7", "7+9"]);
    assert_eq!(feed.renderings.get(), 4);
}

/// promise: C5
#[tokio::test]
async fn a_client_that_comes_back_gets_what_it_has_not_seen() {
    let control = control(4).await;
    let mut stream = stream(&feed(&control), Some("1+3"));
    assert_eq!(ids_to(&mut stream, "4").await, ["1+3", "3", "4"]);
}

/// promise: C5
#[tokio::test]
async fn every_client_gets_every_entry_and_each_entry_is_rendered_once() {
    const CLIENTS: usize = 100;
    const ENTRIES: u64 = 20;
    let control = control(4).await;
    let (feed, _stop) = running_feed(&control);
    let mut streams: Vec<_> = (0..CLIENTS).map(|_| stream(&feed, None)).collect();
    for stream in &mut streams {
        assert_eq!(ids_to(stream, "4").await, ["4"]);
        // It joins its group.
        assert!(poll(stream).is_pending());
    }
    let last = add_entries(&control, ENTRIES).await.to_string();
    let expected: Vec<_> = (5..=4 + ENTRIES).map(|position| position.to_string()).collect();
    for stream in &mut streams {
        assert_eq!(ids_to(stream, &last).await, expected);
    }
    assert_eq!(feed.metrics.renderings.get(), ENTRIES);
    assert_eq!(feed.metrics.streams.get(), i64::try_from(CLIENTS).unwrap());
    drop(streams);
    assert_eq!(feed.metrics.streams.get(), 0);
}

fn poll(stream: &mut AuditStream) -> Poll<Option<<AuditStream as Stream>::Item>> {
    pin!(stream).poll_next(&mut Context::from_waker(Waker::noop()))
}

/// promise: C5
#[tokio::test]
async fn slow_clients_at_the_same_place_share_pages_of_the_log() {
    const CLIENTS: usize = 10;
    // More than the newest events that the feed keeps, which are none here, and more than a page.
    let control = control(250).await;
    let feed = feed(&control);
    for _ in 0..CLIENTS {
        let all = ids_to(&mut stream(&feed, Some("0")), "250").await;
        assert_eq!(all.len(), 251);
    }
    // Full pages are rendered once; the last page grows, and is read again.
    let full = u64::try_from(250 / PAGE_ENTRIES * PAGE_ENTRIES).unwrap();
    let clients = u64::try_from(CLIENTS).unwrap();
    assert_eq!(feed.metrics.renderings.get(), full + clients * (250 - full));
}

/// promise: C5
#[tokio::test]
async fn a_client_that_falls_behind_continues_from_the_log() {
    let control = control(4).await;
    let (feed, _stop) = running_feed(&control);
    let mut slow = stream(&feed, None);
    assert_eq!(ids_to(&mut slow, "4").await, ["4"]);
    assert!(poll(&mut slow).is_pending());
    // Its queue loses chunks, as a group with a long queue does.
    add_entries(&control, 300).await;
    feed.current_state().drop_queues();
    let expected: Vec<_> = (5..=304).map(|position: u64| position.to_string()).collect();
    assert_eq!(ids_to(&mut slow, "304").await, expected);
}

/// promise: C5
#[tokio::test]
async fn entries_that_the_broadcast_has_dropped_are_read_from_the_log() {
    let control = control(4).await;
    let feed = feed(&control);
    let mut stream = stream(&feed, None);
    assert_eq!(ids_to(&mut stream, "4").await, ["4"]);
    assert!(poll(&mut stream).is_pending());
    // The feed is not running: the broadcast overflows.
    add_entries(&control, u64::try_from(ENTRIES_BUFFERED_MAX).unwrap() + 10).await;
    let stop = watch::Sender::new(false);
    tokio::spawn(Arc::clone(&feed).run(stop.subscribe()));
    let last = add_entries(&control, 2).await;
    let all = ids_to(&mut stream, &last.to_string()).await;
    let expected: Vec<_> = (5..=last).map(|position| position.to_string()).collect();
    assert_eq!(all, expected, "each entry once");
}

/// promise: C5
#[test]
fn entries_without_room_in_the_id_follow_from_the_log() {
    let mut feed = TestFeed::at(0);
    let StreamAdmission::Joined(place, _) = feed.admit("0") else { panic!("not admitted") };
    feed.broadcast((2..).take(BEYOND_MAX + 1));
    let beyond = u64::try_from(BEYOND_MAX).unwrap();
    assert!(!feed.state.seen().contains(2 + beyond));
    feed.broadcast([1]);
    assert_eq!(feed.state.gap(2 + beyond), Some(1 + beyond));
    let Some(NextChunk::Chunk(text)) = feed.state.take(place, Waker::noop()) else { panic!("no chunk") };
    assert_eq!(ids(&text).len(), BEYOND_MAX);
}

#[test]
fn an_entry_wakes_the_clients_that_it_concerns() {
    let visible = |tenants: &[&str]| {
        let clusters = ["default"].map(str::to_owned).into();
        Visibility::limited(clusters, tenants.iter().map(ToString::to_string).collect())
    };
    let tenant = |name: &str| EntryFilter { tenant: Some(name.to_owned()), ..EntryFilter::default() };
    let scoped = EntryFilter { visibility: visible(&["web", "db"]), tenant: None };
    let mut feed = TestFeed::at(0);
    let filters = [EntryFilter::default(), tenant("web"), tenant("db"), scoped];
    let places = filters.map(|filter| {
        let StreamAdmission::Joined(place, _) = feed.state.admit(&Arc::new(filter), &mut seen("0")) else {
            panic!("not admitted")
        };
        assert_eq!(feed.state.take(place, Waker::noop()), Some(NextChunk::None));
        place
    });
    let mut woken = |position: u64, tenants: &[&str]| {
        let entry = NewAuditEntry {
            cluster: "default".to_owned(),
            tenants: tenants.iter().map(ToString::to_string).collect(),
            ..NewAuditEntry::default()
        };
        let entry = Arc::new(Chain { number: position, ..Chain::default() }.seal(entry));
        feed.sender.send(LoggedEntry { position, entry }).unwrap();
        let woken = feed.state.drain().len();
        let is_chunk = |place| matches!(feed.state.take(place, Waker::noop()), Some(NextChunk::Chunk(_)));
        let got = places.map(is_chunk);
        places.iter().for_each(|place| drop(feed.state.take(*place, Waker::noop())));
        (woken, got)
    };
    assert_eq!(woken(1, &["web"]), (3, [true, true, false, true]));
    assert_eq!(woken(2, &["web", "db"]), (4, [true, true, true, true]));
    assert_eq!(woken(3, &["web", "other"]), (2, [true, true, false, false]));
    assert_eq!(woken(4, &[]), (1, [true, false, false, false]));
}

#[tokio::test]
async fn streams_end_when_the_server_stops() {
    let control = control(2).await;
    let (feed, stop) = running_feed(&control);
    let mut waiting = stream(&feed, None);
    assert_eq!(ids_to(&mut waiting, "2").await, ["2"]);
    stop.send_replace(true);
    assert!(waiting.next().await.is_none());
    let mut late = stream(&feed, Some("2"));
    assert_eq!(ids_to(&mut late, "2").await, ["2"]);
    assert!(late.next().await.is_none());
}

#[test]
fn an_event_is_rendered_when_it_is_first_written() {
    let (event, renderings) = (StreamEvent::new(logged(3)), Counter::default());
    assert_eq!((event.rendered_bytes(), renderings.get()), (0, 0));
    let texts = ["3", "1+3"].map(|id| {
        let mut text = Vec::new();
        event.write(&mut text, id, &renderings);
        String::from_utf8(text).unwrap()
    });
    assert_eq!(renderings.get(), 1);
    assert!(texts[0].starts_with("id: 3\ndata: {") && texts[1].starts_with("id: 1+3\ndata: {"));
    assert!(texts.iter().all(|text| text.ends_with("}\n\n")), "{texts:?}");
}
