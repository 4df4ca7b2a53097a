//! Claims of resource groups: taken before a cluster uses them, and released after.

use std::collections::BTreeSet;

use forewarn_control::decision::find_refused;
use forewarn_control::request::{
    ClusterRequest, CommandBatch, RequestContext, ResourceWrite, SharedRequest, Transaction,
};
use forewarn_control::resource_id::GroupId;
use forewarn_control::shared::NewClaim;
use forewarn_control::{
    ClusterId, ControlError, Stream, claims_needed, decide_in_cluster, missing_claims, unused_claims,
};
use serde_json::{Value, json};

use crate::streams::{Failed, Streams, group_id, put, put_group};

const DEFAULT: ClusterId = ClusterId::DEFAULT;

fn taken(name: &str) -> Failed {
    Failed::Refused(ControlError::GroupTaken(name.to_owned()))
}

fn commands(commands: &[Value]) -> ClusterRequest {
    let commands = commands.iter().map(|one| serde_json::from_value(one.clone()).unwrap()).collect();
    ClusterRequest::Commands(CommandBatch { commands, context: RequestContext::default() })
}

fn writes(writes: Vec<ResourceWrite>) -> ClusterRequest {
    let transaction = Transaction { writes, ..Transaction::default() };
    ClusterRequest::Transaction { transaction, context: RequestContext::default() }
}

/// Groups and locations that a request to the default cluster needs.
fn needed(streams: &Streams, request: &ClusterRequest) -> Vec<(String, String)> {
    let claims = claims_needed(DEFAULT, streams.cluster(DEFAULT), &streams.shared, request);
    claims.into_iter().map(|NewClaim { group, location }| (group.name, location)).collect()
}

fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter().map(|(group, location)| ((*group).to_owned(), (*location).to_owned())).collect()
}

#[test]
fn a_request_needs_the_groups_that_it_begins_to_use() {
    let streams = Streams::new();
    let site = |change: Value| {
        let mut change = change;
        change["command"] = json!("change_site");
        change
    };
    let of = |request: &ClusterRequest| needed(&streams, request);
    assert_eq!(of(&commands(&[json!({ "command": "admit_host", "name": "h1" })])), []);
    assert_eq!(of(&commands(&[site(json!({ "resource_group": "FOREWARN" }))])), [], "it has that");
    assert_eq!(of(&commands(&[site(json!({ "location": "west" }))])), pairs(&[("forewarn", "west")]));
    let both =
        [site(json!({ "resource_group": "a" })), site(json!({ "resource_group": "b", "location": "west" }))];
    assert_eq!(of(&commands(&both)), pairs(&[("a", "local"), ("b", "west")]));
    assert_eq!(of(&writes(vec![put_group("a", "east")])), pairs(&[("a", "east")]));
    assert_eq!(of(&writes(vec![put_group("forewarn", "local")])), []);
    assert_eq!(of(&writes(vec![put_group("forewarn", "east")])), pairs(&[("forewarn", "east")]));
    let vm = put(&format!("{}/providers/N/vms/vm", group_id("A")), &json!({ "location": "south" }));
    assert_eq!(
        of(&writes(vec![vm.clone()])),
        pairs(&[("A", "local")]),
        "a group without a resource of its own"
    );
    assert_eq!(of(&writes(vec![put_group("a", "east"), vm.clone()])), pairs(&[("a", "east")]));
    assert_eq!(of(&writes(vec![vm, put_group("a", "east")])), pairs(&[("a", "east")]));
    assert_eq!(of(&writes(vec![put("/subscriptions/s/providers/N/type/name", &json!({}))])), []);
    assert_eq!(of(&ClusterRequest::Sweep), []);
}

/// promise: Z1, C7
#[test]
fn a_group_is_taken_before_and_released_after() {
    let mut streams = Streams::new();
    assert_eq!(streams.claim("forewarn"), Some((DEFAULT, "local")));
    streams.change_site(DEFAULT, "prod", "west").unwrap();
    assert_eq!((streams.claim("prod"), streams.claim("forewarn")), (Some((DEFAULT, "west")), None));
    streams.write_resources(DEFAULT, vec![put_group("Shop", "east")]).unwrap();
    assert_eq!(streams.claim("shop"), Some((DEFAULT, "east")));
    streams.write_resources(DEFAULT, vec![put_group("SHOP", "south")]).unwrap();
    assert_eq!(streams.claim("shop"), Some((DEFAULT, "south")));
    assert_eq!(streams.shared.claim(&group_id("shop").to_lowercase()).unwrap().group.name, "Shop");
    streams.write_resources(DEFAULT, vec![ResourceWrite::Remove(group_id("shop"))]).unwrap();
    assert_eq!(streams.claim("shop"), None);
}

#[test]
fn the_location_of_a_group_is_that_of_its_resource_or_of_the_site() {
    let mut streams = Streams::new();
    streams.write_resources(DEFAULT, vec![put_group("forewarn", "east")]).unwrap();
    assert_eq!(streams.claim("forewarn"), Some((DEFAULT, "east")));
    streams.change_site(DEFAULT, "forewarn", "west").unwrap();
    assert_eq!(streams.claim("forewarn"), Some((DEFAULT, "east")));
    streams.write_resources(DEFAULT, vec![ResourceWrite::Remove(group_id("forewarn"))]).unwrap();
    assert_eq!(streams.claim("forewarn"), Some((DEFAULT, "west")));
}

/// promise: Z1, C7
#[test]
fn a_group_of_another_cluster_is_refused() {
    let mut streams = Streams::new();
    let north = streams.create("north");
    streams.write_resources(north, vec![put_group("shop", "east")]).unwrap();
    let before = streams.aggregate();
    for group in ["forewarn-north", "SHOP"] {
        assert_eq!(streams.change_site(DEFAULT, group, "west"), Err(taken(group)));
        assert_eq!(streams.write_resources(DEFAULT, vec![put_group(group, "west")]), Err(taken(group)));
    }
    let vm = format!("{}/providers/N/vms/vm", group_id("shop"));
    assert_eq!(streams.write_resources(DEFAULT, vec![put(&vm, &json!({}))]), Err(taken("shop")));
    let all_or_none = vec![put_group("free", "west"), put_group("shop", "west")];
    assert_eq!(streams.write_resources(DEFAULT, all_or_none), Err(taken("shop")));
    assert_eq!(streams.aggregate(), before);
    // A cluster whose usual group is taken gets another.
    streams.write_resources(DEFAULT, vec![put_group("forewarn-south", "west")]).unwrap();
    let south = streams.create("south");
    assert_eq!(streams.claim("forewarn-south-2"), Some((south, "local")));
}

/// A decision without the claims is refused: for commands that are only tried, claims that can be taken are enough.
/// promise: C7
#[test]
fn a_group_that_was_not_claimed_cannot_be_used() {
    let mut streams = Streams::new();
    let north = streams.create("north");
    let none = BTreeSet::new();
    let environment = streams.environment(Stream::Cluster(north), &none);
    let state = &streams.clusters[&north];
    let change = |group: &str| json!({ "command": "change_site", "resource_group": group });
    for request in [commands(&[change("free")]), writes(vec![put_group("free", "west")])] {
        let decided = decide_in_cluster(north, state, &streams.shared, &environment, &request);
        assert_eq!(decided.err(), Some(ControlError::Unclaimed));
    }
    let refused = |group: &str| {
        let commands = [serde_json::from_value(change(group)).unwrap()];
        find_refused(north, state, &streams.shared, &environment, &commands).map(|refused| refused.error)
    };
    assert_eq!(refused("free"), None);
    assert_eq!(refused("forewarn"), Some(ControlError::GroupTaken("forewarn".to_owned())));
}

#[test]
fn a_cluster_releases_only_its_own_groups_and_unknown_clusters_get_none() {
    let mut streams = Streams::new();
    let north = streams.create("north");
    let group = GroupId::containing(&group_id("forewarn")).unwrap();
    let release = SharedRequest::ReleaseClaims { cluster: north, groups: vec![group.clone()] };
    streams.ask_shared(&release).unwrap();
    assert_eq!(streams.claim("forewarn"), Some((DEFAULT, "local")));
    let claims = vec![NewClaim { group, location: "west".to_owned() }];
    let take = |cluster| SharedRequest::TakeClaims { cluster, claims: claims.clone() };
    assert_eq!(streams.ask_shared(&take(north)), Err(taken("forewarn")));
    let unknown = streams.ask_shared(&take(ClusterId(9)));
    assert_eq!(unknown, Err(Failed::Refused(ControlError::NoSuchCluster)));
    let audit = streams.audit[&Stream::Shared];
    streams.ask_shared(&take(DEFAULT)).unwrap();
    assert_eq!(streams.claim("forewarn"), Some((DEFAULT, "west")));
    assert_eq!(streams.audit[&Stream::Shared], audit, "claims are not in the audit log");
}

/// A crash between the streams leaves a claim that is not used, or a location that is not the present one.
/// promise: C7
#[test]
fn claims_are_put_right_after_a_crash_between_two_streams() {
    for commits in 0..3 {
        let mut streams = Streams::new();
        streams.commits_left = commits;
        assert_eq!(streams.change_site(DEFAULT, "prod", "west"), Err(Failed::Crashed));
        let mut streams = streams.replayed();
        let expected: &[&str] = match commits {
            0 => &[],
            1 => &["prod"],
            _ => &["forewarn"],
        };
        let unused = unused_claims(DEFAULT, streams.cluster(DEFAULT), &streams.shared);
        assert_eq!(unused.iter().map(|group| group.name.as_str()).collect::<Vec<_>>(), expected);
        streams.repair();
        let group = streams.cluster(DEFAULT).site().resource_group.clone();
        assert_eq!(group, if commits < 2 { "forewarn" } else { "prod" });
        assert_eq!(
            streams.shared.claims().map(|claim| claim.group.name.as_str()).collect::<Vec<_>>(),
            [group]
        );
        assert_eq!(missing_claims(DEFAULT, streams.cluster(DEFAULT), &streams.shared), []);
    }
    let mut streams = Streams::new();
    streams.commits_left = 1;
    assert_eq!(streams.change_site(DEFAULT, "forewarn", "west"), Err(Failed::Crashed));
    let mut streams = streams.replayed();
    assert_eq!(streams.claim("forewarn"), Some((DEFAULT, "west")), "the site has not moved");
    streams.repair();
    assert_eq!(streams.claim("forewarn"), Some((DEFAULT, "local")));
}

#[test]
fn a_resource_is_found_in_the_cluster_that_has_its_group() {
    let mut streams = Streams::new();
    let north = streams.create("north");
    streams.write_resources(DEFAULT, vec![put_group("a", "west"), put_group("c", "west")]).unwrap();
    streams.write_resources(north, vec![put_group("b", "west"), put("/other", &json!({}))]).unwrap();
    let state = streams.aggregate();
    let found =
        |group: &str| state.resource(&group_id(group).to_lowercase()).map(|resource| resource.cluster);
    assert_eq!(["a", "b", "c", "d"].map(found), [Some(DEFAULT), Some(north), Some(DEFAULT), None]);
    assert_eq!(state.resource("/other").map(|resource| resource.cluster), Some(north));
    let all: Vec<_> =
        state.resources_below(&group_id("").to_lowercase()).map(|(_, one)| one.id.clone()).collect();
    assert_eq!(all, ["a", "b", "c"].map(group_id));
    assert_eq!(state.resources_below("").count(), 4);
}
