//! Evictions.

use std::time::Duration;

use forewarn_agent_core::Phase;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::KubernetesFixture;
use super::stand_in::Budget;
use crate::hooks::fixtures::{job, never_stop};

const RS: Option<&str> = Some("ReplicaSet");

fn budget(app: &str, allowed: u32, recovers: bool) -> Budget {
    Budget { namespace: "shop".to_owned(), app: app.to_owned(), allowed, recovers }
}

fn evictions(fixture: &KubernetesFixture) -> Vec<(String, Value)> {
    let cluster = fixture.api.cluster();
    let posts = cluster.recorded.iter().filter(|requests| requests.method == "POST");
    posts
        .map(|requests| (requests.target.split('/').rev().nth(1).unwrap().to_owned(), requests.body.clone()))
        .collect()
}

#[tokio::test(flavor = "current_thread")]
async fn pods_that_have_to_go_are_evicted_and_waited_for() {
    let fixture = KubernetesFixture::new().await;
    {
        let mut cluster = fixture.api.cluster();
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
    let work = fixture.work("");
    assert_eq!(fixture.perform(&work).await.result, Ok(()));
    let left = ["kube-system/proxy-1", "kube-system/static-web-0", "shop/bare", "shop/front-2", "shop/job-1"];
    assert_eq!(fixture.api.cluster().pods(), left);
    let expected = evictions(&fixture);
    let names: Vec<_> = expected.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["db-0", "front-1"], "each is evicted once");
    assert!(
        expected[1].1["deleteOptions"]["preconditions"]["uid"]
            .as_str()
            .unwrap()
            .starts_with("uid-of-front-1")
    );
    assert_eq!(fixture.perform(&fixture.work("bare_pods = true")).await.result, Ok(()));
    assert!(!fixture.api.cluster().pods().contains(&"shop/bare".to_owned()));
    assert_eq!(fixture.undo(&work).await, Ok(()));
    assert!(fixture.api.cluster().node("web-0")["spec"].get("unschedulable").is_none());
}

#[tokio::test(flavor = "current_thread")]
async fn many_pods_come_in_pages_and_a_page_that_is_too_old_begins_anew() {
    let fixture = KubernetesFixture::new().await;
    for number in 0..250 {
        fixture.api.cluster().add_pod("web-0", &format!("shop/front-{number}"), RS, 0);
    }
    let second = "GET /api/v1/pods?fieldSelector=spec.nodeName%3Dweb-0&limit=100&continue=skip%3A100";
    fixture.api.cluster().fail(second, 410);
    fixture.api.cluster().fail(second, 500);
    assert_eq!(fixture.perform(&fixture.work("")).await.result, Ok(()));
    assert_eq!(fixture.api.cluster().pods(), [""; 0]);
}

#[tokio::test(flavor = "current_thread")]
async fn a_budget_is_waited_for() {
    let fixture = KubernetesFixture::new().await;
    for number in 0..3 {
        fixture.api.cluster().add_pod("web-0", &format!("shop/front-{number}"), RS, 1);
    }
    fixture.api.cluster().add_budget(budget("front", 1, true));
    assert_eq!(fixture.perform(&fixture.work("")).await.result, Ok(()));
    assert_eq!(fixture.api.cluster().pods(), [""; 0]);
    assert!(evictions(&fixture).len() > 3, "some were rejected and retried");
}

#[tokio::test(flavor = "current_thread")]
async fn a_blocking_budget_is_reported_at_the_deadline() {
    let fixture = KubernetesFixture::new().await;
    for number in 0..7 {
        fixture.api.cluster().add_pod("web-0", &format!("shop/front-{number}"), RS, 0);
    }
    fixture.api.cluster().add_budget(budget("front", 0, false));
    let (sender, stop) = watch::channel(false);
    let work = fixture.work("");
    let telling = async {
        fixture.wait_for_requests("POST", 14).await;
        sender.send(true).unwrap();
    };
    let (hook_outcome, ()) = tokio::join!(fixture.perform_until(&work, stop), telling);
    let error = hook_outcome.result.unwrap_err();
    let expected =
        "stopped on request: 7 pods are left: shop/front-0: a disruption budget does not allow it yet, ";
    assert!(error.starts_with(expected) && error.ends_with(", and 2 more"), "{error}");
    assert_eq!(fixture.undo(&work).await, Ok(()), "and the node is put back all the same");
    // Two budgets for one pod are a mistake that only people can put right; until then it is waited for.
    fixture.api.cluster().add_budget(budget("front", 9, false));
    let (sender, stop) = watch::channel(false);
    let telling = async {
        fixture.wait_for_requests("POST", 40).await;
        sender.send(true).unwrap();
    };
    let (hook_outcome, ()) = tokio::join!(fixture.perform_until(&work, stop), telling);
    assert!(hook_outcome.result.unwrap_err().contains("more than one PodDisruptionBudget"));
}

#[tokio::test(flavor = "current_thread")]
async fn an_agent_that_is_started_again_goes_on() {
    let fixture = KubernetesFixture::new().await;
    for number in 0..4 {
        fixture.api.cluster().add_pod("web-0", &format!("shop/front-{number}"), RS, 0);
    }
    fixture.api.cluster().add_budget(budget("front", 2, false));
    let work = fixture.work("at_once = 1");
    let (sender, stop) = watch::channel(false);
    let dying = async {
        fixture.wait_for_requests("POST", 6).await;
        sender.send(true).unwrap();
    };
    let (hook_outcome, ()) = tokio::join!(fixture.perform_until(&work, stop), dying);
    assert!(hook_outcome.result.is_err());
    let cordoned = fixture.api.cluster().node("web-0").clone();
    fixture.api.cluster().allow("front", 2);
    assert_eq!(fixture.perform(&work).await.result, Ok(()));
    assert_eq!(fixture.api.cluster().pods(), [""; 0]);
    let after = fixture.api.cluster().node("web-0").clone();
    assert_eq!(
        after["metadata"]["annotations"], cordoned["metadata"]["annotations"],
        "nothing was done twice"
    );
    assert_eq!(fixture.undo(&work).await, Ok(()));
}

#[tokio::test(flavor = "current_thread")]
async fn a_pod_gets_no_more_time_than_there_is() {
    let fixture = KubernetesFixture::new().await;
    fixture.api.cluster().add_pod("web-0", "shop/slow", RS, 0);
    fixture
        .api
        .cluster()
        .edit_pod("shop/slow", |pod| pod["spec"]["terminationGracePeriodSeconds"] = json!(3_600));
    fixture.api.cluster().add_pod("web-0", "shop/quick", RS, 0);
    fixture
        .api
        .cluster()
        .edit_pod("shop/quick", |pod| pod["spec"]["terminationGracePeriodSeconds"] = json!(5));
    let mut long = job("drain", Phase::Scheduled);
    long.limit = Duration::from_secs(3_000);
    let seconds = |all: &[(String, Value)], name: &str| {
        let (_, body) = all.iter().find(|(pod, _)| pod == name).unwrap().clone();
        body["deleteOptions"].get("gracePeriodSeconds").and_then(Value::as_u64)
    };
    assert_eq!(fixture.work("").perform(&long, &fixture.runtime, never_stop()).await.result, Ok(()));
    let expected = evictions(&fixture);
    assert!(seconds(&expected, "slow").is_some_and(|grace| (2_900..3_000).contains(&grace)), "{expected:?}");
    assert_eq!(seconds(&expected, "quick"), None, "it wants less than it may have");
    fixture.api.cluster().recorded.clear();
    fixture.api.cluster().add_pod("web-0", "shop/slow", RS, 0);
    assert_eq!(
        fixture.work("grace = '10s'").perform(&long, &fixture.runtime, never_stop()).await.result,
        Ok(())
    );
    assert_eq!(seconds(&evictions(&fixture), "slow"), Some(10));
}

#[tokio::test(flavor = "current_thread")]
async fn a_pod_that_goes_by_itself_or_is_replaced_meanwhile_is_no_problem() {
    let fixture = KubernetesFixture::new().await;
    for name in ["shop/a", "shop/b", "shop/c"] {
        fixture.api.cluster().add_pod("web-0", name, RS, 0);
    }
    fixture.api.cluster().fail("POST /api/v1/namespaces/shop/pods/a/", 404);
    fixture.api.cluster().fail("POST /api/v1/namespaces/shop/pods/b/", 409);
    fixture.api.cluster().fail("POST /api/v1/namespaces/shop/pods/c/", 503);
    assert_eq!(fixture.perform(&fixture.work("")).await.result, Ok(()));
    assert_eq!(fixture.api.cluster().pods(), [""; 0]);
    fixture.api.cluster().add_pod("web-0", "shop/d", RS, 0);
    fixture.api.cluster().fail("POST", 403);
    let error = fixture.perform(&fixture.work("")).await.result.unwrap_err();
    assert!(error.contains("403") && error.contains("hint: the role"), "{error}");
}
