//! The node: condition, cordon, drain slots, and a failing API server.

use std::time::Duration;

use forewarn_agent_core::{Phase, Status};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::KubernetesFixture;
use super::stand_in::VIEWER;
use crate::hooks::fixtures::{job, never_stop};
use crate::hooks::kubernetes::node::take_slot;
use crate::hooks::{HookCall, Work};

const CORDON: &str = "drain = false\ncondition = false";
const CORDONED_BY: &str = "forewarn.dev/cordoned-by";
const EVENT: &str = "28512AF7-C957-4500-9BC4-842D6FB531E4";

/// The cordon of a node, its annotation, and its drain slot.
fn state(node: &Value) -> (bool, Option<String>, bool) {
    let unschedulable = node["spec"].get("unschedulable").is_some_and(|value| *value == json!(true));
    let by = node["metadata"]["annotations"].get(CORDONED_BY).and_then(Value::as_str).map(str::to_owned);
    (unschedulable, by, node["metadata"]["labels"].get("forewarn.dev/turn").is_some())
}

#[tokio::test(flavor = "current_thread")]
async fn a_node_is_cordoned_and_what_was_done_is_undone() {
    let fixture = KubernetesFixture::new().await;
    let before = fixture.api.cluster().node("web-0").clone();
    let work = fixture.work(CORDON);
    assert!(work.undoes());
    for _ in 0..2 {
        assert_eq!(fixture.perform(&work).await.result, Ok(()), "also again");
        assert_eq!(state(fixture.api.cluster().node("web-0")), (true, Some(EVENT.to_owned()), false));
    }
    for _ in 0..2 {
        assert_eq!(fixture.undo(&work).await, Ok(()), "also again");
        let mut after = fixture.api.cluster().node("web-0").clone();
        after["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"].clone();
        assert_eq!(after, before);
    }
}

/// promise: A2
#[tokio::test(flavor = "current_thread")]
async fn a_foreign_cordon_is_kept() {
    let fixture = KubernetesFixture::new().await;
    let work = fixture.work(CORDON);
    fixture.api.cluster().edit_node("web-0", |node| node["spec"]["unschedulable"] = json!(true));
    assert_eq!(fixture.perform(&work).await.result, Ok(()));
    assert_eq!(state(fixture.api.cluster().node("web-0")), (true, None, false));
    assert_eq!(fixture.undo(&work).await, Ok(()));
    assert_eq!(state(fixture.api.cluster().node("web-0")), (true, None, false));
}

#[tokio::test(flavor = "current_thread")]
async fn concurrent_changes_are_detected() {
    let fixture = KubernetesFixture::new().await;
    let work = fixture.work(CORDON);
    // Another client cordons the node between our read and our patch: the cordon is theirs.
    fixture.api.cluster().edit_before_next_patch(|node| node["spec"]["unschedulable"] = json!(true));
    assert_eq!(fixture.perform(&work).await.result, Ok(()));
    assert_eq!(state(fixture.api.cluster().node("web-0")), (true, None, false));
    // Another client changes something else: the patch is retried.
    fixture.api.cluster().edit_node("web-0", |node| node["spec"]["unschedulable"] = json!(false));
    fixture.api.cluster().edit_before_next_patch(|node| node["metadata"]["labels"]["a"] = json!("b"));
    fixture.api.cluster().edit_before_next_patch(|node| node["metadata"]["labels"]["a"] = json!("c"));
    assert_eq!(fixture.perform(&work).await.result, Ok(()));
    fixture.api.cluster().edit_before_next_patch(|node| node["metadata"]["labels"]["a"] = json!("d"));
    assert_eq!(fixture.undo(&work).await, Ok(()));
    let cluster = fixture.api.cluster();
    assert_eq!(state(cluster.node("web-0")), (false, None, false));
    assert_eq!(cluster.node("web-0")["metadata"]["labels"]["a"], "d", "and nothing of theirs is lost");
}

/// promise: A7
#[tokio::test(flavor = "current_thread")]
async fn the_node_condition_describes_the_event() {
    let fixture = KubernetesFixture::new().await;
    let work = fixture.work("cordon = false\ndrain = false");
    let conditions =
        || fixture.api.cluster().node("web-0")["status"]["conditions"].as_array().unwrap().clone();
    assert_eq!(fixture.undo(&work).await, Ok(()));
    assert_eq!(conditions().len(), 1, "without a condition there is nothing to clear");
    assert_eq!(fixture.perform(&work).await.result, Ok(()));
    let expected = conditions();
    assert_eq!(expected[0]["type"], "Ready", "that of others stays");
    assert_eq!(
        (&expected[1]["type"], &expected[1]["status"], &expected[1]["reason"]),
        (&json!("ScheduledEvent"), &json!("True"), &json!("RebootScheduled"))
    );
    let message = format!(
        "Reboot, not before Wed, 24 Jan 2018 21:20:44 GMT, event {EVENT}: Host server is undergoing maintenance."
    );
    assert_eq!(expected[1]["message"], json!(message));
    let since = expected[1]["lastTransitionTime"].clone();
    assert!(since.as_str().unwrap().ends_with('Z'));
    // It goes on: the same condition says so, and has been true since then.
    let mut started = job("drain", Phase::Started);
    started.run.observed.status = Status::Started;
    started.run.observed.kind = "$ Re boot".to_owned();
    assert_eq!(work.perform(&started, &fixture.runtime, never_stop()).await.result, Ok(()));
    let expected = conditions();
    assert_eq!(
        (expected.len(), &expected[1]["reason"], &expected[1]["lastTransitionTime"]),
        (2, &json!("RebootStarted"), &since)
    );
    // A hook of a phase in which all is over takes it back, as undoing does.
    let completed = job("drain", Phase::Completed);
    assert_eq!(work.perform(&completed, &fixture.runtime, never_stop()).await.result, Ok(()));
    assert_eq!(conditions()[1]["status"], "False");
    assert_eq!(fixture.undo(&work).await, Ok(()));
    assert_eq!(conditions().len(), 2);
}

/// promise: A5
#[tokio::test(flavor = "current_thread")]
async fn no_more_nodes_than_allowed_are_cordoned_at_once() {
    let fixture = KubernetesFixture::new().await;
    fixture.api.cluster().add_node("web-1");
    let settings = "drain = false\ncondition = false\nat_once = 1\nreserve = '0s'";
    let (first, second) = (fixture.work(settings), fixture.work_on("web-1", settings));
    assert_eq!(fixture.perform(&first).await.result, Ok(()));
    assert_eq!(state(fixture.api.cluster().node("web-0")), (true, Some(EVENT.to_owned()), true));
    let (sender, stop) = watch::channel(false);
    let waiting = async {
        fixture.wait_for_requests("GET /api/v1/nodes?labelSelector=forewarn.dev%2Fturn", 5).await;
        assert_eq!(state(fixture.api.cluster().node("web-1")), (false, None, false));
        sender.send(true).unwrap();
    };
    let (hook_outcome, ()) = tokio::join!(fixture.perform_until(&second, stop), waiting);
    let reason = "stopped on request: waiting for a drain slot: at most 1 nodes may be drained at once";
    assert_eq!(hook_outcome.result, Err(reason.to_owned()));
    assert_eq!(fixture.perform(&first).await.result, Ok(()), "a node keeps its drain slot");
    let waiting = async {
        let lists = fixture.api.cluster().requests().len();
        fixture.wait_for_requests("GET", lists + 10).await;
        assert_eq!(fixture.undo(&first).await, Ok(()));
    };
    let (hook_outcome, ()) = tokio::join!(fixture.perform(&second), waiting);
    assert_eq!(hook_outcome.result, Ok(()));
    assert_eq!(state(fixture.api.cluster().node("web-0")), (false, None, false));
    assert_eq!(state(fixture.api.cluster().node("web-1")), (true, Some(EVENT.to_owned()), true));
}

#[tokio::test(flavor = "current_thread")]
async fn those_who_come_at_the_same_moment_are_never_too_many() {
    let fixture = KubernetesFixture::new().await;
    for number in 1..6 {
        fixture.api.cluster().add_node(&format!("web-{number}"));
    }
    let settings = "drain = false\ncondition = false\nat_once = 2\nreserve = '0s'";
    let go = async |number: u32| {
        let work = fixture.work_on(&format!("web-{number}"), settings);
        let hook_outcome = fixture.perform(&work).await;
        let cordoned = {
            let cluster = fixture.api.cluster();
            (0..6).filter(|number| state(cluster.node(&format!("web-{number}"))).0).count()
        };
        assert!(cordoned <= 2, "{cordoned}");
        tokio::task::yield_now().await;
        fixture.undo(&work).await.unwrap();
        hook_outcome.result
    };
    let all = tokio::join!(go(0), go(1), go(2), go(3), go(4), go(5));
    assert_eq!(all, (Ok(()), Ok(()), Ok(()), Ok(()), Ok(()), Ok(())));
}

#[tokio::test(flavor = "current_thread")]
async fn with_little_time_left_no_turn_is_waited_for() {
    let fixture = KubernetesFixture::new().await;
    fixture.api.cluster().add_node("web-1");
    let settings = "drain = false\ncondition = false\nat_once = 1\nreserve = '2m'";
    assert_eq!(fixture.perform(&fixture.work(settings)).await.result, Ok(()));
    let Work::Kubernetes(work) = fixture.work_on("web-1", settings) else { unreachable!() };
    let (minutes, job) = (Duration::from_mins, job("drain", Phase::Scheduled));
    assert_eq!(
        (work.reserve_of(minutes(10)), work.reserve_of(minutes(1))),
        (minutes(2), Duration::from_secs(30))
    );
    let call = HookCall { job: &job, runtime: &fixture.runtime, earlier: None };
    let mut pending_condition = String::new();
    let mut api = work.api(&call, &mut pending_condition, |_| None).unwrap();
    take_slot(&mut api, "web-1", 1, || true).await.unwrap();
    assert_eq!(
        state(fixture.api.cluster().node("web-1")),
        (false, None, true),
        "and others see that it is drained"
    );
}

#[tokio::test(flavor = "current_thread")]
async fn a_node_that_is_not_there_is_a_reason_and_nothing_to_undo() {
    let fixture = KubernetesFixture::new().await;
    let work = fixture.work_on("web-9", "at_once = 1");
    let error = fixture.perform(&work).await.result.unwrap_err();
    assert_eq!(error, "node web-9 not found\n  hint: set `node`, or the variable NODE_NAME");
    assert_eq!(fixture.undo(&work).await, Ok(()));
    let work = fixture.work(CORDON);
    fixture.perform(&work).await.result.unwrap();
    fixture.api.cluster().remove_node("web-0");
    assert_eq!(fixture.undo(&work).await, Ok(()));
}

#[tokio::test(flavor = "current_thread")]
async fn a_token_is_read_anew_and_one_that_is_refused_is_a_reason() {
    let fixture = KubernetesFixture::new().await;
    let work = fixture.work(CORDON);
    let token = fixture.api.token_file();
    std::fs::write(&token, "old-token").unwrap();
    let error = fixture.perform(&work).await.result.unwrap_err();
    assert!(error.starts_with("the API server returned 401: Unauthorized\n  hint: "), "{error}");
    // It is renewed while it is refused.
    let before = fixture.api.cluster().requests().len();
    let renewing = async {
        fixture.wait_for_requests("GET", before + 1).await;
        std::fs::write(&token, super::stand_in::TOKEN).unwrap();
    };
    let (hook_outcome, ()) = tokio::join!(fixture.perform(&work), renewing);
    assert_eq!(hook_outcome.result, Ok(()));
    std::fs::write(&token, VIEWER).unwrap();
    let error = fixture.undo(&work).await.unwrap_err();
    assert!(error.starts_with("the API server returned 403: nodes is forbidden"), "{error}");
    assert!(error.contains("hint: the role of the service account"), "{error}");
    std::fs::remove_file(&token).unwrap();
    let error = fixture.perform(&work).await.result.unwrap_err();
    assert!(error.contains("hint: check the service account"), "{error}");
    let tokens: Vec<_> =
        fixture.api.cluster().recorded.iter().filter_map(|requests| requests.token.clone()).collect();
    assert!(problem_free(&error, &tokens));
}

/// Checks that no token appears in an error.
fn problem_free(error: &str, tokens: &[String]) -> bool {
    !tokens.iter().any(|token| error.contains(token.as_str()))
}

#[tokio::test(flavor = "current_thread")]
async fn an_api_server_that_stumbles_is_asked_again() {
    let fixture = KubernetesFixture::new().await;
    let work = fixture.work("drain = false");
    for status in [500, 503, 429] {
        fixture.api.cluster().fail("GET /api/v1/nodes/", status);
        fixture.api.cluster().fail("PATCH /api/v1/nodes/", status);
    }
    assert_eq!(fixture.perform(&work).await.result, Ok(()));
    assert!(state(fixture.api.cluster().node("web-0")).0);
    for _ in 0..1_000 {
        fixture.api.cluster().fail("PATCH", 503);
    }
    let mut late = job("drain", Phase::Undo);
    late.limit = Duration::from_secs(1);
    let error = work.undo(&late, &fixture.runtime, never_stop()).await.result.unwrap_err();
    assert_eq!(error, "timed out after 1s: the API server returned 503: the stand-in is configured to fail");
    fixture.api.cluster().fail("GET", 418);
    assert!(fixture.undo(&work).await.unwrap_err().contains("418"), "what does not pass is not tried again");
}

#[tokio::test(flavor = "current_thread")]
async fn an_untrusted_server_gets_no_token() {
    let (fixture, other) = (KubernetesFixture::new().await, KubernetesFixture::new().await);
    std::fs::copy(other.api.ca_file(), fixture.api.ca_file()).unwrap();
    let mut late = job("drain", Phase::Scheduled);
    late.limit = Duration::from_secs(1);
    let error = fixture.work(CORDON).perform(&late, &fixture.runtime, never_stop()).await.result.unwrap_err();
    assert!(error.contains("the API server cannot be reached: "), "{error}");
    assert!(fixture.api.cluster().requests().is_empty());
}
