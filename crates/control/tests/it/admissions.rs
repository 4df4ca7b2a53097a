//! Records of machines that a request adds.

use std::collections::BTreeSet;

use forewarn_control::request::{ClusterRequest, CommandBatch, RequestContext};
use forewarn_control::{ClusterEntry, ClusterId, Entry, Stream, decide_in_cluster};
use serde_json::json;

use crate::streams::Streams;

/// promise: C4
#[test]
fn a_machine_without_details_has_no_record_of_them() {
    let instance = json!({ "command": "admit_instance", "scale_set": "web", "instance": { "host": "h1" } });
    let commands = [
        json!({ "command": "admit_host", "name": "h1" }),
        json!({ "command": "admit_scale_set", "name": "web", "orchestration": "flexible" }),
        instance.clone(),
        instance,
        json!({ "command": "admit_vm", "name": "solo", "host": "h1", "addresses": ["10.0.0.9"] }),
    ];
    let (streams, id, none) = (Streams::new(), ClusterId::DEFAULT, BTreeSet::new());
    let commands = commands.into_iter().map(|one| serde_json::from_value(one).unwrap()).collect();
    let request = ClusterRequest::Commands(CommandBatch { commands, context: RequestContext::default() });
    let environment = streams.environment(Stream::Cluster(id), &none);
    let decision =
        decide_in_cluster(id, &streams.clusters[&id], &streams.shared, &environment, &request).unwrap();
    let described = decision.records.iter().filter_map(|record| match &record.entry {
        Entry::Cluster(_, ClusterEntry::Described { machine, .. }) => Some(*machine),
        Entry::Cluster(..) | Entry::Shared(_) => None,
    });
    let solo = decision.state.machine_at(&"10.0.0.9".parse().unwrap());
    assert_eq!(described.collect::<Vec<_>>(), [solo.unwrap()]);
    assert_eq!(decision.state.details().iter().count(), 1);
}
