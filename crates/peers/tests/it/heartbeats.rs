//! Heartbeats: both ways, and to servers that are silent.

use std::time::Duration;

use forewarn_peers::{HeartbeatReport, HeartbeatTimes, Peer, PeerError};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::support::{DEADLINE, Realm, TestServer, name, unavailable};

/// A limit for servers that do not answer. Others answer within it at least now and then, on the slowest machine.
const SHORT: Duration = Duration::from_millis(300);

fn is_failure_of(peer: &str) -> impl Fn(&HeartbeatReport) -> bool {
    move |report| report.peer.as_str() == peer && report.answer.is_err()
}

fn is_answer_of(peer: &str) -> impl Fn(&HeartbeatReport) -> bool {
    move |report| report.peer.as_str() == peer && report.answer.is_ok()
}

#[tokio::test]
async fn heartbeats_go_both_ways() {
    let realm = Realm::new();
    let servers = [realm.server("a").await, realm.server("b").await, realm.server("c").await];
    let peers = || servers.iter().map(TestServer::peer);
    let _all = servers
        .each_ref()
        .map(|server| server.heartbeats(peers().filter(|peer| peer.name != *server.identity.name())));
    for server in &servers {
        for other in servers.iter().filter(|other| other.address != server.address) {
            let own = server.identity.name();
            let (_, heard) = other.handler.heartbeats.wait(3, |(caller, _)| caller == own).await;
            assert_eq!(heard, server.handler.state());
            let reported = server.handler.reports.wait(3, is_answer_of(other.identity.name().as_str())).await;
            let answer = reported.answer.unwrap();
            assert_eq!(answer.heartbeat, other.handler.state());
            assert!(answer.round_trip > Duration::ZERO);
        }
    }
}

#[tokio::test]
async fn a_server_that_goes_away_is_reported_and_delays_no_other() {
    let realm = Realm::new();
    let (a, b, c) = (realm.server("a").await, realm.server("b").await, realm.server("c").await);
    let _beating = a.heartbeats([b.peer(), c.peer()]);
    a.handler.reports.wait(1, is_answer_of("b")).await;
    let address = b.address;
    b.end().await;
    let report = a.handler.reports.wait(2, is_failure_of("b")).await;
    assert!(matches!(report.answer, Err(PeerError::Unreachable(_) | PeerError::BrokenOff(_))), "{report:?}");
    let before = a.handler.answers_of("c");
    a.handler.reports.wait(before + 3, is_answer_of("c")).await;
    // It comes back at the same address.
    let (before, limits) = (a.handler.answers_of("b"), forewarn_peers::ListenerLimits::default());
    let _b = TestServer::start_with(realm.identity("b"), unavailable, limits, address).await;
    a.handler.reports.wait(before + 1, is_answer_of("b")).await;
}

#[tokio::test]
async fn a_server_that_accepts_and_does_not_answer_is_reported_and_delays_no_other() {
    let realm = Realm::new();
    let (a, b, c) = (realm.server("a").await, realm.server("b").await, realm.server("c").await);
    // Connections wait in its queue, and nobody accepts them.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = Peer { name: name("d"), address: silent.local_addr().unwrap().to_string() };
    b.handler.holds_heartbeats.send_replace(true);
    let _beating = a.heartbeats_within(SHORT, [b.peer(), c.peer(), silent]);
    for peer in ["b", "d"] {
        let is_late = |report: &HeartbeatReport| {
            report.peer.as_str() == peer && report.answer == Err(PeerError::TimedOut(SHORT))
        };
        a.handler.reports.wait(1, is_late).await;
        let before = (a.handler.reports.count(is_late), a.handler.answers_of("c"));
        a.handler.reports.wait(before.0 + 2, is_late).await;
        assert!(a.handler.answers_of("c") > before.1, "{peer} delays c");
    }
    b.handler.holds_heartbeats.send_replace(false);
    a.handler.reports.wait(1, is_answer_of("b")).await;
}

#[tokio::test]
async fn servers_come_and_go_while_heartbeats_are_sent() {
    let realm = Realm::new();
    let (a, b, c) = (realm.server("a").await, realm.server("b").await, realm.server("c").await);
    let beating = a.heartbeats([b.peer()]);
    a.handler.reports.wait(1, is_answer_of("b")).await;
    beating.set_peers([b.peer(), c.peer()]);
    a.handler.reports.wait(1, is_answer_of("c")).await;
    beating.set_peers([c.peer()]);
    let before = a.handler.answers_of("b");
    let of_c = a.handler.answers_of("c");
    a.handler.reports.wait(of_c + 3, is_answer_of("c")).await;
    assert!(a.handler.answers_of("b") <= before + 1, "at most one was on its way");
    // A server that has moved is found at its new address.
    let moved = realm.server("c").await;
    beating.set_peers([moved.peer()]);
    moved.handler.heartbeats.wait(1, |_| true).await;
    assert_eq!(format!("{beating:?}"), "Heartbeats([\"c\"])");
}

#[tokio::test]
async fn a_server_answers_with_its_own_name() {
    let realm = Realm::new();
    let (a, b) = (realm.server("a").await, realm.server("b").await);
    // The certificate at this address is that of `b`.
    let _beating = a.heartbeats([Peer { name: name("c"), address: b.address.to_string() }]);
    let report = a.handler.reports.wait(1, is_failure_of("c")).await;
    let Err(PeerError::Handshake(reason)) = report.answer else { panic!("{report:?}") };
    assert!(reason.contains("c.server.forewarn.internal"), "{reason}");
}

#[tokio::test]
async fn a_prompt_is_a_reason_for_a_heartbeat_at_once() {
    let realm = Realm::new();
    let (a, b, c) = (realm.server("a").await, realm.server("b").await, realm.server("c").await);
    // Nobody waits for the next one.
    let (interval, limit) = (Duration::from_hours(1), DEADLINE);
    let times = HeartbeatTimes { interval, limit, ..HeartbeatTimes::default() };
    let prompts = watch::Sender::new(());
    let _beating = a.heartbeats_at(times, prompts.subscribe(), [b.peer(), c.peer()]);
    for count in 1..=3 {
        for other in ["b", "c"] {
            a.handler.reports.wait(count, is_answer_of(other)).await;
        }
        assert_eq!((a.handler.answers_of("b"), a.handler.answers_of("c")), (count, count));
        prompts.send_replace(());
    }
}
