//! Evictions.

use std::time::Duration;

use forewarn_agent_core::Phase;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::Place;
use super::stand_in::Budget;
use crate::hands::samples::{go_on, job};

const RS: Option<&str> = Some("ReplicaSet");

fn budget(app: &str, allowed: u32, recovers: bool) -> Budget {
    Budget { namespace: "shop".to_owned(), app: app.to_owned(), allowed, recovers }
}

/// The evictions that were asked for.
fn evictions(place: &Place) -> Vec<(String, Value)> {
    let cluster = place.api.cluster();
    let posts = cluster.asked.iter().filter(|asked| asked.method == "POST");
    posts
        .map(|asked| (asked.target.split('/').rev().nth(1).unwrap().to_owned(), asked.body.clone()))
        .collect()
}

#[tokio::test(flavor = "current_thread")]
async fn pods_that_have_to_go_are_evicted_and_waited_for() {
    let place = Place::new().await;
    {
        let mut cluster = place.api.cluster();
        cluster.add_node("web-1");
        cluster.add_pod("web-0", "shop/front-1", RS, 3);
        cluster.add_pod("web-0", "shop/db-0", Some("StatefulSet"), 0);
        cluster.add_pod("web-0", "kube-system/proxy-1", Some("DaemonSet"), 0);
        cluster.add_pod("web-0", "kube-system/static-web-0", Some("Node"), 0);
        cluster.edit_pod("kube-system/static-web-0", |pod| {
            pod["metadata"]["annotations"] = json!({ "kubernetes.io/config.mirror": "hash" });
        });
        cluster.add_pod("web-0", "shop/job-1", Some("Job"), 0);
        cluster.edit_pod("shop/job-1", |pod| pod["status"]["phase"] = json!("Succeeded"));
        cluster.add_pod("web-0", "shop/bare", None, 0);
        cluster.add_pod("web-1", "shop/front-2", RS, 0);
    }
    let work = place.work("");
    assert_eq!(place.perform(&work).await.result, Ok(()));
    let left = ["kube-system/proxy-1", "kube-system/static-web-0", "shop/bare", "shop/front-2", "shop/job-1"];
    assert_eq!(place.api.cluster().pods(), left);
    let told = evictions(&place);
    let names: Vec<_> = told.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["db-0", "front-1"], "each is asked once");
    assert!(
        told[1].1["deleteOptions"]["preconditions"]["uid"].as_str().unwrap().starts_with("uid-of-front-1")
    );
    assert_eq!(place.perform(&place.work("bare_pods = true")).await.result, Ok(()));
    assert!(!place.api.cluster().pods().contains(&"shop/bare".to_owned()));
    assert_eq!(place.undo(&work).await, Ok(()));
    assert!(place.api.cluster().node("web-0")["spec"].get("unschedulable").is_none());
}

#[tokio::test(flavor = "current_thread")]
async fn many_pods_come_in_pages_and_a_page_that_is_too_old_begins_anew() {
    let place = Place::new().await;
    for number in 0..250 {
        place.api.cluster().add_pod("web-0", &format!("shop/front-{number}"), RS, 0);
    }
    let second = "GET /api/v1/pods?fieldSelector=spec.nodeName%3Dweb-0&limit=100&continue=skip%3A100";
    place.api.cluster().fail(second, 410);
    place.api.cluster().fail(second, 500);
    assert_eq!(place.perform(&place.work("")).await.result, Ok(()));
    assert_eq!(place.api.cluster().pods(), [""; 0]);
}

#[tokio::test(flavor = "current_thread")]
async fn a_budget_is_waited_for() {
    let place = Place::new().await;
    for number in 0..3 {
        place.api.cluster().add_pod("web-0", &format!("shop/front-{number}"), RS, 1);
    }
    place.api.cluster().add_budget(budget("front", 1, true));
    assert_eq!(place.perform(&place.work("")).await.result, Ok(()));
    assert_eq!(place.api.cluster().pods(), [""; 0]);
    assert!(evictions(&place).len() > 3, "some were refused, and asked again");
}

#[tokio::test(flavor = "current_thread")]
async fn a_budget_that_never_gives_is_told_when_the_time_is_up() {
    let place = Place::new().await;
    for number in 0..7 {
        place.api.cluster().add_pod("web-0", &format!("shop/front-{number}"), RS, 0);
    }
    place.api.cluster().add_budget(budget("front", 0, false));
    let (tell, stop) = watch::channel(false);
    let work = place.work("");
    let telling = async {
        place.asked("POST", 14).await;
        tell.send(true).unwrap();
    };
    let (ending, ()) = tokio::join!(place.perform_until(&work, stop), telling);
    let problem = ending.result.unwrap_err();
    let told = "it was told to stop: 7 pods are left: shop/front-0: a budget does not let it go yet, ";
    assert!(problem.starts_with(told) && problem.ends_with(", and 2 more"), "{problem}");
    assert_eq!(place.undo(&work).await, Ok(()), "and the node is put back all the same");
    // Two budgets for one pod are a mistake that only people can put right; until then it is waited for.
    place.api.cluster().add_budget(budget("front", 9, false));
    let (tell, stop) = watch::channel(false);
    let telling = async {
        place.asked("POST", 40).await;
        tell.send(true).unwrap();
    };
    let (ending, ()) = tokio::join!(place.perform_until(&work, stop), telling);
    assert!(ending.result.unwrap_err().contains("more than one PodDisruptionBudget"));
}

#[tokio::test(flavor = "current_thread")]
async fn an_agent_that_is_started_again_goes_on() {
    let place = Place::new().await;
    for number in 0..4 {
        place.api.cluster().add_pod("web-0", &format!("shop/front-{number}"), RS, 0);
    }
    place.api.cluster().add_budget(budget("front", 2, false));
    let work = place.work("at_once = 1");
    let (tell, stop) = watch::channel(false);
    let dying = async {
        place.asked("POST", 6).await;
        tell.send(true).unwrap();
    };
    let (ending, ()) = tokio::join!(place.perform_until(&work, stop), dying);
    assert!(ending.result.is_err());
    let cordoned = place.api.cluster().node("web-0").clone();
    place.api.cluster().allow("front", 2);
    assert_eq!(place.perform(&work).await.result, Ok(()));
    assert_eq!(place.api.cluster().pods(), [""; 0]);
    let after = place.api.cluster().node("web-0").clone();
    assert_eq!(
        after["metadata"]["annotations"], cordoned["metadata"]["annotations"],
        "nothing was done twice"
    );
    assert_eq!(place.undo(&work).await, Ok(()));
}

#[tokio::test(flavor = "current_thread")]
async fn a_pod_gets_no_more_time_than_there_is() {
    let place = Place::new().await;
    place.api.cluster().add_pod("web-0", "shop/slow", RS, 0);
    place
        .api
        .cluster()
        .edit_pod("shop/slow", |pod| pod["spec"]["terminationGracePeriodSeconds"] = json!(3_600));
    place.api.cluster().add_pod("web-0", "shop/quick", RS, 0);
    place.api.cluster().edit_pod("shop/quick", |pod| pod["spec"]["terminationGracePeriodSeconds"] = json!(5));
    let mut long = job("drain", Phase::Scheduled);
    long.limit = Duration::from_secs(3_000);
    let seconds = |all: &[(String, Value)], name: &str| {
        let (_, body) = all.iter().find(|(pod, _)| pod == name).unwrap().clone();
        body["deleteOptions"].get("gracePeriodSeconds").and_then(Value::as_u64)
    };
    assert_eq!(place.work("").perform(&long, &place.hands, go_on()).await.result, Ok(()));
    let told = evictions(&place);
    assert!(seconds(&told, "slow").is_some_and(|grace| (2_900..3_000).contains(&grace)), "{told:?}");
    assert_eq!(seconds(&told, "quick"), None, "it wants less than it may have");
    place.api.cluster().asked.clear();
    place.api.cluster().add_pod("web-0", "shop/slow", RS, 0);
    assert_eq!(place.work("grace = '10s'").perform(&long, &place.hands, go_on()).await.result, Ok(()));
    assert_eq!(seconds(&evictions(&place), "slow"), Some(10));
}

#[tokio::test(flavor = "current_thread")]
async fn a_pod_that_goes_by_itself_or_is_replaced_meanwhile_is_no_problem() {
    let place = Place::new().await;
    for name in ["shop/a", "shop/b", "shop/c"] {
        place.api.cluster().add_pod("web-0", name, RS, 0);
    }
    place.api.cluster().fail("POST /api/v1/namespaces/shop/pods/a/", 404);
    place.api.cluster().fail("POST /api/v1/namespaces/shop/pods/b/", 409);
    place.api.cluster().fail("POST /api/v1/namespaces/shop/pods/c/", 503);
    assert_eq!(place.perform(&place.work("")).await.result, Ok(()));
    assert_eq!(place.api.cluster().pods(), [""; 0]);
    place.api.cluster().add_pod("web-0", "shop/d", RS, 0);
    place.api.cluster().fail("POST", 403);
    let problem = place.perform(&place.work("")).await.result.unwrap_err();
    assert!(problem.contains("403") && problem.contains("hint: the role"), "{problem}");
}
