//! Requests and replies as JSON: read as they were written, or rejected.

use std::collections::BTreeSet;

use forewarn_control::ClusterId;
use forewarn_control::request::{
    Administration, ClusterRequest, DecidedChanges, LinkTarget, Reply, Request, RequestContext,
    ResourceWrite, SharedRequest, TransactionOutcome,
};
use forewarn_control::resources::{Body, Operation, OperationResult};
use forewarn_control::shared::{Authorization, TokenHash};
use forewarn_control::{ClockChange, NamedCommand, ScaleSetCommand, outcome};
use forewarn_lifecycle::{Command, MaintenanceId};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::random_requests::requests;
use forewarn_observer::random::{build, layouts, random_operations};

fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap()
}

proptest! {
    /// promise: C3
    #[test]
    fn a_request_is_read_from_json_as_it_was_written(request in requests()) {
        let json = to_json(&request);
        prop_assert_eq!(serde_json::from_str::<Request>(&json).unwrap(), request, "{}", json);
    }

    /// Bytes of a message are lost, doubled or replaced: the message is rejected, or it is another request in its own right.
    /// promise: C3
    #[test]
    fn a_damaged_message_is_rejected_or_a_request(
        request in requests(),
        damages in prop::collection::vec((any::<prop::sample::Index>(), 0..4u8, any::<u8>()), 1..4),
    ) {
        let mut bytes = serde_json::to_vec(&request).unwrap();
        for (place, kind, byte) in damages {
            let place = place.index(bytes.len().max(1));
            match kind {
                0 => bytes.truncate(place),
                1 => bytes.insert(place, byte),
                2 => bytes.drain(place..(place + 1).min(bytes.len())).for_each(drop),
                _ => bytes.get_mut(place).into_iter().for_each(|one| *one = byte),
            }
        }
        if let Ok(other) = serde_json::from_slice::<Request>(&bytes) {
            prop_assert_eq!(serde_json::from_str::<Request>(&to_json(&other)).unwrap(), other);
        }
    }

    #[test]
    fn a_request_has_the_key_of_its_context(request in requests()) {
        let json = serde_json::to_value(&request).unwrap();
        let key = once_in(&json).map(|key| serde_json::from_value(key.clone()).unwrap());
        prop_assert_eq!(request.once().cloned(), key, "{}", json);
    }

    /// promise: C3
    #[test]
    fn a_reply_is_read_from_json_as_it_was_written(layout in layouts(), history in random_operations()) {
        let mut world = build(&layout);
        history.iter().for_each(|happening| world.happen(happening));
        let changes: Vec<_> = world.journal.iter().map(|(_, change)| change.clone()).collect();
        let outcome = outcome(&world.cluster, world.now, &changes, &|_| true);
        let operation = Operation {
            number: 7,
            name: "operation".to_owned(),
            about: "/g/vm".to_owned(),
            cluster: ClusterId(1),
            token: None,
            waits: changes.iter().enumerate().map(|(number, _)| MaintenanceId(number as u64)).collect(),
            began: world.now.wall,
            ended: Some(world.now.wall),
            result: OperationResult::Failed { code: "Conflict".to_owned(), message: "too late".to_owned() },
        };
        let transacted = TransactionOutcome { outcome: outcome.clone(), operation: Some(operation) };
        let replies = [
            Reply::Decided(DecidedChanges { changes, now: world.now }),
            Reply::Outcome(outcome.clone()),
            Reply::Transacted(transacted),
            Reply::Repeated(outcome),
            Reply::Done,
        ];
        for reply in replies {
            prop_assert_eq!(serde_json::from_str::<Reply>(&to_json(&reply)).unwrap(), reply);
        }
    }
}

/// The key of a request, wherever it stands. Values that clients have written are not searched.
fn once_in(json: &Value) -> Option<&Value> {
    match json {
        Value::Object(members) => members.iter().find_map(|(name, value)| match name.as_str() {
            "once" => Some(value).filter(|value| !value.is_null()),
            "asked" => None,
            _ => once_in(value),
        }),
        Value::Array(items) => items.iter().find_map(once_in),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// The variants of an enum, from the message that rejects an unknown one.
pub fn variants<T: DeserializeOwned>(unknown: Value) -> BTreeSet<String> {
    let Err(problem) = serde_json::from_value::<T>(unknown) else { panic!("an unknown variant is read") };
    let problem = problem.to_string();
    let (_, known) = problem.split_once("expected ").unwrap();
    known.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The variant of a value, as JSON names it.
pub fn variant(value: &impl Serialize) -> String {
    match serde_json::to_value(value).unwrap() {
        Value::String(word) => word,
        Value::Object(members) => {
            let tag = members.get("command").or(members.get("clock")).and_then(Value::as_str);
            tag.map_or_else(|| members.keys().next().unwrap().clone(), str::to_owned)
        }
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_)) => {
            panic!("not a variant: {other}")
        }
    }
}

/// The variants that random requests have, by the name of the enum.
#[derive(Default)]
struct Seen(BTreeSet<(&'static str, String)>);

impl Seen {
    fn note(&mut self, name: &'static str, value: &impl Serialize) {
        self.0.insert((name, variant(value)));
    }

    fn request(&mut self, request: &Request) {
        self.note("Request", request);
        match request {
            Request::Cluster(_, request) => {
                self.note("ClusterRequest", request);
                self.cluster(request);
            }
            Request::Shared(request) => {
                self.note("SharedRequest", request);
                match request {
                    SharedRequest::Administer { change, .. } => self.note("Administration", change),
                    SharedRequest::SetClock { order, .. } => self.note("ClockChange", order),
                    SharedRequest::KeepReceipt { .. }
                    | SharedRequest::ConfirmWebhook { .. }
                    | SharedRequest::TakeClaims { .. }
                    | SharedRequest::ReleaseClaims { .. }
                    | SharedRequest::RemoveClosed { .. }
                    | SharedRequest::AdvanceUndelivered { .. }
                    | SharedRequest::EndUndelivered { .. } => {}
                }
            }
        }
    }

    fn cluster(&mut self, request: &ClusterRequest) {
        match request {
            ClusterRequest::Rules(command) => self.note("Command", command),
            ClusterRequest::Commands(batch) => {
                batch.commands.iter().for_each(|command| self.note("NamedCommand", command));
            }
            ClusterRequest::ScaleSet { command, .. } => self.note("ScaleSetCommand", command),
            ClusterRequest::Transaction { transaction, .. } => {
                for write in &transaction.writes {
                    self.note("ResourceWrite", write);
                    if let ResourceWrite::Put { link: Some(link), .. } = write {
                        self.note("LinkTarget", link);
                    }
                }
            }
            ClusterRequest::Report { .. }
            | ClusterRequest::Suspend { .. }
            | ClusterRequest::Remind { .. }
            | ClusterRequest::Sweep
            | ClusterRequest::AdvanceWebhooks(_)
            | ClusterRequest::Close { .. } => {}
        }
    }
}

/// promise: C3
#[test]
fn random_requests_have_every_variant() {
    let (mut seen, mut runner) = (Seen::default(), TestRunner::deterministic());
    let strategy = requests();
    for _ in 0..6_000 {
        seen.request(&strategy.new_tree(&mut runner).unwrap().current());
    }
    let (word, command, clock) = (json!("?"), json!({ "command": "?" }), json!({ "clock": "?" }));
    let all = [
        ("Request", variants::<Request>(word.clone())),
        ("ClusterRequest", variants::<ClusterRequest>(word.clone())),
        ("SharedRequest", variants::<SharedRequest>(word.clone())),
        ("Administration", variants::<Administration>(word.clone())),
        ("ClockChange", variants::<ClockChange>(clock)),
        ("Command", variants::<Command>(word.clone())),
        ("NamedCommand", variants::<NamedCommand>(command.clone())),
        ("ScaleSetCommand", variants::<ScaleSetCommand>(command)),
        ("ResourceWrite", variants::<ResourceWrite>(word.clone())),
        ("LinkTarget", variants::<LinkTarget>(word)),
    ];
    let all: BTreeSet<_> =
        all.into_iter().flat_map(|(name, words)| words.into_iter().map(move |word| (name, word))).collect();
    assert!(all.len() > 100, "{all:?}");
    assert_eq!(all.difference(&seen.0).collect::<Vec<_>>(), Vec::<&(&str, String)>::new());
}

fn read(json: &Value) -> Result<Request, String> {
    serde_json::from_str(&json.to_string()).map_err(|problem| problem.to_string())
}

fn issue_token() -> Value {
    json!({ "Shared": { "Administer": {
        "change": { "IssueToken": {
            "number": 1,
            "name": "ci",
            "role": "Operator",
            "scope": { "clusters": "All", "tenants": { "Only": ["web"] } },
            "hash": "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc",
            "expires": 1_767_225_600_000_i64,
        } },
        "context": {
            "by": "socket", "token": null, "permit": null, "because": null, "once": null, "if_revision": null,
        },
    } } })
}

/// promise: C3
#[test]
fn a_message_that_is_not_exact_is_rejected() {
    assert!(read(&issue_token()).is_ok(), "{:?}", read(&issue_token()));
    let change = "/Shared/Administer/change/IssueToken";
    let context = "/Shared/Administer/context";
    let missing = |place: &str, member: &str| {
        let mut json = issue_token();
        json.pointer_mut(place).unwrap().as_object_mut().unwrap().shift_remove(member).unwrap();
        read(&json).unwrap_err()
    };
    // Without its permit a request would not be checked; without its time a token would never expire.
    for member in ["by", "token", "permit", "because", "once", "if_revision"] {
        let problem = missing(context, member);
        assert!(problem.starts_with(&format!("missing field `{member}`")), "{problem}");
    }
    for member in ["number", "name", "role", "scope", "hash", "expires"] {
        let problem = missing(change, member);
        assert!(problem.starts_with(&format!("missing field `{member}`")), "{problem}");
    }
    let with = |place: &str, value: Value| {
        let mut json = issue_token();
        *json.pointer_mut(place).unwrap() = value;
        read(&json).unwrap_err()
    };
    for (member, wrong, problem) in [
        ("name", json!("a b"), "a name has only letters, digits"),
        ("name", json!("web:2"), "a name has only letters, digits"),
        ("scope/tenants/Only/0", json!(".."), "a name must not be '.' or '..'"),
        ("hash", json!("Bwc"), "a wrong number of bytes"),
        ("hash", json!("Bwc="), "not base64url"),
        ("expires", json!(-1), "a time is in the years 1970 to 9999"),
        ("expires", json!(i64::MAX), "a time is in the years 1970 to 9999"),
        ("role", json!("Owner"), "unknown variant `Owner`"),
    ] {
        let found = with(&format!("{change}/{member}"), wrong);
        assert!(found.starts_with(problem), "{member}: {found}");
    }
    for place in [change, context] {
        let mut json = issue_token();
        json.pointer_mut(place).unwrap()["more"] = json!(1);
        let problem = read(&json).unwrap_err();
        assert!(problem.starts_with("unknown field `more`"), "{problem}");
    }
}

/// promise: C3
#[test]
fn nothing_and_null_differ_in_a_request() {
    let context = |asked| RequestContext { asked, ..RequestContext::default() };
    for asked in [None, Some(Value::Null), Some(json!({ "command": "restart" }))] {
        let request = Request::Shared(SharedRequest::KeepReceipt { context: context(asked) });
        assert_eq!(serde_json::from_str::<Request>(&to_json(&request)).unwrap(), request);
    }
}

/// promise: C3
#[test]
fn secrets_are_in_messages_and_not_in_logs() {
    let authorization = Authorization::new("Bearer s3cret").unwrap();
    let body = Body(b"s3cret"[..].into());
    assert_eq!(to_json(&authorization), r#""Bearer s3cret""#);
    assert_eq!(to_json(&body), r#""czNjcmV0""#);
    assert_eq!(to_json(&TokenHash([7; 32])), r#""BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc""#);
    let shown = format!("{authorization:?} {body:?} {:?}", TokenHash([7; 32]));
    assert_eq!(shown, "Authorization(secret) Body(6 bytes) TokenHash(secret)");
    assert!(serde_json::from_str::<Authorization>(r#""a\r\nb""#).is_err());
}
