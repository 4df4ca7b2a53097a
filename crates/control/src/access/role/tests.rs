//! Each command: the role that it needs, and whether a token that is limited to the tenants `web` and `east` may run
//! it.

use std::collections::{BTreeMap, BTreeSet};

use crate::Resolved;
use crate::shared::{Scope, Token, TokenHash};
use crate::stream::ClusterId;
use forewarn_lifecycle::{Command, Now, Seed, Timestamp};
use serde_json::{Value, json};

use super::super::permit::{Denied, Permit};
use super::*;

/// Owner of the object of a command, from the point of view of a limited token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TargetKind {
    /// By name: own, foreign, or missing.
    Machine,
    Tenant,
    Event,
    /// A scale set that grows.
    ScaleSet,
    Everybody,
}

/// Every command, without its object.
const COMMANDS: [(&str, Role, TargetKind, &str); 56] = [
    ("admit_host", Role::Admin, TargetKind::Everybody, r#"{"name":"h9"}"#),
    ("remove_host", Role::Admin, TargetKind::Everybody, r#"{"host":"h1"}"#),
    ("forget_host", Role::Admin, TargetKind::Everybody, r#"{"host":"h1"}"#),
    ("forget", Role::Admin, TargetKind::Everybody, r#"{"machine":"east/m0"}"#),
    ("move", Role::Admin, TargetKind::Everybody, r#"{"machine":"east/m0","host":"h1"}"#),
    ("admit_vm", Role::Admin, TargetKind::Everybody, r#"{"name":"new","host":"h1"}"#),
    ("admit_availability_set", Role::Admin, TargetKind::Everybody, r#"{"name":"new"}"#),
    ("admit_cloud_service", Role::Admin, TargetKind::Everybody, r#"{"name":"new"}"#),
    (
        "admit_machine",
        Role::Admin,
        TargetKind::Everybody,
        r#"{"tenant":"east","machine":{"name":"m","host":"h1"}}"#,
    ),
    ("admit_scale_set", Role::Admin, TargetKind::Everybody, r#"{"name":"new"}"#),
    (
        "admit_instance",
        Role::Operator,
        TargetKind::ScaleSet,
        r#"{"scale_set":"web","instance":{"host":"h1"}}"#,
    ),
    ("remove_tenant", Role::Admin, TargetKind::Everybody, r#"{"tenant":"east"}"#),
    ("remove_scale_set", Role::Admin, TargetKind::Everybody, r#"{"scale_set":"web"}"#),
    ("change_policy", Role::Admin, TargetKind::Everybody, r#"{"tenant":"east","policy":{}}"#),
    ("change_model", Role::Admin, TargetKind::Everybody, r#"{"scale_set":"web"}"#),
    ("revise_model", Role::Admin, TargetKind::Everybody, r#"{"scale_set":"web"}"#),
    (
        "change_upgrade_policy",
        Role::Admin,
        TargetKind::Everybody,
        r#"{"scale_set":"web","upgrade":"rolling"}"#,
    ),
    ("change_profile", Role::Admin, TargetKind::Everybody, r#"{"machine":"east/m0"}"#),
    ("describe", Role::Admin, TargetKind::Everybody, r#"{"machine":"east/m0"}"#),
    ("change_site", Role::Admin, TargetKind::Everybody, "{}"),
    ("change_settings", Role::Admin, TargetKind::Everybody, "{}"),
    ("restart", Role::Operator, TargetKind::Machine, "{}"),
    ("redeploy", Role::Operator, TargetKind::Machine, "{}"),
    ("delete", Role::Operator, TargetKind::Machine, "{}"),
    ("reimage", Role::Operator, TargetKind::Machine, "{}"),
    ("evict", Role::Operator, TargetKind::Machine, "{}"),
    ("stop", Role::Operator, TargetKind::Machine, "{}"),
    ("start", Role::Operator, TargetKind::Machine, "{}"),
    ("deallocate", Role::Operator, TargetKind::Machine, "{}"),
    ("upgrade_instance", Role::Operator, TargetKind::Machine, "{}"),
    ("jam", Role::Operator, TargetKind::Machine, "{}"),
    ("approve", Role::Operator, TargetKind::Tenant, r#"{"events":"all"}"#),
    ("cancel", Role::Operator, TargetKind::Event, "{}"),
    ("force_start", Role::Operator, TargetKind::Event, "{}"),
    ("update_hosts", Role::Operator, TargetKind::Everybody, r#"{"hosts":["h1"]}"#),
    ("update_network", Role::Operator, TargetKind::Everybody, r#"{"hosts":["h1"]}"#),
    ("migrate_hosts", Role::Operator, TargetKind::Everybody, r#"{"hosts":["h1"]}"#),
    ("reboot_hosts", Role::Operator, TargetKind::Everybody, r#"{"hosts":["h1"]}"#),
    ("start_rollout", Role::Operator, TargetKind::Everybody, r#"{"kind":"update","hosts":"all"}"#),
    ("pause_rollout", Role::Operator, TargetKind::Everybody, r#"{"rollout":0}"#),
    ("resume_rollout", Role::Operator, TargetKind::Everybody, r#"{"rollout":0}"#),
    ("change_rollout", Role::Operator, TargetKind::Everybody, r#"{"rollout":0}"#),
    ("cancel_rollout", Role::Operator, TargetKind::Everybody, r#"{"rollout":0}"#),
    ("degrade_host", Role::Operator, TargetKind::Everybody, r#"{"host":"h1"}"#),
    ("fail_host", Role::Operator, TargetKind::Everybody, r#"{"host":"h1"}"#),
    ("recover_host", Role::Operator, TargetKind::Everybody, r#"{"host":"h1"}"#),
    ("complete_host", Role::Operator, TargetKind::Everybody, r#"{"host":"h1"}"#),
    ("retry_host", Role::Operator, TargetKind::Everybody, r#"{"host":"h1"}"#),
    ("give_up_host", Role::Operator, TargetKind::Everybody, r#"{"host":"h1"}"#),
    ("clear_host", Role::Operator, TargetKind::Everybody, r#"{"host":"h1"}"#),
    ("enter_maintenance", Role::Operator, TargetKind::Everybody, r#"{"host":"h1"}"#),
    ("exit_maintenance", Role::Operator, TargetKind::Everybody, r#"{"host":"h1"}"#),
    ("retry", Role::Operator, TargetKind::Everybody, r#"{"event":"e"}"#),
    ("give_up", Role::Operator, TargetKind::Everybody, r#"{"event":"e"}"#),
    ("brake_on", Role::Operator, TargetKind::Everybody, "{}"),
    ("brake_off", Role::Operator, TargetKind::Everybody, "{}"),
];

fn command(name: &str, fields: &str, more: &[(&str, &str)]) -> NamedCommand {
    let mut whole: Value = serde_json::from_str(fields).unwrap();
    whole["command"] = json!(name);
    for (key, value) in more {
        whole[key] = json!(value);
    }
    serde_json::from_value(whole).unwrap()
}

/// Tenants on hosts: `east`, `west` and the scale set `web` on `h1`, `alone` and another machine of `east` on `h2`. All
/// are enrolled.
struct TestFleet {
    cluster: Cluster,
    now: Now,
}

impl TestFleet {
    fn new() -> Self {
        let mut fleet = Self { cluster: Cluster::new(Seed([1; 16])), now: Now::at_millis(0) };
        for host in ["h1", "h2", "h3"] {
            fleet.order("admit_host", &format!(r#"{{"name":"{host}"}}"#));
        }
        for (tenant, host) in [("east", "h1"), ("west", "h1")] {
            fleet.order("admit_availability_set", &format!(r#"{{"name":"{tenant}"}}"#));
            let machine = format!(r#"{{"name":"m0","host":"{host}"}}"#);
            fleet.order("admit_machine", &format!(r#"{{"tenant":"{tenant}","machine":{machine}}}"#));
        }
        let second = r#"{"tenant":"east","machine":{"name":"m1","host":"h2","update_domain":1}}"#;
        fleet.order("admit_machine", second);
        fleet.order("admit_vm", r#"{"name":"alone","host":"h2"}"#);
        fleet.order("admit_scale_set", r#"{"name":"other"}"#);
        fleet.order("admit_scale_set", r#"{"name":"web"}"#);
        for _ in 0..101 {
            fleet.order("admit_instance", r#"{"scale_set":"web","instance":{"host":"h1"}}"#);
        }
        let tenants: Vec<_> = fleet.cluster.tenants().map(|(id, _)| id).collect();
        tenants.into_iter().for_each(|tenant| fleet.submit(&Command::Enrol(tenant)));
        fleet
    }

    fn submit(&mut self, command: &Command) {
        let changes = self.cluster.decide(self.now, command).unwrap();
        changes.iter().for_each(|change| drop(self.cluster.evolve(self.now, change)));
    }

    fn order(&mut self, name: &str, fields: &str) {
        match command(name, fields, &[]).resolve(&self.cluster).unwrap() {
            Resolved::Rules(command) | Resolved::Admit(command, _) | Resolved::Fail(command, _) => {
                self.submit(&command);
            }
            Resolved::Describe(..) | Resolved::Site(_) | Resolved::Jam(_) => {
                panic!("not a command of the rules")
            }
        }
    }

    fn tenant(&self, name: &str) -> TenantId {
        self.cluster.tenant_named(name).unwrap()
    }

    /// The id of the only event that a tenant sees.
    fn event(&self, tenant: &str) -> String {
        self.cluster.tenant(self.tenant(tenant)).unwrap().events()[0].id().to_string()
    }
}

fn limited() -> Permit {
    let tenants = ["web", "east"].map(|name| Name::new(name).unwrap()).into_iter().collect();
    Permit { role: Role::Operator, scope: Scope { tenants, ..Scope::default() }, ..Permit::unlimited("x") }
}

/// The fields of a command about an object, and whether the limited token may run it.
fn cases(kind: TargetKind, fleet: &TestFleet) -> Vec<(Vec<(&'static str, String)>, bool)> {
    let of = |key: &'static str, cases: Vec<(String, bool)>| {
        cases.into_iter().map(|(value, may)| (vec![(key, value)], may)).collect()
    };
    match kind {
        TargetKind::Machine => {
            let cases = [
                ("east/m0", true),
                ("m1", true),
                ("web_0", true),
                ("web/web_100", true),
                ("web:2/web_100", true),
                // Of several machines with this name, one is foreign.
                ("m0", false),
                ("west/m0", false),
                ("alone", false),
                ("alone/alone", false),
                ("missing", false),
                ("east/missing", false),
                ("", false),
                ("/", false),
                ("east/", false),
            ];
            of("machine", cases.map(|(name, may)| (name.to_owned(), may)).to_vec())
        }
        TargetKind::Tenant => {
            let cases = [("east", true), ("web", true), ("web:2", true), ("west", false), ("missing", false)];
            of("tenant", cases.map(|(name, may)| (name.to_owned(), may)).to_vec())
        }
        TargetKind::Event => {
            let missing = "28512AF7-C957-4500-9BC4-842D6FB531E4".to_owned();
            let cases = [(fleet.event("web:2"), true), (fleet.event("alone"), false), (missing, false)];
            of("event", cases.into_iter().chain([("?".to_owned(), false)]).collect())
        }
        TargetKind::ScaleSet => {
            let cases =
                [("web", true), ("east", false), ("web:2", false), ("other", false), ("missing", false)];
            of("scale_set", cases.map(|(name, may)| (name.to_owned(), may)).to_vec())
        }
        TargetKind::Everybody => vec![(Vec::new(), false)],
    }
}

/// promise: S2
#[test]
fn every_command_is_in_the_table() {
    let unknown = serde_json::from_value::<NamedCommand>(json!({ "command": "?" })).unwrap_err().to_string();
    let all: BTreeSet<_> = unknown.split('`').skip(3).step_by(2).collect();
    assert_eq!(COMMANDS.iter().map(|(name, ..)| *name).collect::<BTreeSet<_>>(), all);
}

/// promise: S2
#[test]
fn every_command_needs_its_role() {
    let fleet = {
        let mut fleet = TestFleet::new();
        fleet.order("restart", r#"{"machine":"alone"}"#);
        fleet.order("restart", r#"{"machine":"web_100"}"#);
        fleet
    };
    for (name, role, kind, fields) in COMMANDS {
        let (more, _) = cases(kind, &fleet).remove(0);
        let more: Vec<_> = more.iter().map(|(key, value)| (*key, value.as_str())).collect();
        let command = command(name, fields, &more);
        assert_eq!(needs(&command), role, "{name}");
        for has in Role::ALL {
            let permit = Permit { role: has, ..Permit::unlimited("x") };
            let expected = if has >= role { Ok(()) } else { Err(Denied::Role { needs: role, has }) };
            assert_eq!(permit.check_command(&command, &fleet.cluster), expected, "{name}");
        }
    }
}

/// promise: S3
#[test]
fn who_is_limited_to_tenants_touches_no_others_with_any_command() {
    let mut fleet = TestFleet::new();
    fleet.order("restart", r#"{"machine":"alone"}"#);
    fleet.order("restart", r#"{"machine":"web_100"}"#);
    for (name, role, kind, fields) in COMMANDS {
        for (more, may) in cases(kind, &fleet) {
            let more: Vec<_> = more.iter().map(|(key, value)| (*key, value.as_str())).collect();
            let command = command(name, fields, &more);
            let expected = match (role, may) {
                (Role::Admin, _) => Err(Denied::Role { needs: role, has: Role::Operator }),
                (Role::Viewer | Role::Operator, true) => Ok(()),
                (Role::Viewer | Role::Operator, false) => Err(Denied::Tenants),
            };
            assert_eq!(limited().check_command(&command, &fleet.cluster), expected, "{name} {more:?}");
            if let Ok(resolved) = command.resolve(&fleet.cluster) {
                let checked = limited().check_resolved(&command, &resolved, &fleet.cluster);
                assert_eq!(checked, expected, "{name} {more:?}");
            }
        }
    }
}

/// promise: S2
#[test]
fn who_grows_a_scale_set_names_neither_addresses_nor_foreign_hosts() {
    let fleet = TestFleet::new();
    let check = |instance: &str| {
        let fields = format!(r#"{{"scale_set":"web","instance":{instance}}}"#);
        limited().check_command(&command("admit_instance", &fields, &[]), &fleet.cluster)
    };
    assert_eq!(check(r#"{"host":"h1"}"#), Ok(()));
    assert_eq!(check(r#"{"host":"h9"}"#), Err(Denied::Tenants));
    let addresses = r#"{"host":"h1","addresses":["10.0.0.1"]}"#;
    assert_eq!(check(addresses), Err(Denied::Role { needs: Role::Admin, has: Role::Operator }));
}

/// promise: S3
#[test]
fn work_that_touches_others_is_not_within() {
    let mut fleet = TestFleet::new();
    fleet.order("update_hosts", r#"{"hosts":["h1"]}"#);
    while fleet.cluster.tenant(fleet.tenant("east")).unwrap().events().is_empty() {
        fleet.submit(&Command::Tick);
    }
    let event = fleet.event("east");
    for name in ["cancel", "force_start"] {
        let command = command(name, "{}", &[("event", event.as_str())]);
        let touched = tenants_of(&command, &fleet.cluster).unwrap();
        assert!(touched.contains(&fleet.tenant("west")), "{touched:?}");
        assert_eq!(limited().check_command(&command, &fleet.cluster), Err(Denied::Tenants));
        let all: Reach<_> =
            ["web", "east", "west"].map(|name| Name::new(name).unwrap()).into_iter().collect();
        assert!(is_within(&command, &fleet.cluster, &all));
    }
    // Each tenant may still approve its own event.
    assert_eq!(
        limited()
            .check_command(&command("approve", r#"{"events":"all"}"#, &[("tenant", "east")]), &fleet.cluster),
        Ok(())
    );
}

/// promise: S3
#[test]
fn a_permit_says_what_is_seen() {
    let fleet = TestFleet::new();
    let seen = |permit: &Permit| -> BTreeMap<String, bool> {
        let all = fleet.cluster.tenants();
        all.map(|(id, tenant)| (tenant.name.to_string(), permit.sees(&fleet.cluster, id))).collect()
    };
    let own =
        [("alone", false), ("east", true), ("other", false), ("web", true), ("web:2", true), ("west", false)];
    assert_eq!(seen(&limited()), own.map(|(name, sees)| (name.to_owned(), sees)).into());
    assert!(seen(&Permit::unlimited("socket")).values().all(|sees| *sees));
    assert!(!limited().sees(&fleet.cluster, TenantId(99)));
}

/// promise: S2
#[test]
fn a_permit_stands_while_its_token_is_the_same() {
    let now = forewarn_lifecycle::Now::at_millis(0);
    let mut shared = crate::shared::SharedState::new(forewarn_lifecycle::Seed([1; 16]));
    let submit = |shared: &mut crate::shared::SharedState, command: crate::shared::Command| {
        let changes = shared.decide(now, &command).unwrap();
        changes.iter().for_each(|change| drop(shared.apply(now, change)));
    };
    for name in ["west", "east"] {
        let (name, seed) = (Name::new(name).unwrap(), forewarn_lifecycle::Seed([1; 16]));
        submit(
            &mut shared,
            crate::shared::Command::CreateCluster { name, seed, site: crate::command::Site::default() },
        );
    }
    let issue = crate::shared::Command::IssueToken {
        number: 0,
        name: Name::new("ci").unwrap(),
        role: Role::Viewer,
        scope: Scope { clusters: [ClusterId(1), ClusterId(2)].into_iter().collect(), ..Scope::default() },
        hash: TokenHash([0; 32]),
        expires: Some(Timestamp::from_millis(1_000)),
        by: "socket".to_owned(),
    };
    submit(&mut shared, issue);
    let permit = Permit::of(shared.find_token(0).unwrap());
    let stands = |shared: &crate::shared::SharedState, millis: i64| {
        permit.stands(|number| shared.find_token(number), Timestamp::from_millis(millis))
    };
    assert!(stands(&shared, 999));
    assert!(!stands(&shared, 1_000), "the token has expired");
    submit(&mut shared, crate::shared::Command::RemoveCluster(ClusterId(1)));
    assert!(!stands(&shared, 0), "the token has fewer clusters");
    let narrower = Permit::of(shared.find_token(0).unwrap());
    assert!(narrower.stands(|number| shared.find_token(number), Timestamp::from_millis(0)));
    submit(&mut shared, crate::shared::Command::RevokeToken(Name::new("ci").unwrap()));
    assert!(
        !narrower.stands(|number| shared.find_token(number), Timestamp::from_millis(0)),
        "the token is revoked"
    );
    assert!(
        Permit::unlimited("socket").stands(|number| shared.find_token(number), Timestamp::from_millis(0))
    );
}

/// promise: S3
#[test]
fn a_permit_says_which_clusters_and_whether_all() {
    let token = Token {
        number: 0,
        name: Name::new("ci").unwrap(),
        role: Role::Admin,
        scope: Scope { clusters: [ClusterId(7)].into_iter().collect(), ..Scope::default() },
        hash: TokenHash([0; 32]),
        created: Timestamp::from_millis(0),
        expires: None,
        by: "socket".to_owned(),
    };
    let permit = Permit::of(&token);
    assert_eq!(permit.by, "token ci");
    assert!(permit.reaches(ClusterId(7)) && !permit.reaches(ClusterId::DEFAULT));
    assert_eq!(permit.check_server(Role::Viewer), Err(Denied::Limited));
    assert_eq!(permit.check_all_tenants(Role::Admin), Ok(()));
    let everything = Permit::unlimited("socket");
    assert!(everything.reaches(ClusterId::DEFAULT) && everything.reaches(ClusterId(7)));
    assert_eq!(everything.check_server(Role::Admin), Ok(()));
    assert_eq!(limited().check_all_tenants(Role::Viewer), Err(Denied::Limited));
    let viewer = Permit { role: Role::Viewer, ..limited() };
    let why = viewer.check_all_tenants(Role::Operator).unwrap_err();
    assert_eq!(why.to_string(), "role viewer is not sufficient\n  hint: this needs the role operator");
}
