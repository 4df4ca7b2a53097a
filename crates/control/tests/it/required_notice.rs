//! Requests that require notice: they are refused, and change nothing, if no machine gets any.

use forewarn_control::request::{ClusterRequest, CommandBatch, Reply, RequestContext};
use forewarn_control::{ClusterId, ControlError, Outcome, ScaleSetCommand, Stream};
use forewarn_lifecycle::Command;
use serde_json::{Value, json};

use crate::streams::{Failed, Streams};

const CLUSTER: ClusterId = ClusterId::DEFAULT;

/// Three hosts: `solo` and `spot` on h1, which are told of their end, `web` on h2; h3 is free.
fn fleet() -> Streams {
    let mut streams = Streams::new();
    for command in [
        json!({ "command": "admit_host", "name": "h1" }),
        json!({ "command": "admit_host", "name": "h2" }),
        json!({ "command": "admit_host", "name": "h3" }),
        json!({ "command": "admit_vm", "name": "solo", "host": "h1", "terminate": "5m" }),
        json!({ "command": "admit_vm", "name": "spot", "host": "h1", "spot": "deallocate" }),
        json!({ "command": "admit_scale_set", "name": "web", "terminate": "5m" }),
        json!({ "command": "admit_instance", "scale_set": "web", "instance": { "host": "h2" } }),
    ] {
        ask(&mut streams, &command, false).unwrap();
    }
    streams
}

fn ask(streams: &mut Streams, command: &Value, require_notice: bool) -> Result<Outcome, ControlError> {
    let commands = vec![serde_json::from_value(command.clone()).unwrap()];
    let context = RequestContext { require_notice, ..RequestContext::default() };
    outcome(streams, &ClusterRequest::Commands(CommandBatch { commands, context }))
}

fn outcome(streams: &mut Streams, request: &ClusterRequest) -> Result<Outcome, ControlError> {
    match streams.ask_cluster(CLUSTER, request) {
        Ok(Reply::Outcome(outcome)) => Ok(outcome),
        Ok(reply) => panic!("{reply:?}"),
        Err(Failed::Refused(error)) => Err(error),
        Err(Failed::Crashed) => panic!("there is no crash here"),
    }
}

fn enrol(streams: &mut Streams, tenant: &str) {
    let tenant = streams.cluster(CLUSTER).rules().tenant_named(tenant).unwrap();
    streams.ask_cluster(CLUSTER, &ClusterRequest::Rules(Command::Enrol(tenant))).unwrap();
}

/// Every command that makes events, with the tenant that it concerns.
fn announcing() -> Vec<(Value, &'static str)> {
    let machine = |command: &str, machine: &str| json!({ "command": command, "machine": machine });
    let hosts = |command: &str| json!({ "command": command, "hosts": ["h1"] });
    vec![
        (machine("restart", "solo"), "solo"),
        (machine("redeploy", "solo"), "solo"),
        (machine("delete", "solo"), "solo"),
        (machine("evict", "spot"), "spot"),
        (hosts("update_hosts"), "spot"),
        (hosts("update_network"), "solo"),
        (hosts("migrate_hosts"), "solo"),
        (hosts("reboot_hosts"), "solo"),
        (json!({ "command": "start_rollout", "kind": "update", "hosts": "all" }), "web"),
        (json!({ "command": "degrade_host", "host": "h1" }), "solo"),
        (json!({ "command": "fail_host", "host": "h1" }), "solo"),
        (json!({ "command": "enter_maintenance", "host": "h1" }), "solo"),
    ]
}

/// promise: T2
#[test]
fn a_request_without_an_enrolled_tenant_is_refused_and_changes_nothing() {
    for (command, tenant) in announcing() {
        let mut streams = fleet();
        let before = (streams.clusters[&CLUSTER].clone(), streams.audit.clone(), streams.records.len());
        let refused = ask(&mut streams, &command, true).unwrap_err();
        assert!(matches!(&refused, ControlError::NoNotice(_)), "{command}: {refused:?}");
        assert!(
            refused.to_string().contains(tenant) && refused.to_string().contains("hint: poll once"),
            "{refused}"
        );
        let after = (streams.clusters[&CLUSTER].clone(), streams.audit.clone(), streams.records.len());
        assert_eq!(after, before, "{command}");

        // Other tenants do not count, except on the same host.
        enrol(&mut streams, tenant);
        let outcome = ask(&mut streams, &command, true).unwrap_or_else(|error| panic!("{command}: {error}"));
        assert!(outcome.changes > 0, "{command}");
    }
    for (command, _) in announcing() {
        assert!(ask(&mut fleet(), &command, false).is_ok(), "{command}: without the requirement");
    }
}

#[test]
fn a_rollout_that_announces_later_counts_as_notice() {
    let mut streams = fleet();
    enrol(&mut streams, "web");
    let later = json!({ "command": "start_rollout", "kind": "update", "hosts": ["h1", "h2"],
        "terms": { "at_once": 1, "windows": ["03:00-04:00"] } });
    let outcome = ask(&mut streams, &later, true).unwrap();
    assert!(outcome.events.is_empty() && outcome.rollouts.len() == 1, "{outcome:?}");
    let mut streams = fleet();
    enrol(&mut streams, "web");
    let elsewhere = json!({ "command": "start_rollout", "kind": "update", "hosts": ["h1"] });
    assert!(ask(&mut streams, &elsewhere, true).is_err(), "web is on another host");
}

/// A deletion makes room on its host, and a rollout that waits for room announces its next group: that is no notice of
/// the deletion.
#[test]
fn events_of_other_work_do_not_count() {
    let mut streams = fleet();
    enrol(&mut streams, "web");
    let no_event = json!({ "command": "stop", "machine": "solo" });
    let refused = ask(&mut streams, &no_event, true).unwrap_err();
    assert_eq!(refused, ControlError::NoEvent);
    assert!(refused.to_string().contains("hint: "), "{refused}");
    let nothing = json!({ "command": "update_hosts", "hosts": ["h3"] });
    assert_eq!(ask(&mut streams, &nothing, true).unwrap_err(), ControlError::NoEvent, "no machine is there");
}

#[test]
fn a_scale_set_that_shrinks_without_notice_is_refused() {
    let mut streams = fleet();
    let request = |require_notice| {
        let command = ScaleSetCommand::Scale {
            scale_set: "web".to_owned(),
            to: serde_json::from_value(json!({ "capacity": 0 })).unwrap(),
        };
        let context = RequestContext { require_notice, ..RequestContext::default() };
        ClusterRequest::ScaleSet { command, context }
    };
    let end = streams.audit[&Stream::Cluster(CLUSTER)];
    assert!(matches!(outcome(&mut streams, &request(true)), Err(ControlError::NoNotice(_))));
    assert_eq!(streams.audit[&Stream::Cluster(CLUSTER)], end);
    enrol(&mut streams, "web");
    assert_eq!(outcome(&mut streams, &request(true)).unwrap().events.len(), 1);
}
