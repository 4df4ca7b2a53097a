//! `If-Match`: a client changes what it has read, or nothing.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::{Client, compute, own};

/// The etag of a resource.
async fn etag(client: &Client, target: &str) -> String {
    let shown = client.get(target).await;
    assert_eq!(shown.status, StatusCode::OK, "{}", shown.body);
    shown.body["etag"].as_str().unwrap().to_owned()
}

async fn send_if(client: &Client, method: &str, target: &str, body: &Value, etag: &str) -> StatusCode {
    let text = if body.is_null() { String::new() } else { body.to_string() };
    client.send_if(method, target, &text, &[("if-match", etag)]).await.status
}

/// Two clients have read the same: the second write fails.
async fn one_of_two(client: &Client, target: &str) {
    let (tags, read) = (|value: &str| json!({ "tags": { "a": value } }), etag(client, target).await);
    assert_eq!(send_if(client, "PATCH", target, &tags("first"), &read).await, StatusCode::OK, "{target}");
    let second = send_if(client, "PATCH", target, &tags("second"), &read).await;
    assert_eq!(second, StatusCode::PRECONDITION_FAILED, "{target}");
    let now = etag(client, target).await;
    assert_ne!(now, read, "{target}");
    assert_eq!(send_if(client, "PATCH", target, &tags("third"), &now).await, StatusCode::OK, "{target}");
}

async fn flexible(client: &Client) {
    client.group().await;
    let flexible = json!({
        "location": "eastus",
        "sku": { "name": "S", "capacity": 2 },
        "properties": { "orchestrationMode": "Flexible", "platformFaultDomainCount": 1 },
    });
    let made = client.send("PUT", &compute("virtualMachineScaleSets/flex"), flexible).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
}

/// promise: C2
#[tokio::test]
async fn of_two_concurrent_writes_one_succeeds() {
    let client = Client::new().await;
    flexible(&client).await;
    for target in [
        own("virtualMachines/solo"),
        own("virtualMachineScaleSets/web"),
        own("virtualMachineScaleSets/web/virtualMachines/1").replace("2024-07-01", "2025-04-01"),
        compute("virtualMachines/flex_eb641cd8"),
        compute("virtualMachineScaleSets/flex/virtualMachines/flex_f4ce1325"),
    ] {
        one_of_two(&client, &target).await;
    }
}

/// promise: C2
#[tokio::test]
async fn an_instance_is_written_whatever_becomes_of_its_scale_set() {
    let client = Client::new().await;
    flexible(&client).await;
    for (set, machine) in [
        (own("virtualMachineScaleSets/web"), own("virtualMachineScaleSets/web/virtualMachines/1")),
        (compute("virtualMachineScaleSets/flex"), compute("virtualMachines/flex_eb641cd8")),
    ] {
        let (of_set, of_machine) = (etag(&client, &set).await, etag(&client, &machine).await);
        let tags = json!({ "tags": { "a": "b" } });
        assert_eq!(send_if(&client, "PATCH", &set, &tags, &of_set).await, StatusCode::OK);
        assert_eq!(etag(&client, &machine).await, of_machine);
        let sent = client.send_if("PATCH", &machine, &tags.to_string(), &[("if-match", &of_machine)]).await;
        assert_eq!(sent.status, StatusCode::OK, "{}", sent.body);
        assert_eq!(
            json!(etag(&client, &machine).await),
            sent.body["etag"],
            "what was response is what there is"
        );
    }
}

/// promise: C2
#[tokio::test]
async fn a_changed_resource_is_not_deleted() {
    let client = Client::new().await;
    flexible(&client).await;
    for target in [
        own("virtualMachines/solo"),
        own("virtualMachineScaleSets/web/virtualMachines/1"),
        own("virtualMachineScaleSets/web"),
        compute("virtualMachines/flex_eb641cd8"),
    ] {
        let read = etag(&client, &target).await;
        let tags = json!({ "tags": { "a": "b" } });
        assert_eq!(client.send("PATCH", &target, tags).await.status, StatusCode::OK);
        let late = send_if(&client, "DELETE", &target, &Value::Null, &read).await;
        assert_eq!(late, StatusCode::PRECONDITION_FAILED, "{target}");
        let now = etag(&client, &target).await;
        let deleted = send_if(&client, "DELETE", &target, &Value::Null, &now).await;
        assert_eq!(deleted, StatusCode::ACCEPTED, "{target}");
    }
}
