//! Repeated transactions: carried out once, and answered the same, although the cluster has changed since.

use std::collections::BTreeSet;
use std::time::Duration;

use forewarn_control::notice::MovedTimes;
use forewarn_control::request::{
    ClusterRequest, CommandBatch, ForwardId, Reply, RequestContext, Transaction, TransactionOutcome,
};
use forewarn_control::{
    ClusterEntry, ClusterId, ControlError, Entry, Environment, Stream, decide_in_cluster,
};
use forewarn_lifecycle::{Command, MaintenanceId, Now};
use serde_json::json;

use crate::streams::{Streams, once, put_group};

const CLUSTER: ClusterId = ClusterId::DEFAULT;

/// One machine, whose tenant gets notice.
fn fleet() -> Streams {
    let mut streams = Streams::new();
    let host = json!({ "command": "admit_host", "name": "h1" });
    let machine = json!({ "command": "admit_vm", "name": "solo", "host": "h1" });
    streams.commands(CLUSTER, &[host, machine], None).unwrap();
    let tenant = streams.cluster(CLUSTER).rules().tenant_named("solo").unwrap();
    streams.ask_cluster(CLUSTER, &ClusterRequest::Rules(Command::Enrol(tenant))).unwrap();
    streams
}

/// A client of Azure restarts the machine, and follows the operation. The request was planned for a revision.
fn restart(context: RequestContext) -> ClusterRequest {
    let commands = vec![serde_json::from_value(json!({ "command": "restart", "machine": "solo" })).unwrap()];
    let operation = Some("/g/solo".to_owned());
    let writes = vec![put_group("a", "west")];
    let transaction = Transaction { commands, writes, operation, ..Transaction::default() };
    ClusterRequest::Transaction { transaction, context: RequestContext { if_revision: Some(0), ..context } }
}

fn forwarded() -> RequestContext {
    RequestContext { forwarded: Some(ForwardId([7; 16])), ..RequestContext::default() }
}

fn with_key() -> RequestContext {
    RequestContext { once: Some(once(1)), ..RequestContext::default() }
}

fn transacted(reply: Reply) -> TransactionOutcome {
    let Reply::Transacted(transacted) = reply else { panic!("{reply:?}") };
    transacted
}

/// Decides a request after other decisions. Returns the reply and the number of records.
fn repeat(streams: &Streams, request: &ClusterRequest) -> Result<(Reply, usize), ControlError> {
    let (jammed, shared) = (BTreeSet::new(), &streams.shared);
    let environment = Environment { revision: 9, ..streams.environment(Stream::Cluster(CLUSTER), &jammed) };
    let decision = decide_in_cluster(CLUSTER, &streams.clusters[&CLUSTER], shared, &environment, request)?;
    Ok((decision.reply, decision.records.len() + decision.audit.len()))
}

/// promise: D1, C2
#[test]
fn a_transaction_that_is_repeated_after_its_commit_gets_the_same_reply() {
    for context in [forwarded(), with_key()] {
        let mut streams = fleet();
        let request = restart(context);
        let first = transacted(streams.ask_cluster(CLUSTER, &request).unwrap());
        assert!(first.operation.is_some() && first.outcome.events.len() == 1, "{first:?}");
        // Another server has the same log.
        for server in [&streams, &streams.replayed()] {
            let (again, written) = repeat(server, &request).unwrap();
            assert_eq!((transacted(again), written), (first.clone(), 0));
        }
    }
}

/// promise: C2
#[test]
fn a_key_of_a_transaction_belongs_to_one_request() {
    let mut streams = fleet();
    streams.ask_cluster(CLUSTER, &restart(with_key())).unwrap();
    let mut other = once(1);
    other.fingerprint = [2; 32];
    let context = RequestContext { once: Some(other), ..RequestContext::default() };
    let refused = repeat(&streams, &restart(context)).unwrap_err();
    assert!(refused.to_string().contains("k1"), "{refused}");
    let context = RequestContext { forwarded: Some(ForwardId([8; 16])), ..RequestContext::default() };
    assert_eq!(repeat(&streams, &restart(context)), Err(ControlError::Outdated), "it was not carried out");
}

#[test]
fn requests_without_a_key_have_no_receipts() {
    let mut streams = fleet();
    streams.ask_cluster(CLUSTER, &restart(RequestContext::default())).unwrap();
    assert_eq!(streams.cluster(CLUSTER).receipts().size(), (0, 0));
}

/// promise: C2
#[test]
fn forwarded_commands_are_carried_out_once_and_use_no_key_of_their_caller() {
    let mut streams = fleet();
    let batch = |once| {
        let commands =
            vec![serde_json::from_value(json!({ "command": "admit_host", "name": "h2" })).unwrap()];
        let context = RequestContext { by: "token web".to_owned(), once, ..forwarded() };
        ClusterRequest::Commands(CommandBatch { commands, context })
    };
    let Reply::Outcome(first) = streams.ask_cluster(CLUSTER, &batch(None)).unwrap() else { panic!() };
    assert_eq!(repeat(&streams, &batch(None)), Ok((Reply::Repeated(first), 0)));
    let receipts = streams.cluster(CLUSTER).receipts();
    let key = ForwardId([7; 16]).to_string();
    assert!(receipts.find("token web", &key, streams.now.steady).is_none());
    assert!(receipts.find("forwarded", &key, streams.now.steady).is_some());
    // The key of the caller is the one that counts.
    let taken = repeat(&streams, &batch(Some(once(1)))).unwrap_err().to_string();
    assert!(taken.contains("h2"), "{taken}");
}

/// promise: N3, C2
#[test]
fn a_receipt_of_a_transaction_shows_the_time_that_its_event_was_moved_to() {
    let mut streams = fleet();
    let request = restart(forwarded());
    let first = transacted(streams.ask_cluster(CLUSTER, &request).unwrap());
    let written = streams.records.clone();
    let planned = |id: &MaintenanceId| streams.cluster(CLUSTER).rules().maintenance(*id).is_some();
    let announced = (0..2).map(MaintenanceId).filter(planned).collect();
    let hour = Duration::from_hours(1);
    let now = Now { wall: streams.now.wall.plus(hour), steady: streams.now.steady.plus(hour) };
    let moved = MovedTimes::decide(CLUSTER, streams.cluster(CLUSTER), now, hour, &announced, &written);
    let is_receipt = |entry: &Entry| matches!(entry, Entry::Cluster(_, ClusterEntry::ReceiptKept(_)));
    assert_eq!(moved.records.iter().filter(|record| is_receipt(&record.entry)).count(), 1);
    moved.records.iter().for_each(|record| streams.write(record.clone()));
    let mut expected = Reply::Transacted(first);
    moved.show_in_reply(&mut expected);
    assert_eq!(repeat(&streams, &request), Ok((expected, 0)));
}
