//! One writer: the state of each stream after live decisions equals its state after replay, also after a crash between
//! two streams, and a refused request changes nothing.

use std::time::Duration;

use forewarn_control::request::{
    Administration, ClusterRequest, Reply, RequestContext, ResourceWrite, Transaction,
};
use forewarn_control::shared::{Boot, Filter, Restoring, Role, Scope, SharedState, TokenHash, WebhookFormat};
use forewarn_control::{
    ClusterId, ClusterState, ControlError, ControlState, Record, RestoringCluster, RestoringState, Stream,
    missing_claims, unused_claims,
};
use forewarn_lifecycle::{Command, Name, Report};
use forewarn_testkit::shared_state::deliveries;
use forewarn_url::Url;
use proptest::prelude::*;
use serde_json::json;

use crate::streams::{Failed, SEED, Streams, group_id, once, put, put_group};

const DEFAULT: ClusterId = ClusterId::DEFAULT;

/// One step of a random history. The number of a cluster counts those that are there.
#[derive(Clone, Debug)]
enum Step {
    InCluster(u8, ClusterStep),
    Create(u8),
    Remove { name: u8, key: Option<u8> },
    Token(u8),
    AddWebhook(u8),
    RemoveWebhook(u8),
    Pass { minutes: u64, failed: bool },
}

#[derive(Clone, Debug)]
enum ClusterStep {
    Host(u8),
    Vm { name: u8, host: u8, address: u8 },
    Describe { name: u8, address: u8 },
    Enrol(u8),
    Act { name: u8, action: u8, key: Option<u8> },
    Pair { name: u8, other: u8 },
    Site { group: u8, location: u8, key: Option<u8> },
    Group { group: u8, location: u8, vm: bool },
    RemoveGroup(u8),
    Advance(Vec<(u32, forewarn_control::shared::Progress)>),
    Clock,
    Boot(u8),
}

fn cluster_steps() -> impl Strategy<Value = ClusterStep> {
    use ClusterStep as S;
    let key = || proptest::option::of(0..3_u8);
    prop_oneof![
        2 => (0..3_u8).prop_map(S::Host),
        3 => (0..4_u8, 0..3_u8, 0..5_u8).prop_map(|(name, host, address)| S::Vm { name, host, address }),
        1 => (0..4_u8, 0..5_u8).prop_map(|(name, address)| S::Describe { name, address }),
        1 => (0..4_u8).prop_map(S::Enrol),
        2 => (0..4_u8, 0..5_u8, key()).prop_map(|(name, action, key)| S::Act { name, action, key }),
        1 => (0..4_u8, 0..4_u8).prop_map(|(name, other)| S::Pair { name, other }),
        3 => (0..4_u8, 0..3_u8, key()).prop_map(|(group, location, key)| S::Site { group, location, key }),
        3 => (0..4_u8, 0..3_u8, any::<bool>()).prop_map(|(group, location, vm)| S::Group { group, location, vm }),
        2 => (0..4_u8).prop_map(S::RemoveGroup),
        1 => deliveries().prop_map(S::Advance),
        1 => Just(S::Clock),
        1 => any::<u8>().prop_map(S::Boot),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        10 => (0..3_u8, cluster_steps()).prop_map(|(cluster, step)| Step::InCluster(cluster, step)),
        2 => (0..3_u8).prop_map(Step::Create),
        1 => (0..3_u8, proptest::option::of(0..3_u8)).prop_map(|(name, key)| Step::Remove { name, key }),
        1 => (0..3_u8).prop_map(Step::Token),
        1 => (0..3_u8).prop_map(Step::AddWebhook),
        1 => (0..3_u8).prop_map(Step::RemoveWebhook),
        2 => (0..30_u64, any::<bool>()).prop_map(|(minutes, failed)| Step::Pass { minutes, failed }),
    ];
    proptest::collection::vec(step, 1..60)
}

/// Takes a step; it may be refused. Fails if the server crashes in it.
fn take(streams: &mut Streams, step: &Step) -> Result<(), Failed> {
    let name = |prefix: &str, number: &u8| Name::new(&format!("{prefix}{number}")).unwrap();
    let result = match step {
        Step::InCluster(cluster, step) => {
            let ids = streams.ids();
            let id = ids[usize::from(*cluster) % ids.len()];
            take_in_cluster(streams, id, step)
        }
        Step::Create(number) => {
            streams.administer(Administration::CreateCluster(name("c", number))).map(drop)
        }
        Step::Remove { name: number, key } => {
            let context = RequestContext { once: key.map(once), ..RequestContext::default() };
            streams.remove(&format!("c{number}"), &context).map(drop)
        }
        Step::Token(token) => {
            let number = streams.shared.next_token();
            let (role, scope, hash) = (Role::Operator, Scope::default(), TokenHash([7; 32]));
            let name = name("t", token);
            let issue = Administration::IssueToken { number, name, role, scope, hash, expires: None };
            streams.administer(issue).map(drop)
        }
        Step::AddWebhook(number) => {
            let (name, url) = (name("w", number), Url::parse("https://hooks.example/in").unwrap());
            let (format, filter) = (WebhookFormat::CloudEvents, Filter::default());
            let add = Administration::AddWebhook { name, url, format, filter, authorization: None };
            streams.administer(add).map(drop)
        }
        Step::RemoveWebhook(number) => {
            streams.administer(Administration::RemoveWebhook(name("w", number))).map(drop)
        }
        Step::Pass { minutes, failed } => {
            streams.now = streams.now.plus(Duration::from_mins(*minutes));
            let report = if *failed { Report::Failed } else { Report::Done };
            streams.ids().into_iter().try_for_each(|id| pass(streams, id, report))
        }
    };
    if result == Err(Failed::Crashed) { result } else { Ok(()) }
}

/// Time has passed in a cluster: what is due is decided, and all actions have a result.
fn pass(streams: &mut Streams, id: ClusterId, report: Report) -> Result<(), Failed> {
    streams.ask_cluster(id, &ClusterRequest::Rules(Command::Tick))?;
    let actions: Vec<_> = streams.cluster(id).rules().unfinished().collect();
    for action in actions {
        let reason = (report == Report::Failed).then(|| "no such domain".to_owned());
        let (work, target) = (action.maintenance, action.target);
        streams.ask_cluster(id, &ClusterRequest::Report { work, target, report, reason })?;
    }
    Ok(())
}

fn take_in_cluster(streams: &mut Streams, id: ClusterId, step: &ClusterStep) -> Result<(), Failed> {
    use ClusterStep as S;
    let vm = |number: &u8| format!("vm{number}");
    // Few groups, so that clusters want the same: also those of other sites.
    let group_name =
        |number: &u8| ["forewarn", "forewarn-c1", "shop", "Forewarn-C2"][usize::from(*number)].to_owned();
    let addresses = |address: &u8| json!([format!("10.0.0.{address}")]);
    let commands = match step {
        S::Host(number) => vec![json!({ "command": "admit_host", "name": format!("h{number}") })],
        S::Vm { name, host, address } => vec![json!({
            "command": "admit_vm", "name": vm(name), "host": format!("h{host}"), "addresses": addresses(address),
        })],
        S::Describe { name, address } => vec![json!({
            "command": "describe", "machine": vm(name), "addresses": addresses(address), "tags": { "a": "b" },
        })],
        S::Enrol(number) => {
            let Some(tenant) = streams.cluster(id).rules().tenant_named(&vm(number)) else { return Ok(()) };
            return streams.ask_cluster(id, &ClusterRequest::Rules(Command::Enrol(tenant))).map(drop);
        }
        S::Act { name, action, .. } => {
            let action = ["restart", "redeploy", "delete", "forget", "deallocate"][usize::from(*action)];
            vec![json!({ "command": action, "machine": vm(name) })]
        }
        S::Pair { name, other } => {
            [name, other].map(|number| json!({ "command": "restart", "machine": vm(number) })).to_vec()
        }
        S::Site { group, location, .. } => vec![json!({
            "command": "change_site", "resource_group": group_name(group), "location": format!("west{location}"),
        })],
        S::Group { group, location, vm } => {
            let (group, location) = (group_name(group), format!("west{location}"));
            let inside = format!("{}/providers/N/vms/vm", group_id(&group));
            let writes = [put_group(&group, &location), put(&inside, &json!({ "location": location }))];
            return streams.write_resources(id, writes[usize::from(*vm)..].to_vec()).map(drop);
        }
        S::RemoveGroup(group) => {
            let remove = ResourceWrite::Remove(group_id(&group_name(group)));
            return streams.write_resources(id, vec![remove]).map(drop);
        }
        S::Advance(reports) => {
            return streams.ask_cluster(id, &ClusterRequest::AdvanceWebhooks(reports.clone())).map(drop);
        }
        S::Clock => {
            streams.write(Record::clock_in(streams.now, Stream::Cluster(id)));
            return Ok(());
        }
        S::Boot(number) => {
            let boot = Boot { id: [*number; 16], offset_millis: i64::from(*number) };
            streams.write(Record::booted(streams.now, Stream::Cluster(id), boot));
            return Ok(());
        }
    };
    let key = match step {
        S::Act { key, .. } | S::Site { key, .. } => *key,
        S::Host(_)
        | S::Vm { .. }
        | S::Describe { .. }
        | S::Enrol(_)
        | S::Pair { .. }
        | S::Group { .. }
        | S::RemoveGroup(_)
        | S::Advance(_)
        | S::Clock
        | S::Boot(_) => None,
    };
    streams.commands(id, &commands, key).map(drop)
}

/// The state as it is read from its rows.
fn folded(state: &ControlState) -> ControlState {
    let mut restoring = RestoringState::default();
    state.clone().into_rows().for_each(|row| restoring.add(row).unwrap());
    restoring.finish().unwrap()
}

fn folded_shared(shared: &SharedState) -> SharedState {
    let mut restoring = Restoring::default();
    shared.clone().into_rows().for_each(|row| restoring.add(row).unwrap());
    restoring.finish().unwrap()
}

fn folded_cluster(id: ClusterId, cluster: &ClusterState) -> ClusterState {
    let mut restoring = RestoringCluster::new(id);
    cluster.clone().into_rows().for_each(|row| restoring.add(row).unwrap());
    restoring.finish().unwrap()
}

/// Every stream is as its log and its rows say, and all of them together as all records say.
fn check_replay(streams: &Streams, fold: usize) -> Result<(), TestCaseError> {
    let (live, replayed) = (streams.aggregate(), streams.replayed());
    prop_assert_eq!(&replayed.aggregate(), &live);
    prop_assert_eq!(&folded_shared(&streams.shared), &*streams.shared);
    for (id, cluster) in &streams.clusters {
        prop_assert_eq!(&folded_cluster(*id, cluster), &**cluster);
    }
    let mut all = ControlState::new(SEED);
    for (place, record) in streams.records.iter().enumerate() {
        if place == fold {
            all = folded(&all);
        }
        all.apply(record);
    }
    prop_assert_eq!(&all, &live);
    prop_assert_eq!(&folded(&all), &live);
    Ok(())
}

/// Each group in use is claimed by the cluster that uses it, and no other: so no group is in two clusters.
fn check_claims(streams: &Streams) -> Result<(), TestCaseError> {
    for (id, cluster) in &streams.clusters {
        prop_assert_eq!(unused_claims(*id, cluster, &streams.shared), []);
        prop_assert_eq!(missing_claims(*id, cluster, &streams.shared), []);
        let site = group_id(&cluster.site().resource_group);
        let resources = cluster.resources().below("").map(|(key, _)| key.to_owned());
        for key in resources.chain([site.to_lowercase()]) {
            let group = key.split('/').take(5).collect::<Vec<_>>().join("/");
            let owner = streams.shared.claim(&group).map(|claim| claim.cluster);
            prop_assert_eq!(owner, Some(*id), "{}", key);
        }
    }
    prop_assert!(streams.shared.claims().all(|claim| streams.clusters.contains_key(&claim.cluster)));
    Ok(())
}

proptest! {
    /// promise: D1, C1, Z1, C7
    #[test]
    fn the_state_after_live_decisions_equals_the_state_after_replay(
        steps in steps(),
        crash in 0..120_usize,
        fold in any::<prop::sample::Index>(),
    ) {
        let mut streams = Streams::new();
        streams.commits_left = crash;
        for step in &steps {
            if take(&mut streams, step).is_err() {
                // A crash after any commit, perhaps between two streams: the logs alone give what was published.
                check_replay(&streams, fold.index(streams.records.len() + 1))?;
                streams = streams.replayed();
                streams.repair();
                check_claims(&streams)?;
            }
        }
        check_replay(&streams, fold.index(streams.records.len() + 1))?;
        check_claims(&streams)?;
    }
}

/// promise: C1
#[test]
fn a_batch_with_a_refused_command_changes_nothing() {
    let mut live = Streams::new();
    assert!(live.commands(DEFAULT, &[json!({ "command": "admit_host", "name": "h1" })], None).is_ok());
    let (before, audit) = (live.aggregate(), live.audit.clone());
    let vm = json!({ "command": "admit_vm", "name": "solo", "host": "h1", "addresses": ["10.0.0.1"] });
    let same = json!({ "command": "admit_vm", "name": "solo", "host": "h1" });
    let taken = json!({ "command": "admit_vm", "name": "other", "host": "h1", "addresses": ["10.0.0.1"] });
    for refused in [same, taken, json!({ "command": "restart", "machine": "nobody" })] {
        let records = live.records.len();
        assert!(live.commands(DEFAULT, &[vm.clone(), refused.clone()], None).is_err(), "{refused}");
        assert_eq!(
            (&live.aggregate(), live.records.len(), &live.audit),
            (&before, records, &audit),
            "{refused}"
        );
    }
    assert!(live.commands(DEFAULT, &[vm], None).is_ok());
}

/// promise: M3
#[test]
fn an_address_of_a_forgotten_machine_is_free_in_the_same_request() {
    let mut live = Streams::new();
    let vm =
        |name: &str| json!({ "command": "admit_vm", "name": name, "host": "h1", "addresses": ["10.0.0.1"] });
    assert!(
        live.commands(DEFAULT, &[json!({ "command": "admit_host", "name": "h1" }), vm("old")], None).is_ok()
    );
    assert!(
        live.commands(DEFAULT, &[json!({ "command": "forget", "machine": "old" }), vm("new")], None).is_ok()
    );
    let cluster = live.cluster(DEFAULT);
    let machine = cluster.machine_at(&"10.0.0.1".parse().unwrap()).unwrap();
    assert_eq!(cluster.rules().machine(machine).unwrap().name.as_str(), "new");
}

/// promise: M3
#[test]
fn an_address_belongs_to_one_machine_of_each_cluster() {
    let mut live = Streams::new();
    let north = live.create("north");
    let address: std::net::IpAddr = "10.0.0.1".parse().unwrap();
    let vm =
        |name: &str| json!({ "command": "admit_vm", "name": name, "host": "h1", "addresses": ["10.0.0.1"] });
    for (id, name) in [(DEFAULT, "one"), (north, "two")] {
        live.commands(id, &[json!({ "command": "admit_host", "name": "h1" }), vm(name)], None).unwrap();
        let machine = live.cluster(id).machine_at(&address).unwrap();
        assert_eq!(live.cluster(id).rules().machine(machine).unwrap().name.as_str(), name);
        let taken = live.commands(id, &[vm("more")], None).unwrap_err();
        let machine = name.to_owned();
        assert_eq!(taken, Failed::Refused(ControlError::AddressTaken { address, machine }));
    }
    live.commands(north, &[json!({ "command": "forget", "machine": "two" })], None).unwrap();
    assert_eq!(live.cluster(north).machine_at(&address), None);
    assert!(live.cluster(DEFAULT).machine_at(&address).is_some());
}

/// promise: Z3
#[test]
fn names_of_operations_derive_from_the_secret_of_their_cluster() {
    let mut live = Streams::new();
    let north = live.create("north");
    let mut open = |id| {
        let transaction = Transaction { operation: Some("/a".to_owned()), ..Transaction::default() };
        let request = ClusterRequest::Transaction { transaction, context: RequestContext::default() };
        let Ok(Reply::Transacted(done)) = live.ask_cluster(id, &request) else { panic!("it is refused") };
        done.operation.unwrap()
    };
    let opened = [open(DEFAULT), open(north), open(DEFAULT), open(north)];
    assert_eq!(opened.each_ref().map(|operation| operation.number), [0, 0, 1, 1]);
    let names: std::collections::BTreeSet<_> = opened.iter().map(|operation| &operation.name).collect();
    assert_eq!(names.len(), 4);
}
