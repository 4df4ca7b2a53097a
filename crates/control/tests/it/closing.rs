//! Clusters are removed in two steps: they are closed, and then their names are removed.

use forewarn_control::request::{Administration, ClusterRequest, Reply, RequestContext, SharedRequest};
use forewarn_control::shared::{Role, Scope, TokenHash, UndeliveredMessages};
use forewarn_control::{ClusterId, ControlError};
use forewarn_lifecycle::{Command, Name};
use serde_json::json;

use crate::streams::{Failed, Streams, once};

fn close() -> ClusterRequest {
    ClusterRequest::Close { by: "socket".to_owned(), once: None }
}

/// promise: T1
#[test]
fn only_an_empty_cluster_is_closed() {
    let mut streams = Streams::new();
    let north = streams.create("north");
    streams.commands(north, &[json!({ "command": "admit_host", "name": "h1" })], None).unwrap();
    let in_use = Failed::Refused(ControlError::ClusterInUse("north".to_owned()));
    assert_eq!(streams.remove("north", &RequestContext::default()), Err(in_use));
    assert_eq!(streams.cluster(north).closed(), None);
    streams.commands(north, &[json!({ "command": "remove_host", "host": "h1" })], None).unwrap();
    streams.remove("north", &RequestContext::default()).unwrap();
    assert_eq!((streams.shared.cluster_named("north"), streams.ids()), (None, vec![ClusterId::DEFAULT]));
    let default = streams.ask_cluster(ClusterId::DEFAULT, &close()).unwrap_err();
    assert!(format!("{default:?}").contains("DefaultCluster"), "{default:?}");
}

/// promise: C7
#[test]
fn a_closed_cluster_accepts_nothing_but_to_be_closed_again() {
    let mut streams = Streams::new();
    let north = streams.create("north");
    streams.ask_cluster(north, &close()).unwrap();
    assert_eq!(streams.cluster(north).closed().map(|closed| closed.by.as_str()), Some("socket"));
    let gone = Err(Failed::Refused(ControlError::NoSuchCluster));
    for request in [
        ClusterRequest::Rules(Command::Tick),
        ClusterRequest::Sweep,
        ClusterRequest::AdvanceWebhooks(Vec::new()),
        ClusterRequest::Commands(Vec::new().into()),
    ] {
        assert_eq!(streams.ask_cluster(north, &request), gone, "{request:?}");
    }
    let records = streams.records.len();
    assert_eq!(streams.ask_cluster(north, &close()), Ok(Reply::Done));
    assert_eq!(streams.records.len(), records);
}

/// promise: S2, C7
#[test]
fn the_claims_and_the_tokens_of_a_cluster_go_with_it() {
    let mut streams = Streams::new();
    let north = streams.create("north");
    assert_eq!(streams.claim("forewarn-north"), Some((north, "local")));
    let scope = Scope { clusters: [north].into_iter().collect(), ..Scope::default() };
    let (name, role, hash) = (Name::new("ci").unwrap(), Role::Viewer, TokenHash([7; 32]));
    let issue = Administration::IssueToken { number: 0, name, role, scope, hash, expires: None };
    streams.administer(issue).unwrap();
    let audit = streams.audit[&forewarn_control::Stream::Shared].number;
    streams.remove("north", &RequestContext::default()).unwrap();
    assert_eq!((streams.claim("forewarn-north"), streams.shared.tokens().count()), (None, 0));
    assert_eq!(streams.shared.initial_cluster(north), None);
    assert_eq!(streams.audit[&forewarn_control::Stream::Shared].number, audit + 1);
    assert_ne!(streams.create("north"), north);
}

/// promise: C2
#[test]
fn a_removal_that_is_repeated_gets_the_same_response() {
    let mut streams = Streams::new();
    let north = streams.create("north");
    let context = RequestContext { once: Some(once(1)), ..RequestContext::default() };
    let Ok(Reply::Outcome(outcome)) = streams.remove("north", &context) else { panic!("it is removed") };
    assert_eq!(streams.remove("north", &context), Ok(Reply::Repeated(outcome.clone())));
    let (by, once) = (context.by.clone(), context.once.clone());
    let undelivered = UndeliveredMessages::default();
    let again = SharedRequest::RemoveClosed { cluster: north, by, once, undelivered };
    assert_eq!(streams.ask_shared(&again), Ok(Reply::Repeated(outcome)));
    let gone = Err(Failed::Refused(ControlError::NoSuchCluster));
    assert_eq!(streams.remove("north", &RequestContext::default()), gone);
}

#[test]
fn a_request_to_remove_a_cluster_is_checked_before_the_cluster_is_closed() {
    let mut streams = Streams::new();
    let north = streams.create("north");
    let removed = |streams: &mut Streams, name: &str, context: RequestContext| {
        let Err(Failed::Refused(error)) = streams.remove(name, &context) else { panic!("it is removed") };
        error
    };
    let expired = RequestContext { token: Some(3), ..RequestContext::default() };
    assert_eq!(removed(&mut streams, "north", expired), ControlError::TokenGone);
    let outdated = RequestContext { if_revision: Some(7), ..RequestContext::default() };
    assert_eq!(removed(&mut streams, "north", outdated), ControlError::Outdated);
    assert_eq!(removed(&mut streams, "south", RequestContext::default()), ControlError::NoSuchCluster);
    let default = removed(&mut streams, "default", RequestContext::default());
    assert_eq!(default.to_string(), "the default cluster cannot be removed or renamed: default");
    assert_eq!(streams.cluster(north).closed(), None);
}

/// promise: T1, D1, C7
#[test]
fn a_removal_that_a_crash_has_interrupted_is_completed() {
    let mut streams = Streams::new();
    let north = streams.create("north");
    streams.commits_left = 1;
    let context = RequestContext { once: Some(once(1)), ..RequestContext::default() };
    assert_eq!(streams.remove("north", &context), Err(Failed::Crashed));
    let mut streams = streams.replayed();
    assert!(streams.cluster(north).closed().is_some() && streams.shared.cluster_named("north").is_some());
    streams.repair();
    assert_eq!(streams.shared.cluster_named("north"), None);
    assert!(matches!(streams.remove("north", &context), Ok(Reply::Repeated(_))));
}
