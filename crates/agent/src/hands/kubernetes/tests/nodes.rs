//! The node itself: condition, cordon, turns, and an API server in every mood.

use std::time::Duration;

use forewarn_agent_core::{Phase, Status};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::Place;
use super::stand_in::VIEWER;
use crate::hands::kubernetes::node::take_turn;
use crate::hands::samples::{go_on, job};
use crate::hands::{Setting, Work};

const CORDON: &str = "drain = false\ncondition = false";
const CORDONED_BY: &str = "forewarn.dev/cordoned-by";
const EVENT: &str = "28512AF7-C957-4500-9BC4-842D6FB531E4";

/// Whether it takes no pods, who has cordoned it, and whether it has its turn.
fn state(node: &Value) -> (bool, Option<String>, bool) {
    let unschedulable = node["spec"].get("unschedulable").is_some_and(|value| *value == json!(true));
    let by = node["metadata"]["annotations"].get(CORDONED_BY).and_then(Value::as_str).map(str::to_owned);
    (unschedulable, by, node["metadata"]["labels"].get("forewarn.dev/turn").is_some())
}

#[tokio::test(flavor = "current_thread")]
async fn a_node_is_cordoned_and_what_was_done_is_undone() {
    let place = Place::new().await;
    let before = place.api.cluster().node("web-0").clone();
    let work = place.work(CORDON);
    assert!(work.undoes());
    for _ in 0..2 {
        assert_eq!(place.perform(&work).await.result, Ok(()), "also again");
        assert_eq!(state(place.api.cluster().node("web-0")), (true, Some(EVENT.to_owned()), false));
    }
    for _ in 0..2 {
        assert_eq!(place.undo(&work).await, Ok(()), "also again");
        let mut after = place.api.cluster().node("web-0").clone();
        after["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"].clone();
        assert_eq!(after, before);
    }
}

#[tokio::test(flavor = "current_thread")]
async fn what_somebody_else_has_cordoned_stays_cordoned() {
    let place = Place::new().await;
    let work = place.work(CORDON);
    place.api.cluster().edit_node("web-0", |node| node["spec"]["unschedulable"] = json!(true));
    assert_eq!(place.perform(&work).await.result, Ok(()));
    assert_eq!(state(place.api.cluster().node("web-0")), (true, None, false));
    assert_eq!(place.undo(&work).await, Ok(()));
    assert_eq!(state(place.api.cluster().node("web-0")), (true, None, false));
}

#[tokio::test(flavor = "current_thread")]
async fn what_somebody_else_does_meanwhile_is_seen() {
    let place = Place::new().await;
    let work = place.work(CORDON);
    // Somebody cordons it between our look and our word: it is theirs.
    place.api.cluster().meddle(|node| node["spec"]["unschedulable"] = json!(true));
    assert_eq!(place.perform(&work).await.result, Ok(()));
    assert_eq!(state(place.api.cluster().node("web-0")), (true, None, false));
    // Somebody changes something else: we try again.
    place.api.cluster().edit_node("web-0", |node| node["spec"]["unschedulable"] = json!(false));
    place.api.cluster().meddle(|node| node["metadata"]["labels"]["a"] = json!("b"));
    place.api.cluster().meddle(|node| node["metadata"]["labels"]["a"] = json!("c"));
    assert_eq!(place.perform(&work).await.result, Ok(()));
    place.api.cluster().meddle(|node| node["metadata"]["labels"]["a"] = json!("d"));
    assert_eq!(place.undo(&work).await, Ok(()));
    let cluster = place.api.cluster();
    assert_eq!(state(cluster.node("web-0")), (false, None, false));
    assert_eq!(cluster.node("web-0")["metadata"]["labels"]["a"], "d", "and nothing of theirs is lost");
}

#[tokio::test(flavor = "current_thread")]
async fn the_event_is_told_in_the_condition_of_the_node() {
    let place = Place::new().await;
    let work = place.work("cordon = false\ndrain = false");
    let conditions = || place.api.cluster().node("web-0")["status"]["conditions"].as_array().unwrap().clone();
    assert_eq!(place.undo(&work).await, Ok(()));
    assert_eq!(conditions().len(), 1, "where nothing was told, nothing is taken back");
    assert_eq!(place.perform(&work).await.result, Ok(()));
    let told = conditions();
    assert_eq!(told[0]["type"], "Ready", "that of others stays");
    assert_eq!(
        (&told[1]["type"], &told[1]["status"], &told[1]["reason"]),
        (&json!("ScheduledEvent"), &json!("True"), &json!("RebootScheduled"))
    );
    let message = format!(
        "Reboot, not before Wed, 24 Jan 2018 21:20:44 GMT, event {EVENT}: Host server is undergoing maintenance."
    );
    assert_eq!(told[1]["message"], json!(message));
    let since = told[1]["lastTransitionTime"].clone();
    assert!(since.as_str().unwrap().ends_with('Z'));
    // It goes on: the same condition says so, and has been true since then.
    let mut started = job("drain", Phase::Started);
    started.run.seen.status = Status::Started;
    started.run.seen.kind = "$ Re boot".to_owned();
    assert_eq!(work.perform(&started, &place.hands, go_on()).await.result, Ok(()));
    let told = conditions();
    assert_eq!(
        (told.len(), &told[1]["reason"], &told[1]["lastTransitionTime"]),
        (2, &json!("RebootStarted"), &since)
    );
    // A hook of a phase in which all is over takes it back, as undoing does.
    let completed = job("drain", Phase::Completed);
    assert_eq!(work.perform(&completed, &place.hands, go_on()).await.result, Ok(()));
    assert_eq!(conditions()[1]["status"], "False");
    assert_eq!(place.undo(&work).await, Ok(()));
    assert_eq!(conditions().len(), 2);
}

#[tokio::test(flavor = "current_thread")]
async fn no_more_nodes_than_allowed_are_cordoned_at_once() {
    let place = Place::new().await;
    place.api.cluster().add_node("web-1");
    let settings = "drain = false\ncondition = false\nat_once = 1\nreserve = '0s'";
    let (first, second) = (place.work(settings), place.work_on("web-1", settings));
    assert_eq!(place.perform(&first).await.result, Ok(()));
    assert_eq!(state(place.api.cluster().node("web-0")), (true, Some(EVENT.to_owned()), true));
    let (tell, stop) = watch::channel(false);
    let waiting = async {
        place.asked("GET /api/v1/nodes?labelSelector=forewarn.dev%2Fturn", 5).await;
        assert_eq!(state(place.api.cluster().node("web-1")), (false, None, false));
        tell.send(true).unwrap();
    };
    let (ending, ()) = tokio::join!(place.perform_until(&second, stop), waiting);
    let why = "it was told to stop: it is not this node's turn: no more than 1 may be drained at once";
    assert_eq!(ending.result, Err(why.to_owned()));
    assert_eq!(place.perform(&first).await.result, Ok(()), "who has had its turn has it still");
    let waiting = async {
        let lists = place.api.cluster().requests().len();
        place.asked("GET", lists + 10).await;
        assert_eq!(place.undo(&first).await, Ok(()));
    };
    let (ending, ()) = tokio::join!(place.perform(&second), waiting);
    assert_eq!(ending.result, Ok(()));
    assert_eq!(state(place.api.cluster().node("web-0")), (false, None, false));
    assert_eq!(state(place.api.cluster().node("web-1")), (true, Some(EVENT.to_owned()), true));
}

#[tokio::test(flavor = "current_thread")]
async fn those_who_come_at_the_same_moment_are_never_too_many() {
    let place = Place::new().await;
    for number in 1..6 {
        place.api.cluster().add_node(&format!("web-{number}"));
    }
    let settings = "drain = false\ncondition = false\nat_once = 2\nreserve = '0s'";
    let go = async |number: u32| {
        let work = place.work_on(&format!("web-{number}"), settings);
        let ending = place.perform(&work).await;
        let cordoned = {
            let cluster = place.api.cluster();
            (0..6).filter(|number| state(cluster.node(&format!("web-{number}"))).0).count()
        };
        assert!(cordoned <= 2, "{cordoned}");
        tokio::task::yield_now().await;
        place.undo(&work).await.unwrap();
        ending.result
    };
    let all = tokio::join!(go(0), go(1), go(2), go(3), go(4), go(5));
    assert_eq!(all, (Ok(()), Ok(()), Ok(()), Ok(()), Ok(()), Ok(())));
}

#[tokio::test(flavor = "current_thread")]
async fn with_little_time_left_no_turn_is_waited_for() {
    let place = Place::new().await;
    place.api.cluster().add_node("web-1");
    let settings = "drain = false\ncondition = false\nat_once = 1\nreserve = '2m'";
    assert_eq!(place.perform(&place.work(settings)).await.result, Ok(()));
    let Work::Kubernetes(work) = place.work_on("web-1", settings) else { unreachable!() };
    let (minutes, job) = (Duration::from_mins, job("drain", Phase::Scheduled));
    assert_eq!(
        (work.reserve_of(minutes(10)), work.reserve_of(minutes(1))),
        (minutes(2), Duration::from_secs(30))
    );
    let setting = Setting { job: &job, hands: &place.hands, earlier: None };
    let mut waits = String::new();
    let mut api = work.api(&setting, &mut waits, |_| None).unwrap();
    take_turn(&mut api, "web-1", 1, || true).await.unwrap();
    assert_eq!(
        state(place.api.cluster().node("web-1")),
        (false, None, true),
        "and others see that it is drained"
    );
}

#[tokio::test(flavor = "current_thread")]
async fn a_node_that_is_not_there_is_a_reason_and_nothing_to_undo() {
    let place = Place::new().await;
    let work = place.work_on("web-9", "at_once = 1");
    let problem = place.perform(&work).await.result.unwrap_err();
    assert_eq!(
        problem,
        "there is no node web-9\n  hint: name the node: set `node`, or the variable NODE_NAME"
    );
    assert_eq!(place.undo(&work).await, Ok(()));
    let work = place.work(CORDON);
    place.perform(&work).await.result.unwrap();
    place.api.cluster().remove_node("web-0");
    assert_eq!(place.undo(&work).await, Ok(()));
}

#[tokio::test(flavor = "current_thread")]
async fn a_token_is_read_anew_and_one_that_is_refused_is_a_reason() {
    let place = Place::new().await;
    let work = place.work(CORDON);
    let token = place.api.token_file();
    std::fs::write(&token, "old-token").unwrap();
    let problem = place.perform(&work).await.result.unwrap_err();
    assert!(problem.starts_with("the API server answers 401: Unauthorized\n  hint: "), "{problem}");
    // It is renewed while it is refused.
    let before = place.api.cluster().requests().len();
    let renewing = async {
        place.asked("GET", before + 1).await;
        std::fs::write(&token, super::stand_in::TOKEN).unwrap();
    };
    let (ending, ()) = tokio::join!(place.perform(&work), renewing);
    assert_eq!(ending.result, Ok(()));
    std::fs::write(&token, VIEWER).unwrap();
    let problem = place.undo(&work).await.unwrap_err();
    assert!(problem.starts_with("the API server answers 403: nodes is forbidden"), "{problem}");
    assert!(problem.contains("hint: the role of the service account"), "{problem}");
    std::fs::remove_file(&token).unwrap();
    let problem = place.perform(&work).await.result.unwrap_err();
    assert!(problem.contains("hint: is there a service account?"), "{problem}");
    let tokens: Vec<_> = place.api.cluster().asked.iter().filter_map(|asked| asked.token.clone()).collect();
    assert!(problem_free(&problem, &tokens));
}

/// Whether no token is told.
fn problem_free(problem: &str, tokens: &[String]) -> bool {
    !tokens.iter().any(|token| problem.contains(token.as_str()))
}

#[tokio::test(flavor = "current_thread")]
async fn an_api_server_that_stumbles_is_asked_again() {
    let place = Place::new().await;
    let work = place.work("drain = false");
    for status in [500, 503, 429] {
        place.api.cluster().fail("GET /api/v1/nodes/", status);
        place.api.cluster().fail("PATCH /api/v1/nodes/", status);
    }
    assert_eq!(place.perform(&work).await.result, Ok(()));
    assert!(state(place.api.cluster().node("web-0")).0);
    for _ in 0..1_000 {
        place.api.cluster().fail("PATCH", 503);
    }
    let mut late = job("drain", Phase::Undo);
    late.limit = Duration::from_secs(1);
    let problem = work.undo(&late, &place.hands, go_on()).await.result.unwrap_err();
    assert_eq!(
        problem,
        "it has not ended within 1s: the API server answers 503: the stand-in was told to fail"
    );
    place.api.cluster().fail("GET", 418);
    assert!(place.undo(&work).await.unwrap_err().contains("418"), "what does not pass is not tried again");
}

#[tokio::test(flavor = "current_thread")]
async fn somebody_whom_no_authority_vouches_for_gets_no_token() {
    let (place, other) = (Place::new().await, Place::new().await);
    std::fs::copy(other.api.ca_file(), place.api.ca_file()).unwrap();
    let mut late = job("drain", Phase::Scheduled);
    late.limit = Duration::from_secs(1);
    let problem = place.work(CORDON).perform(&late, &place.hands, go_on()).await.result.unwrap_err();
    assert!(problem.contains("the API server cannot be reached: "), "{problem}");
    assert!(place.api.cluster().requests().is_empty());
}
