//! Many machines in one request: few records and audit entries.

use std::collections::BTreeSet;

use forewarn_control::request::{ClusterRequest, CommandBatch, RequestContext};
use forewarn_control::{ClusterId, Record, Stream, decide_in_cluster};
use serde_json::{Value, json};

use crate::streams::Streams;

const MACHINES: usize = 300;

/// The sentences of the audit entries of a request, the machines that they name, and its records.
fn decided(commands: &[Value]) -> (Vec<String>, Vec<String>, Vec<Record>) {
    let (streams, id, none) = (Streams::new(), ClusterId::DEFAULT, BTreeSet::new());
    let commands = commands.iter().map(|one| serde_json::from_value(one.clone()).unwrap()).collect();
    let request = ClusterRequest::Commands(CommandBatch { commands, context: RequestContext::default() });
    let environment = streams.environment(Stream::Cluster(id), &none);
    let decision =
        decide_in_cluster(id, &streams.clusters[&id], &streams.shared, &environment, &request).unwrap();
    let entries = decision.audit.iter().skip(1);
    assert!(entries.clone().all(|entry| entry.because == Some(1)));
    let texts = entries.clone().map(|entry| entry.text.clone()).collect();
    (texts, entries.flat_map(|entry| entry.machines.clone()).collect(), decision.records)
}

/// promise: C4
#[test]
fn machines_that_one_request_adds_to_a_tenant_share_an_audit_entry() {
    let instance =
        |_| json!({ "command": "admit_instance", "scale_set": "web", "instance": { "host": "h1" } });
    let mut commands = vec![
        json!({ "command": "admit_host", "name": "h1" }),
        json!({ "command": "admit_host", "name": "h2" }),
        json!({ "command": "admit_scale_set", "name": "web", "orchestration": "flexible" }),
    ];
    commands.extend((0..MACHINES).map(instance));
    commands.push(json!({ "command": "admit_vm", "name": "solo", "host": "h2", "addresses": ["10.0.0.9"] }));
    let (texts, machines, records) = decided(&commands);
    assert_eq!(texts[0], "hosts h1, h2 were added");
    assert_eq!(texts.last().map(String::as_str), Some("machine solo was added"));
    assert!(texts.len() < 10, "{texts:?}");
    let all: Vec<_> = (0..MACHINES).map(|number| format!("web/web_{number}")).collect();
    assert_eq!(machines, [&all[..], &["solo/solo".to_owned()]].concat(), "each machine once, in its order");
    // Only the machine with an address has details.
    assert_eq!(records.iter().filter(|record| format!("{record:?}").contains("Described")).count(), 1);
}
