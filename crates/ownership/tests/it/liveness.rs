//! Suspicion against servers, and candidates for their streams.

use forewarn_ownership::{
    ClockVerdict, ENGINE_SILENCE_MILLIS, HEARTBEAT_MILLIS, Peers, RETURN_MILLIS, SILENCE_MILLIS, ServerDuty,
    SuspicionReason, Uptime,
};
use forewarn_types::Timestamp;
use proptest::prelude::*;

use crate::heartbeats::{HeartbeatNet, server};

#[test]
fn a_killed_server_is_suspected_after_a_second() {
    for count in [2, 3, 5] {
        let mut net = HeartbeatNet::settled(count);
        net.running.remove(&1);
        let took = net.run_until_suspected(0, 1);
        assert!(
            (SILENCE_MILLIS..SILENCE_MILLIS + HEARTBEAT_MILLIS).contains(&took),
            "{count} servers: {took}"
        );
        assert_eq!(net.reason(0, 1), Some(SuspicionReason::Silent));
        net.run(HEARTBEAT_MILLIS);
        assert_eq!(net.suspicions().len(), count - 1, "every other server suspects it, and nothing else");
        assert!(!net.candidates(0).contains(&server(1)));
    }
}

#[test]
fn servers_that_hear_each_other_suspect_nothing() {
    for count in [1, 2, 3, 5] {
        let net = HeartbeatNet::settled(count);
        assert_eq!(net.suspicions(), []);
        assert_eq!(net.candidates(0).len(), count);
    }
}

#[test]
fn silence_to_one_server_is_no_suspicion_if_there_are_more_than_two() {
    for count in [3, 5] {
        let mut net = HeartbeatNet::settled(count);
        net.deaf.insert((0, 1));
        net.run(20_000);
        assert_eq!(net.suspicions(), [], "{count} servers");
    }
}

#[test]
fn silence_in_one_direction_is_suspicion_in_one_direction() {
    let mut net = HeartbeatNet::settled(2);
    net.deaf.insert((0, 1));
    net.run(2_000);
    assert_eq!(net.suspicions(), [(0, 1)]);
    let mut net = HeartbeatNet::settled(3);
    net.deaf.extend([(0, 2), (1, 2)]);
    net.run(2_000);
    assert_eq!(net.suspicions(), [(0, 2), (1, 2)]);
}

#[test]
fn two_witnesses_convince_a_third_server() {
    let mut net = HeartbeatNet::settled(5);
    net.deaf.extend([(0, 1), (2, 1)]);
    net.run(2_000);
    assert_eq!(net.suspicions(), [(0, 1), (2, 1), (3, 1), (4, 1)]);
}

#[test]
fn a_report_counts_only_while_its_server_is_heard() {
    let mut net = HeartbeatNet::settled(5);
    net.deaf.extend([(1, 2), (3, 2)]);
    net.run(2_000);
    assert_eq!(net.reason(0, 2), Some(SuspicionReason::Silent));
    // The witnesses die. Their last reports are soon of no value.
    net.running.remove(&1);
    net.running.remove(&3);
    net.run(2_000);
    assert_eq!(net.reason(0, 2), None);
}

/// A server that has heard two others at 10,000 ms, and one of them later.
fn witnessed(at_millis: u64, silence_millis: u64) -> Peers {
    let at = Uptime::from_millis;
    let mut peers = Peers::new(server(0), at(10_000));
    peers.set_members(at(10_000), &[0, 1, 2].map(server).into());
    let mut answer = Peers::new(server(1), at(0)).own_answer(at(0), Timestamp::from_millis(0));
    answer.engine_silent_millis = 0;
    peers.heard(at(10_000), &server(2), 1, answer.clone());
    (10_000..at_millis).step_by(500).for_each(|millis| peers.tick(at(millis)));
    answer.silences = [(server(2), silence_millis)].into();
    peers.heard(at(at_millis), &server(1), 1, answer);
    peers
}

#[test]
fn a_report_speaks_for_the_time_until_the_next_one() {
    let since = |peers: &Peers, millis| {
        peers.suspicion(&server(2), Uptime::from_millis(millis)).map(|suspicion| suspicion.since.millis())
    };
    let peers = witnessed(12_000, 900);
    assert_eq!(since(&peers, 12_099), None);
    assert_eq!(since(&peers, 12_100), Some(12_100));
    let peers = witnessed(12_000, 749);
    assert_eq!(since(&peers, 12_300), None, "the next report decides");
    // The second server that found it silent decides about the time: the witness at 11,700, or this one at 11,000.
    assert_eq!(since(&witnessed(12_000, 1_300), 12_000), Some(11_700));
    assert_eq!(since(&witnessed(12_000, 2_500), 12_000), Some(11_000));
}

#[test]
fn a_server_without_the_engine_is_suspected_and_takes_nothing() {
    let mut net = HeartbeatNet::settled(3);
    net.reach_engine.remove(&1);
    let took = net.run_until_suspected(0, 1);
    let limit = ENGINE_SILENCE_MILLIS..ENGINE_SILENCE_MILLIS + 2 * HEARTBEAT_MILLIS;
    assert!(limit.contains(&took), "{took}");
    assert_eq!(net.reason(0, 1), Some(SuspicionReason::EngineUnreached));
    net.run(HEARTBEAT_MILLIS);
    assert_eq!(net.suspicions(), [(0, 1), (2, 1)]);
    assert!(!net.candidates(1).contains(&server(1)));
}

#[test]
fn an_engine_that_returns_to_all_leaves_no_suspicion() {
    let mut net = HeartbeatNet::settled(3);
    net.reach_engine.clear();
    net.run(10_000);
    assert!(net.candidates(0).is_empty(), "no server takes over while none reaches the engine");
    for index in 0..3 {
        net.reach_engine.insert(index);
        net.run(HEARTBEAT_MILLIS);
        assert!((0..=index).all(|by| net.servers[by].suspects(net.uptime(by)).is_empty()), "{index}");
    }
    net.run(10_000);
    assert_eq!(net.suspicions(), []);
}

#[test]
fn a_server_whose_key_is_gone_is_suspected() {
    let mut net = HeartbeatNet::settled(3);
    net.members.remove(&server(2));
    let took = net.run_until_suspected(0, 2);
    assert!(took <= HEARTBEAT_MILLIS);
    assert_eq!(net.reason(0, 2), Some(SuspicionReason::NotAMember));
    let now = net.uptime(0);
    assert!(net.servers[0].suspects(now).contains_key(&server(2)));
    net.servers[0].forget(&server(2));
    assert!(net.servers[0].suspects(now).is_empty());
    net.members.insert(server(2));
    net.run(1_000);
    assert_eq!(net.suspicions(), [], "the key is back");
}

#[test]
fn a_server_that_was_never_a_member_is_suspected() {
    let mut net = HeartbeatNet::started(2);
    net.members.remove(&server(1));
    net.running.remove(&1);
    assert_eq!(net.servers[0].suspicion(&server(4), net.uptime(0)), None, "others get time to join");
    net.run(ENGINE_SILENCE_MILLIS);
    let suspicion = net.servers[0].suspicion(&server(4), net.uptime(0)).unwrap();
    assert_eq!(suspicion.reason, SuspicionReason::NotAMember);
}

#[test]
fn a_server_that_slept_blames_itself() {
    for count in [2, 3] {
        let mut net = HeartbeatNet::settled(count);
        net.running.remove(&0);
        net.run(20_000);
        net.running.insert(0);
        // Nothing has arrived yet.
        net.deaf = (1..count).map(|other| (0, other)).collect();
        net.run(2 * HEARTBEAT_MILLIS);
        assert!(net.servers[0].suspects(net.uptime(0)).is_empty(), "{count} servers");
    }
}

#[test]
fn a_server_that_was_without_the_engine_takes_nothing_for_a_while() {
    let mut net = HeartbeatNet::settled(3);
    net.reach_engine.remove(&0);
    net.run(5_000);
    net.reach_engine.insert(0);
    net.run(1_000);
    assert_eq!([0, 1].map(|by| net.candidates(by).contains(&server(0))), [false, false]);
    net.run(RETURN_MILLIS);
    assert_eq!([0, 1].map(|by| net.candidates(by).contains(&server(0))), [true, true]);
}

#[test]
fn a_server_that_returned_takes_nothing_for_a_while() {
    let mut net = HeartbeatNet::settled(3);
    net.running.remove(&0);
    net.run(5_000);
    net.running.insert(0);
    net.run(1_000);
    assert_eq!(net.suspicions(), []);
    for by in 0..3 {
        assert!(!net.candidates(by).contains(&server(0)), "server {by}");
    }
    net.run(RETURN_MILLIS);
    for by in 0..3 {
        assert!(net.candidates(by).contains(&server(0)), "server {by}");
    }
}

#[test]
fn servers_that_have_all_just_started_may_take_streams() {
    let mut net = HeartbeatNet::started(3);
    net.run(1_000);
    assert_eq!(net.candidates(1).len(), 3);
}

#[test]
fn a_draining_server_is_no_candidate() {
    let mut net = HeartbeatNet::settled(3);
    net.set_duty(2, ServerDuty::Draining);
    net.run(HEARTBEAT_MILLIS);
    for by in 0..3 {
        assert_eq!(net.candidates(by), [server(0), server(1)].into(), "server {by}");
    }
    assert_eq!(net.suspicions(), [], "it keeps what it has until it has given it away");
}

#[test]
fn a_wrong_wall_clock_holds_its_server() {
    let mut net = HeartbeatNet::settled(3);
    net.wall_ahead.insert(1, 5_000);
    net.run(HEARTBEAT_MILLIS);
    let verdict = |net: &HeartbeatNet, index: usize| {
        net.servers[index].clock_verdict(net.uptime(index), net.wall(index))
    };
    assert_eq!([0, 2].map(|index| verdict(&net, index)), [ClockVerdict::Agrees; 2]);
    let ClockVerdict::Hold { by_millis } = verdict(&net, 1) else { panic!("it is 5 s ahead") };
    assert!((4_990..=5_010).contains(&by_millis), "{by_millis}");
    // A step is noticed at once, not with the next heartbeat.
    net.wall_ahead.clear();
    assert_eq!(verdict(&net, 1), ClockVerdict::Agrees);
}

proptest! {
    /// A server is suspected of silence only while at least two servers do not hear it, or one of two.
    #[test]
    fn suspicion_of_silence_has_witnesses(
        count in 2..6_usize, deaf in prop::collection::btree_set((0..5_usize, 0..5_usize), 0..12),
    ) {
        let mut net = HeartbeatNet::settled(count);
        net.deaf = deaf.into_iter().filter(|(by, other)| by != other && *by < count && *other < count).collect();
        net.run(4_000);
        let witnesses = |other| net.deaf.iter().filter(|(_, speaker)| *speaker == other).count();
        let needed = if count == 2 { 1 } else { 2 };
        for (by, other) in net.suspicions() {
            prop_assert!(witnesses(other) >= needed, "{by} suspects {other}");
        }
        // A server that does not hear another one, and hears a server that does not either, suspects it.
        for (by, other) in &net.deaf {
            let second = |witness: &(usize, usize)| witness.1 == *other && witness.0 != *by && !net.deaf.contains(&(*by, witness.0));
            if count == 2 || net.deaf.iter().any(second) {
                prop_assert!(net.reason(*by, *other).is_some(), "{by} does not suspect {other}");
            }
        }
    }
}
