//! One writer: the state after live decisions equals the state after replay, and a refused request changes nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use forewarn_control::ClusterId;
use forewarn_control::request::{
    Administration, ClusterRequest, CommandBatch, IdempotencyKey, Request, RequestContext, SharedRequest,
};
use forewarn_control::shared::{Role, Scope, TokenHash};
use forewarn_control::{
    Chain, ControlState, Decision, Environment, HypervisorKind, Record, RestoringState, decide,
};
use forewarn_lifecycle::{Command, Name, Now, Report, Seed};
use proptest::prelude::*;
use serde_json::{Value, json};

const SEED: Seed = Seed([9; 16]);

/// A control plane without a server.
struct Live {
    state: ControlState,
    records: Vec<Record>,
    audit: Chain,
    now: Now,
}

impl Live {
    fn new() -> Self {
        let now = Now::at_millis(1_767_225_600_000);
        Self { state: ControlState::new(SEED), records: Vec::new(), audit: Chain::default(), now }
    }

    /// Decides a request, and takes over the decision. Returns false if it is refused.
    fn request(&mut self, request: &Request) -> bool {
        let environment = Environment {
            now: self.now,
            identity: SEED,
            audit: self.audit,
            hypervisor: HypervisorKind::Simulated,
            revision: 0,
            jammed: &BTreeSet::new(),
        };
        let Ok(decision) = decide(&self.state, &environment, request) else { return false };
        let Decision { state, records, audit, audit_end, .. } = decision;
        let stream = request.stream();
        assert!(records.iter().all(|record| record.stream() == stream), "{request:?}: {records:?}");
        assert!(audit.iter().all(|entry| entry.stream() == stream), "{request:?}: {audit:?}");
        (self.state, self.audit) = (state, audit_end);
        self.records.extend(records);
        true
    }

    fn commands(&mut self, commands: &[Value], key: Option<u8>) -> bool {
        let commands = commands.iter().map(|one| serde_json::from_value(one.clone()).unwrap()).collect();
        let key = key.map(|key| IdempotencyKey { key: format!("k{key}"), fingerprint: [key; 32] });
        let context = RequestContext { once: key, ..RequestContext::default() };
        let batch = CommandBatch { commands, context };
        self.request(&Request::Cluster(ClusterId::DEFAULT, ClusterRequest::Commands(batch)))
    }

    fn rules(&mut self, command: Command) -> bool {
        self.request(&Request::Cluster(ClusterId::DEFAULT, ClusterRequest::Rules(command)))
    }

    /// Reports results of all actions that are under way.
    fn report(&mut self, report: Report) {
        let rules = self.state.cluster(ClusterId::DEFAULT).unwrap().rules();
        let actions: Vec<_> = rules.unfinished().collect();
        for action in actions {
            let reason = (report == Report::Failed).then(|| "no such domain".to_owned());
            let (work, machine) = (action.maintenance, action.machine);
            let request = ClusterRequest::Report { work, machine, report, reason };
            self.request(&Request::Cluster(ClusterId::DEFAULT, request));
        }
    }
}

/// One step of a random history.
#[derive(Clone, Debug)]
enum Step {
    Host(u8),
    Vm { name: u8, host: u8, address: u8 },
    Describe { name: u8, address: u8 },
    Enrol(u8),
    Act { name: u8, action: u8, key: Option<u8> },
    Pair { name: u8, other: u8 },
    Site(u8),
    Cluster(u8),
    Token(u8),
    Pass { minutes: u64, failed: bool },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..3_u8).prop_map(Step::Host),
        (0..4_u8, 0..3_u8, 0..5_u8).prop_map(|(name, host, address)| Step::Vm { name, host, address }),
        (0..4_u8, 0..5_u8).prop_map(|(name, address)| Step::Describe { name, address }),
        (0..4_u8).prop_map(Step::Enrol),
        (0..4_u8, 0..5_u8, proptest::option::of(0..3_u8)).prop_map(|(name, action, key)| Step::Act {
            name,
            action,
            key
        }),
        (0..4_u8, 0..4_u8).prop_map(|(name, other)| Step::Pair { name, other }),
        (0..3_u8).prop_map(Step::Site),
        (0..3_u8).prop_map(Step::Cluster),
        (0..3_u8).prop_map(Step::Token),
        (0..30_u64, any::<bool>()).prop_map(|(minutes, failed)| Step::Pass { minutes, failed }),
    ];
    proptest::collection::vec(step, 1..60)
}

fn take(live: &mut Live, step: &Step) {
    let vm = |number: &u8| format!("vm{number}");
    match step {
        Step::Host(number) => {
            live.commands(&[json!({ "command": "admit_host", "name": format!("h{number}") })], None);
        }
        Step::Vm { name, host, address } => {
            let address = format!("10.0.0.{address}");
            let admit = json!({ "command": "admit_vm", "name": vm(name), "host": format!("h{host}"), "addresses": [address] });
            live.commands(&[admit], None);
        }
        Step::Describe { name, address } => {
            let address = format!("10.0.0.{address}");
            let describe = json!({ "command": "describe", "machine": vm(name), "addresses": [address], "tags": { "a": "b" } });
            live.commands(&[describe], None);
        }
        Step::Enrol(number) => {
            let rules = live.state.cluster(ClusterId::DEFAULT).unwrap().rules();
            if let Some(tenant) = rules.tenant_named(&vm(number)) {
                live.rules(Command::Enrol(tenant));
            }
        }
        Step::Act { name, action, key } => {
            let action = ["restart", "redeploy", "delete", "forget", "deallocate"][usize::from(*action)];
            live.commands(&[json!({ "command": action, "machine": vm(name) })], *key);
        }
        Step::Pair { name, other } => {
            let restart = |number| json!({ "command": "restart", "machine": vm(number) });
            live.commands(&[restart(name), restart(other)], None);
        }
        Step::Site(number) => {
            live.commands(&[json!({ "command": "change_site", "location": format!("west{number}") })], None);
        }
        Step::Cluster(number) => {
            let change = Administration::CreateCluster(Name::new(&format!("c{number}")).unwrap());
            administer(live, change);
        }
        Step::Token(name) => {
            let (number, name) = (live.state.shared().next_token(), format!("t{name}"));
            let (role, scope, hash) = (Role::Operator, Scope::default(), TokenHash([7; 32]));
            let name = Name::new(&name).unwrap();
            administer(live, Administration::IssueToken { number, name, role, scope, hash, expires: None });
        }
        Step::Pass { minutes, failed } => {
            live.now = live.now.plus(Duration::from_mins(*minutes));
            live.rules(Command::Tick);
            live.report(if *failed { Report::Failed } else { Report::Done });
        }
    }
}

fn administer(live: &mut Live, change: Administration) {
    let context = RequestContext::default();
    live.request(&Request::Shared(SharedRequest::Administer { change, context }));
}

/// The state as it is read from its rows.
fn folded(state: &ControlState) -> ControlState {
    let mut restoring = RestoringState::default();
    state.clone().into_rows().for_each(|row| restoring.add(row).unwrap());
    restoring.finish().unwrap()
}

proptest! {
    /// promise: D1, C1
    #[test]
    fn the_state_after_live_decisions_equals_the_state_after_replay(
        steps in steps(),
        crash in any::<prop::sample::Index>(),
        fold in any::<prop::sample::Index>(),
    ) {
        let mut live = Live::new();
        let mut snapshots = vec![(0, live.state.clone())];
        for step in &steps {
            take(&mut live, step);
            snapshots.push((live.records.len(), live.state.clone()));
        }
        // Replay of everything, folded at any record.
        let mut replayed = ControlState::new(SEED);
        let fold = fold.index(live.records.len() + 1);
        for (place, record) in live.records.iter().enumerate() {
            if place == fold {
                replayed = folded(&replayed);
            }
            replayed.apply(record);
        }
        prop_assert_eq!(&replayed, &live.state);
        prop_assert_eq!(&folded(&replayed), &live.state);
        // A crash after any request: its records alone give the state that was published then.
        let (records, published) = &snapshots[crash.index(snapshots.len())];
        let mut recovered = ControlState::new(SEED);
        live.records[..*records].iter().for_each(|record| drop(recovered.apply(record)));
        prop_assert_eq!(&recovered, published);
    }
}

/// promise: C1
#[test]
fn a_batch_with_a_refused_command_changes_nothing() {
    let mut live = Live::new();
    assert!(live.commands(&[json!({ "command": "admit_host", "name": "h1" })], None));
    let (before, audit) = (live.state.clone(), live.audit);
    let vm = json!({ "command": "admit_vm", "name": "solo", "host": "h1", "addresses": ["10.0.0.1"] });
    let same = json!({ "command": "admit_vm", "name": "solo", "host": "h1" });
    let taken = json!({ "command": "admit_vm", "name": "other", "host": "h1", "addresses": ["10.0.0.1"] });
    for refused in [same, taken, json!({ "command": "restart", "machine": "nobody" })] {
        let records = live.records.len();
        assert!(!live.commands(&[vm.clone(), refused.clone()], None), "{refused}");
        assert_eq!((&live.state, live.records.len(), live.audit), (&before, records, audit), "{refused}");
    }
    assert!(live.commands(&[vm], None));
}

/// promise: M3
#[test]
fn an_address_of_a_forgotten_machine_is_free_in_the_same_request() {
    let mut live = Live::new();
    let vm =
        |name: &str| json!({ "command": "admit_vm", "name": name, "host": "h1", "addresses": ["10.0.0.1"] });
    assert!(live.commands(&[json!({ "command": "admit_host", "name": "h1" }), vm("old")], None));
    assert!(live.commands(&[json!({ "command": "forget", "machine": "old" }), vm("new")], None));
    let (id, machine) = live.state.machine_at(&"10.0.0.1".parse().unwrap()).unwrap();
    let name = &live.state.cluster(id).unwrap().rules().machine(machine).unwrap().name;
    assert_eq!(name.as_str(), "new");
}
