//! Assignment of clusters to servers.

use std::collections::{BTreeMap, BTreeSet};

use forewarn_ownership::{
    ATTEMPT_INTERVAL_MILLIS, Attempt, AttemptReason, ClusterMove, ClusterStanding, HEARTBEAT_MILLIS,
    OwnerRecord, RETURN_MILLIS, SILENCE_MILLIS, ServerDuty, ServerName, SuspicionReason, Term, attempts,
    balance_moves, drain_moves, order, return_moves,
};
use forewarn_types::ClusterId;
use proptest::prelude::*;

use crate::heartbeats::{HeartbeatNet, server};
use crate::reference_engine::name;

fn standing(net: &HeartbeatNet, by: usize, cluster: u32, owner: Option<usize>) -> ClusterStanding {
    let owner = owner.map(|owner| OwnerRecord { server: server(owner), term: Term(1) });
    ClusterStanding { cluster: ClusterId(cluster), owner, since: net.uptime(by), preferred: None }
}

/// The attempts of all running servers at twenty clusters: milliseconds from now, before now if negative, and the
/// server.
fn all_attempts(net: &HeartbeatNet, owner: Option<usize>) -> BTreeMap<ClusterId, Vec<(i64, usize)>> {
    let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for by in &net.running {
        let mut clusters: Vec<_> = (0..20).map(|cluster| standing(net, *by, cluster, owner)).collect();
        clusters.iter_mut().for_each(|cluster| cluster.since = cluster.since.minus(5_000));
        let now = net.uptime(*by);
        for Attempt { cluster, at, .. } in attempts(&net.servers[*by], now, &clusters) {
            let from_now = at.millis().cast_signed() - now.millis().cast_signed();
            all.entry(cluster).or_default().push((from_now, *by));
        }
    }
    all
}

#[test]
fn live_servers_try_one_after_the_other() {
    for count in [2, 3, 5] {
        let mut net = HeartbeatNet::settled(count);
        net.running.remove(&1);
        net.run(SILENCE_MILLIS + HEARTBEAT_MILLIS);
        let all = all_attempts(&net, Some(1));
        assert_eq!(all.len(), 20, "every cluster of the dead server");
        for attempts in all.into_values() {
            let times: BTreeSet<_> = attempts.iter().map(|(from_now, _)| *from_now).collect();
            let times: Vec<_> = times.into_iter().collect();
            assert_eq!(times.len(), count - 1, "{count} servers");
            let interval = ATTEMPT_INTERVAL_MILLIS.cast_signed();
            assert!(times.windows(2).all(|pair| pair[1] - pair[0] == interval), "{times:?}");
            assert!((-250..=0).contains(&times[0]), "{times:?}");
        }
    }
}

#[test]
fn a_live_owner_keeps_its_clusters() {
    let net = HeartbeatNet::settled(3);
    assert!(all_attempts(&net, Some(1)).into_values().flatten().all(|(_, by)| by == 1));
}

#[test]
fn a_cluster_without_an_owner_is_taken_by_the_first_in_the_order() {
    let net = HeartbeatNet::settled(3);
    let servers = [0, 1, 2].map(server);
    for (cluster, attempts) in all_attempts(&net, None) {
        let (_, first) = attempts.iter().min().unwrap();
        assert_eq!(server(*first), *order(cluster, None, &servers)[0]);
    }
}

#[test]
fn a_restarted_server_takes_its_own_clusters_at_once() {
    let net = HeartbeatNet::started(1);
    let cluster = standing(&net, 0, 7, Some(0));
    let expected = Attempt { cluster: ClusterId(7), at: net.uptime(0), reason: AttemptReason::Restarted };
    assert_eq!(attempts(&net.servers[0], net.uptime(0), [&cluster]), [expected]);
}

#[test]
fn a_server_without_the_engine_does_not_try() {
    let mut net = HeartbeatNet::settled(3);
    net.reach_engine.remove(&0);
    net.running.remove(&1);
    net.run(3_000);
    let by: BTreeSet<_> = all_attempts(&net, Some(1)).into_values().flatten().map(|(_, by)| by).collect();
    assert_eq!(by, [2].into());
    assert!(all_attempts(&net, Some(0)).into_values().flatten().all(|(_, by)| by == 2), "not even its own");
}

#[test]
fn a_preferred_server_tries_first_and_only_if_it_is_live() {
    let mut net = HeartbeatNet::settled(3);
    net.running.remove(&1);
    net.run(2_000);
    for cluster in 0..10 {
        let mut cluster = standing(&net, 0, cluster, Some(1));
        cluster.preferred = Some(server(0));
        assert_eq!(attempts(&net.servers[0], net.uptime(0), [&cluster])[0].at, net.uptime(0));
        cluster.preferred = Some(server(1));
        let order_without = order(cluster.cluster, None, &[server(0), server(2)]).concat_names();
        let order_with = order(cluster.cluster, Some(&server(1)), &[server(0), server(2)]).concat_names();
        assert_eq!(order_without, order_with);
    }
}

trait Names {
    fn concat_names(&self) -> String;
}

impl Names for Vec<&ServerName> {
    fn concat_names(&self) -> String {
        self.iter().map(|name| name.as_str()).collect()
    }
}

#[test]
fn a_fenced_server_does_not_take_back_what_it_cannot_hear() {
    let mut net = HeartbeatNet::settled(2);
    net.deaf.extend([(0, 1), (1, 0)]);
    net.run(1_250);
    let now = net.uptime(0);
    let cluster = standing(&net, 0, 1, Some(1));
    let silent = AttemptReason::Suspected(SuspicionReason::Silent);
    assert_eq!(attempts(&net.servers[0], now, [&cluster])[0].reason, silent);
    net.servers[0].fenced(now);
    assert_eq!(attempts(&net.servers[0], now, [&cluster]), []);
    net.run(RETURN_MILLIS);
    assert_eq!(attempts(&net.servers[0], net.uptime(0), [&cluster])[0].reason, silent);
}

#[test]
fn a_fenced_server_takes_clusters_of_a_server_that_is_gone() {
    let mut net = HeartbeatNet::settled(2);
    let now = net.uptime(0);
    net.servers[0].fenced(now);
    net.running.remove(&1);
    net.members.remove(&server(1));
    net.run(HEARTBEAT_MILLIS);
    let cluster = standing(&net, 0, 1, Some(1));
    let gone = AttemptReason::Suspected(SuspicionReason::NotAMember);
    assert_eq!(attempts(&net.servers[0], net.uptime(0), [&cluster])[0].reason, gone);
}

#[test]
fn a_drained_server_gives_each_cluster_to_the_next_in_the_order() {
    let mut net = HeartbeatNet::settled(3);
    net.set_duty(0, ServerDuty::Draining);
    let owned = (0..20).map(|cluster| (ClusterId(cluster), None));
    let moves = drain_moves(&net.servers[0], net.uptime(0), owned);
    assert_eq!(moves.len(), 20);
    let others = [server(1), server(2)];
    assert!(moves.iter().all(|one| one.to == *order(one.cluster, None, &others)[0]));
    let preferred = [(ClusterId(3), Some(server(2)))];
    assert_eq!(drain_moves(&net.servers[0], net.uptime(0), preferred)[0].to, server(2));
    let alone = HeartbeatNet::settled(1);
    assert_eq!(drain_moves(&alone.servers[0], alone.uptime(0), [(ClusterId(3), None)]), []);
}

#[test]
fn a_server_that_is_drained_gets_nothing_before_its_heartbeat_says_so() {
    let mut net = HeartbeatNet::settled(3);
    net.servers[0].set_draining(server(1), true);
    let to = |net: &HeartbeatNet| {
        let owned = (0..20).map(|cluster| (ClusterId(cluster), Some(server(1))));
        let moves = drain_moves(&net.servers[0], net.uptime(0), owned);
        moves.into_iter().map(|one| one.to).collect::<BTreeSet<_>>()
    };
    assert_eq!(to(&net), [server(2)].into());
    net.servers[0].set_draining(server(1), false);
    assert_eq!(to(&net), [server(1)].into());
}

#[test]
fn a_server_that_joined_gets_its_share_when_an_operator_wants_it() {
    let net = HeartbeatNet::settled(3);
    let servers = [0, 1, 2].map(server);
    let owned = || (0..60).map(|cluster| (ClusterId(cluster), None));
    let moves = balance_moves(&net.servers[0], net.uptime(0), owned());
    let first = |cluster: &ClusterId| (*order(*cluster, None, &servers)[0]).clone();
    let expected = owned().filter(|(cluster, _)| first(cluster) != server(0)).count();
    assert_eq!(moves.len(), expected);
    assert!(moves.iter().all(|one| one.to == first(&one.cluster)));
    assert!((20..=55).contains(&expected), "about two thirds: {expected}");
}

#[test]
fn a_cluster_returns_to_the_server_that_an_operator_prefers() {
    let mut net = HeartbeatNet::settled(3);
    let owned = [(ClusterId(0), Some(server(1))), (ClusterId(1), Some(server(0))), (ClusterId(2), None)];
    let moves = |net: &HeartbeatNet| return_moves(&net.servers[0], net.uptime(0), owned.clone());
    assert_eq!(moves(&net), [ClusterMove { cluster: ClusterId(0), to: server(1) }]);
    net.set_duty(1, ServerDuty::Draining);
    net.run(HEARTBEAT_MILLIS);
    assert_eq!(moves(&net), []);
    net.set_duty(1, ServerDuty::Active);
    // It restarts, or another server has taken its clusters over.
    let returned = net.uptime(1);
    net.servers[1].fenced(returned);
    net.run(RETURN_MILLIS - HEARTBEAT_MILLIS);
    assert_eq!(moves(&net), []);
    net.run(2 * HEARTBEAT_MILLIS);
    assert_eq!(moves(&net).len(), 1);
}

/// Servers of two versions must agree.
#[test]
fn the_order_never_changes() {
    let servers = ["a", "b", "c", "d", "e"].map(name);
    let orders: Vec<_> =
        (0..4).map(|cluster| order(ClusterId(cluster), None, &servers).concat_names()).collect();
    assert_eq!(orders, ["ebacd", "abecd", "dceba", "caedb"]);
    assert_eq!(order(ClusterId(0), Some(&name("c")), &servers)[0], &name("c"));
}

fn names() -> impl Strategy<Value = BTreeSet<ServerName>> {
    prop::collection::btree_set("[a-z]{1,8}", 1..9)
        .prop_map(|names| names.iter().map(|text| name(text)).collect())
}

proptest! {
    /// A server that leaves, or joins, changes the order of no others: only its own clusters move.
    #[test]
    fn the_order_of_the_others_stays(servers in names(), cluster in any::<u32>(), gone in any::<prop::sample::Index>()) {
        let gone = gone.get(&servers.iter().collect::<Vec<_>>()).to_owned().clone();
        let mut before = order(ClusterId(cluster), None, &servers);
        before.retain(|server| **server != gone);
        let left: BTreeSet<_> = servers.iter().filter(|server| **server != gone).cloned().collect();
        prop_assert_eq!(before, order(ClusterId(cluster), None, &left));
    }

    /// The order does not depend on the order in which servers are known.
    #[test]
    fn the_order_is_a_function_of_the_names(servers in names(), cluster in any::<u32>()) {
        let reversed: Vec<_> = servers.iter().rev().collect();
        prop_assert_eq!(order(ClusterId(cluster), None, &servers), order(ClusterId(cluster), None, reversed));
    }
}

#[test]
fn clusters_are_spread_evenly() {
    let servers = ["alpha", "beta", "gamma", "delta"].map(name);
    let mut counts = BTreeMap::new();
    for cluster in 0..1_000 {
        *counts.entry(order(ClusterId(cluster), None, &servers)[0]).or_insert(0_u32) += 1;
    }
    assert!(counts.values().all(|count| (200..300).contains(count)), "{counts:?}");
}
