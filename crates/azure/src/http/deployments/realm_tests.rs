//! Deployments of which the servers of a realm see the records.

use std::sync::Arc;

use axum::http::StatusCode;
use forewarn_control::Permit;
use forewarn_control::resource_id::ResourceId;
use serde_json::{Value, json};

use super::record::Record;
use super::recorder::{DeploymentEnd, Recorder};
use crate::http::tests::realm::{TestRealm, until};
use crate::http::tests::{Client, SUBSCRIPTION, own};

fn deployment(name: &str) -> String {
    let group = format!("{SUBSCRIPTION}/resourceGroups/forewarn");
    format!("{group}/providers/Microsoft.Resources/deployments/{name}?api-version=2024-07-01")
}

fn template(resources: &Value) -> Value {
    json!({ "properties": { "mode": "incremental", "parameters": {}, "template": { "resources": resources } } })
}

/// The state of a deployment, and the code of its error.
async fn standing(client: &Client, name: &str) -> (Value, Value) {
    let shown = client.get(deployment(name)).await.body;
    let properties = &shown["properties"];
    (properties["provisioningState"].clone(), properties["error"]["details"][0]["code"].clone())
}

fn running() -> (Value, Value) {
    (json!("Running"), Value::Null)
}

fn interrupted() -> (Value, Value) {
    (json!("Failed"), json!("DeploymentInterrupted"))
}

fn recorder(client: &Client, name: &str) -> Recorder {
    Recorder {
        control: client.control.clone(),
        permit: Arc::new(Permit::unlimited("anyone")),
        id: ResourceId::parse(deployment(name).split('?').next().unwrap()).unwrap(),
    }
}

/// promise: Z4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resource_of_a_template_finds_the_one_before_through_any_server() {
    let realm = TestRealm::start().await;
    for (number, client) in realm.clients.iter().enumerate() {
        let (set, name) = (format!("set{number}"), format!("member{number}"));
        let id = format!("[resourceId('Microsoft.Compute/availabilitySets', '{set}')]");
        let resources = json!([
            {
                "type": "Microsoft.Compute/virtualMachines",
                "apiVersion": "2024-07-01",
                "name": name,
                "location": "eastus",
                "dependsOn": [id],
                "properties": { "availabilitySet": { "id": id } },
            },
            {
                "type": "Microsoft.Compute/availabilitySets",
                "apiVersion": "2024-07-01",
                "name": set,
                "location": "eastus",
                "sku": { "name": "Aligned" },
                "properties": {},
            },
        ]);
        let made = client.send("PUT", &deployment(&name), template(&resources)).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
        assert_eq!(standing(client, &name).await, (json!("Succeeded"), Value::Null));
        let member = client.get(own(&format!("virtualMachines/{name}"))).await.body;
        assert!(member["properties"]["availabilitySet"]["id"].as_str().unwrap().ends_with(&set), "{member}");
    }
    realm.stop().await;
}

/// promise: Z4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_server_tells_a_running_deployment_from_an_interrupted_one() {
    let mut realm = TestRealm::start().await;
    let (runner, path) = (realm.clients.remove(1), deployment("d"));
    let recorder = recorder(&runner, "d");
    let (record, live) = Record::begun(&runner.control);
    recorder.begin(&record, &json!({})).await.unwrap();
    assert_eq!(standing(&runner, "d").await, running());
    for other in &realm.clients {
        other.control.confirm_reads().await.unwrap();
        assert_eq!(standing(other, "d").await, running());
        let refused = other.send("PUT", &path, template(&json!([]))).await;
        assert_eq!(refused.body["error"]["code"], "DeploymentActive", "{}", refused.body);
        let kept = other.send("DELETE", &path, Value::Null).await;
        assert_eq!(kept.body["error"]["code"], "DeploymentActive", "{}", kept.body);
    }
    // The server stops in the middle of it.
    let end =
        DeploymentEnd { at: runner.control.clock().now().wall, record: record.clone(), body: json!({}) };
    runner.control.stop().await;
    let other = &realm.clients[1];
    until("the server is gone", || !other.control.is_live(record.process().unwrap())).await;
    assert_eq!(standing(other, "d").await, interrupted());
    let again = other.send("PUT", &path, template(&json!([]))).await;
    assert_eq!(again.status, StatusCode::CREATED, "{}", again.body);
    assert_eq!(standing(other, "d").await, (json!("Succeeded"), Value::Null));
    // A server that was taken for lost does not replace the later deployment.
    let late = Recorder { control: other.control.clone(), ..recorder };
    assert!(late.end(end, live).await.is_err());
    assert_eq!(standing(other, "d").await, (json!("Succeeded"), Value::Null));
    drop(runner);
    realm.stop().await;
}

/// promise: Z4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_runs_until_its_end_is_recorded() {
    let realm = TestRealm::start().await;
    let runner = &realm.clients[1];
    let (recorder, (record, live)) = (recorder(runner, "d"), Record::begun(&runner.control));
    recorder.begin(&record, &json!({})).await.unwrap();
    let at = runner.control.clock().now().wall;
    let end = DeploymentEnd { at, record: record.over(at, None), body: json!({}) };
    realm.engine_of(runner).cut();
    assert_eq!(recorder.end(end, live).await.unwrap_err().status, 503);
    assert_eq!(standing(runner, "d").await, running());
    realm.engine_of(runner).heal();
    for _ in 0..400 {
        if standing(runner, "d").await == (json!("Succeeded"), Value::Null) {
            return realm.stop().await;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("not recorded");
}
